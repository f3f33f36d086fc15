package admin

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"facet/cmd/facet/table"
	"facet/internal/id"
	"facet/node/wire"
)

// Write prints s as two tables, nodes and groups, followed by the warnings. No line has more
// than 100 columns.
func Write(w io.Writer, s wire.Status) error {
	head := []string{"cluster " + s.Cluster.String(), "founded", fmt.Sprintf("%d shards × %d", s.Shards, s.Replicas), "model pack " + short(s.Pack)}
	switch {
	case s.Unread:
		head = []string{"a founded cluster", head[3]}
	case !s.Founded:
		head[1] = "not founded yet"
	}
	fmt.Fprintf(w, "%s\n\n", table.Wrap(head, " · ", 0))
	if s.Unread {
		return writeWarnings(w, s)
	}
	err := table.Write(w, func(limit int) []table.Row {
		rows := []table.Row{{Cells: nodeTitles}}
		for _, n := range s.Nodes {
			rows = append(rows, table.Row{Cells: nodeCells(n, limit)})
		}
		return rows
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := WriteGroups(w, s); err != nil {
		return err
	}
	if err := WriteMoves(w, s); err != nil {
		return err
	}
	parts := failing(s)
	for _, text := range parts {
		if err := table.WriteMarked(w, "~", "%s", text); err != nil {
			return err
		}
	}
	if len(parts) > 0 && len(s.Warnings) == 0 {
		return nil // what fails is no reason to say that all is well
	}
	return writeWarnings(w, s)
}

// failing describes the parts of nodes that do not run, or whose last round failed.
func failing(s wire.Status) []string {
	var list []string
	for _, n := range s.Nodes {
		for _, p := range n.Parts {
			switch {
			case !p.Running:
				list = append(list, fmt.Sprintf("%s: %s does not run", n.Name, p.Name))
			case p.Error != "":
				list = append(list, fmt.Sprintf("%s: the last round of %s, at %s, failed: %s", n.Name, p.Name, p.Last.UTC().Format(time.RFC3339), p.Error))
			}
		}
	}
	return list
}

// WriteNodes prints the nodes of s, with their whole names and their ids.
func WriteNodes(w io.Writer, s wire.Status) error {
	t := tabwriter.NewWriter(w, 0, 0, table.Gap, ' ', 0)
	fmt.Fprintln(t, strings.Join(append(slices.Clone(nodeTitles), "ID"), "\t"))
	for _, n := range s.Nodes {
		fmt.Fprintln(t, strings.Join(append(nodeCells(n, math.MaxInt), n.ID.String()), "\t"))
	}
	return t.Flush()
}

var nodeTitles = []string{"NODE", "STATE", "ZONE", "URL", "SHARDS", "LEADS", "EVENTS", "LAG", "VERSION"}

// nodeCells returns the cells of a node. Those with names have at most limit characters.
func nodeCells(n wire.Member, limit int) []string {
	holds, leads, events := 0, 0, 0
	var lag uint64
	for _, g := range n.Groups {
		lag = max(lag, g.Lag)
		if g.Group != id.Meta {
			holds++
		}
		if g.Role == roleLeader {
			leads++
			events += g.Events
		}
	}
	figures := []string{"-", "-", "-", "-"}
	if n.Answers {
		figures = []string{strconv.Itoa(holds), strconv.Itoa(leads), strconv.Itoa(events), strconv.FormatUint(lag, 10)}
	}
	names := []string{table.Shorten(n.Name, limit), state(n), table.Shorten(cmp.Or(n.Zone, "-"), limit), table.Shorten(cmp.Or(n.URL, "-"), limit)}
	return slices.Concat(names, figures, []string{cmp.Or(n.Version, "-")})
}

const roleLeader = "leader"

// state combines the operators' order, gossip's view and the node's own answer into
// one word.
func state(n wire.Member) string {
	switch {
	case n.State == wire.StateDraining || n.State == wire.StateRemoved:
		return n.State
	case n.Answers:
		return "up"
	case n.Alive:
		return "silent" // gossip has not noticed, or the node hangs
	}
	return "down"
}

// replica is the replica of one group and its node.
type replica struct {
	node string
	wire.GroupStatus
}

// WriteMoves prints the shards of s that are moving, if there are any, and how many shards
// have another number of replicas than they should.
func WriteMoves(w io.Writer, s wire.Status) error {
	if err := writeVoting(w, s); err != nil {
		return err
	}
	names := nodeNames{}
	for _, n := range s.Nodes {
		names[n.ID] = n.Name
	}
	for _, m := range s.Moves {
		var err error
		if len(m.To) > 0 {
			err = table.WriteMarked(w, ">", "shard %d moves to %s (%d entries behind)%s", m.Shard, names.list(m.To), m.Behind, away(names.list(m.From)))
		} else {
			err = table.WriteMarked(w, ">", "shard %d has moved; %s has still to leave", m.Shard, names.list(m.From))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeVoting prints the numbers of replicas, unless all are as they should be.
func writeVoting(w io.Writer, s wire.Status) error {
	var have []string
	for _, n := range slices.Sorted(maps.Keys(s.Voting)) {
		have = append(have, fmt.Sprintf("%d of %d shards have %d", s.Voting[n], s.Shards, n))
	}
	if len(have) == 0 || len(have) == 1 && s.Voting[s.Replicas] > 0 {
		return nil
	}
	active := 0
	for _, n := range s.Nodes {
		if n.State == wire.StateActive {
			active++
		}
	}
	few := ""
	if active < s.Replicas {
		few = fmt.Sprintf("; that takes %d active nodes, and there are %d", s.Replicas, active)
	}
	return table.WriteMarked(w, ">", "each shard should have %d replicas: %s%s", s.Replicas, strings.Join(have, ", "), few)
}

// nodeNames contains the names of nodes.
type nodeNames map[id.Node]string

// list returns the names of nodes. A node without a name is listed by its id.
func (names nodeNames) list(nodes []id.Node) string {
	text := make([]string, len(nodes))
	for i, n := range nodes {
		text[i] = cmp.Or(names[n], n.String())
	}
	return strings.Join(text, ", ")
}

// away returns from which node a replica moves. An added replica moves from none.
func away(from string) string {
	if from == "" {
		return ""
	}
	return ", away from " + from
}

// WriteGroups prints the groups of s.
func WriteGroups(w io.Writer, s wire.Status) error {
	groups := map[id.Shard][]replica{}
	for _, n := range s.Nodes {
		for _, g := range n.Groups {
			groups[g.Group] = append(groups[g.Group], replica{n.Name, g})
		}
	}
	return table.Write(w, func(limit int) []table.Row {
		rows := []table.Row{{Cells: []string{"GROUP", "LEADER", "TERM", "VOTERS", "COMMIT", "EVENTS"}, List: []string{"REPLICAS (LAG)"}}}
		for _, g := range slices.Sorted(maps.Keys(groups)) {
			rows = append(rows, groupRow(g, groups[g], limit))
		}
		return rows
	})
}

// groupRow returns the row of a group. Names have at most limit characters.
func groupRow(g id.Shard, replicas []replica, limit int) table.Row {
	name := "shard " + strconv.Itoa(int(g))
	if g == id.Meta {
		name = "meta"
	}
	leader, newest := "none", replicas[0]
	lags := make([]string, 0, len(replicas))
	for _, r := range replicas {
		if r.Term > newest.Term {
			newest = r
		}
		lags = append(lags, fmt.Sprintf("%s %s (%d)", table.Shorten(r.node, limit), r.Role, r.Lag))
	}
	for _, r := range replicas {
		if r.Role == roleLeader && r.Term == newest.Term {
			leader, newest = table.Shorten(r.node, limit), r
		}
	}
	events := strconv.Itoa(newest.Events)
	if g == id.Meta {
		events = "-"
	}
	figures := []string{strconv.FormatUint(newest.Term, 10), strconv.Itoa(newest.Voters), strconv.FormatUint(newest.Commit, 10), events}
	return table.Row{Cells: append([]string{name, leader}, figures...), List: lags}
}

// short returns the first 12 characters of a hash.
func short(hash string) string {
	if len(hash) <= 12 {
		return hash
	}
	return hash[:12]
}
