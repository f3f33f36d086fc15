package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"facet/node/wire"
)

// eventsMin is the fewest events of a node from which the size of one is estimated.
const eventsMin = 1000

// limit is something that will run out.
type limit struct {
	kind string
	left float64 // the part that is left; of certificates, of a year
	text string
}

// next names what would break next: the nearest limit of each kind, by the part that is left, the
// smallest first. Each is a finding of its own before it is near.
func (x *examination) next() {
	all := x.ends
	if x.live != nil {
		all = x.live.limits()
	}
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b limit) int { return cmp.Compare(a.left, b.left) })
	var texts []string
	seen := map[string]bool{}
	for _, l := range all {
		if !seen[l.kind] {
			seen[l.kind] = true
			texts = append(texts, l.text)
		}
	}
	x.ok("next", "the nearest limits, the first one first: %s", strings.Join(texts, "; "))
}

// yearOf returns a time as a part of a year, the life of a certificate.
func yearOf(d time.Duration) float64 { return d.Hours() / (365 * 24) }

// limits returns the limits of the cluster and of its nodes.
func (c *cluster) limits() []limit {
	all := []limit{quorum(c.status)}
	for _, n := range c.status.Nodes {
		if n.Credentials == nil {
			continue
		}
		for _, e := range n.Credentials.Expiries() {
			all = append(all, limit{"certificate", yearOf(time.Until(e.At)), fmt.Sprintf("%s: %s", n.Name, e.In(time.Now()))})
		}
	}
	for _, r := range c.nodes {
		all = append(all, r.limits()...)
	}
	return all
}

// limits returns the limits of a node's disk and memory.
func (r readings) limits() (list []limit) {
	v := r.values
	add := func(what string, used, most, taken float64) {
		if most <= 0 {
			return
		}
		text := fmt.Sprintf("%s of %s: %.0f %% used", what, r.name, 100*used/most)
		if events := v["facet_group_events"]; events >= eventsMin && taken > 0 {
			text += fmt.Sprintf(", room for about %s more faces", short((most-used)/(taken/events)))
		}
		list = append(list, limit{what, 1 - used/most, text})
	}
	add("the memory for events", v["facet_memory_events_bytes"], v["facet_memory_budget_bytes"], v["facet_memory_events_bytes"])
	room := v["facet_disk_size_bytes"] - v["facet_disk_reserve_bytes"]
	add("the disk", v["facet_disk_size_bytes"]-v["facet_disk_free_bytes"], room, v["facet_group_disk_bytes"])
	return list
}

// short returns a number of two digits with its unit.
func short(n float64) string {
	switch {
	case n < 0:
		return "0"
	case n >= 1e6:
		return fmt.Sprintf("%.1f million", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.0f thousand", n/1e3)
	default:
		return fmt.Sprintf("%.0f", n)
	}
}

// quorum returns how many deaths of nodes the weakest group survives.
func quorum(s wire.Status) limit {
	answering, voters := map[int]int{}, map[int]int{}
	for _, n := range s.Nodes {
		for _, g := range n.Groups {
			if g.Role != "non-voter" && g.Role != "stopped" {
				answering[int(g.Group)]++
			}
			voters[int(g.Group)] = max(voters[int(g.Group)], g.Voters)
		}
	}
	least := limit{"quorum", 1, "quorum: no group answers"}
	for group, all := range voters {
		spare := answering[group] - all/2 - 1
		left := float64(max(spare, 0)) / max(float64((all-1)/2), 1)
		if left < least.left || strings.HasSuffix(least.text, "answers") {
			least = limit{"quorum", left, fmt.Sprintf("quorum: the cluster survives this many more deaths of nodes: %d", max(spare, 0))}
		}
	}
	return least
}
