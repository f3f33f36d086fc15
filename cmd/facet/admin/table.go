package admin

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"facet/internal/id"
	"facet/node/wire"
)

// Write prints s as two tables, nodes and groups, followed by the warnings.
func Write(w io.Writer, s wire.Status) error {
	founded := "founded"
	if !s.Founded {
		founded = "not founded yet"
	}
	bound := ""
	for _, n := range s.Nodes {
		if n.SearchMiss > 0 {
			bound = " · probable searches"
		}
	}
	fmt.Fprintf(w, "cluster %s · %s · %d shards × %d · model pack %s%s\n\n", s.Cluster, founded, s.Shards, s.Replicas, short(s.Pack), bound)
	if err := WriteNodes(w, s); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := WriteGroups(w, s); err != nil {
		return err
	}
	if err := WriteMoves(w, s); err != nil {
		return err
	}
	if err := writeParts(w, s); err != nil {
		return err
	}
	return writeWarnings(w, s)
}

// writeParts prints the parts that do not run, or whose last round failed.
func writeParts(w io.Writer, s wire.Status) error {
	for _, n := range s.Nodes {
		for _, p := range n.Parts {
			var err error
			switch {
			case !p.Running:
				_, err = fmt.Fprintf(w, "~ %s: %s does not run\n", n.Name, p.Name)
			case p.Error != "":
				_, err = fmt.Fprintf(w, "~ %s: the last round of %s, at %s, failed: %s\n", n.Name, p.Name, p.Last.UTC().Format(time.RFC3339), p.Error)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// WriteNodes prints the nodes of s.
func WriteNodes(w io.Writer, s wire.Status) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tSTATE\tZONE\tURL\tSHARDS\tLEADS\tEVENTS\tLAG\tVERSION\tID")
	for _, n := range s.Nodes {
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
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Name, state(n), cmp.Or(n.Zone, "-"), n.URL, strings.Join(figures, "\t"), n.Version, n.ID)
	}
	return t.Flush()
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
			_, err = fmt.Fprintf(w, "> shard %d moves to %s (%d entries behind)%s\n", m.Shard, names.list(m.To), m.Behind, away(names.list(m.From)))
		} else {
			_, err = fmt.Fprintf(w, "> shard %d has moved; %s has still to leave\n", m.Shard, names.list(m.From))
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
	_, err := fmt.Fprintf(w, "> each shard should have %d replicas: %s%s\n", s.Replicas, strings.Join(have, ", "), few)
	return err
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
	ids := make([]id.Shard, 0, len(groups))
	for g := range groups {
		ids = append(ids, g)
	}
	slices.Sort(ids)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "GROUP\tLEADER\tTERM\tVOTERS\tCOMMIT\tEVENTS\tREPLICAS (LAG)")
	for _, g := range ids {
		writeGroup(t, g, groups[g])
	}
	return t.Flush()
}

func writeGroup(w io.Writer, g id.Shard, replicas []replica) {
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
		lags = append(lags, fmt.Sprintf("%s %s (%d)", r.node, r.Role, r.Lag))
	}
	for _, r := range replicas {
		if r.Role == roleLeader && r.Term == newest.Term {
			leader, newest = r.node, r
		}
	}
	events := strconv.Itoa(newest.Events)
	if g == id.Meta {
		events = "-"
	}
	fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\n", name, leader, newest.Term, newest.Voters, newest.Commit, events, strings.Join(lags, ", "))
}

// short returns the first 12 characters of a hash.
func short(hash string) string {
	if len(hash) <= 12 {
		return hash
	}
	return hash[:12]
}
