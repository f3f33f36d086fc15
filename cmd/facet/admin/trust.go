package admin

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"facet/cmd/facet/table"
	"facet/internal/id"
	"facet/node/wire"
)

// WriteCluster prints the nodes of s with their roles, certificates and keys,
// followed by the warnings. No line has more than 100 columns. The key of receipts has a line
// of its own, so that grep finds it.
func WriteCluster(w io.Writer, s wire.Status) error {
	head := []string{"cluster " + s.Cluster.String(), fmt.Sprintf("%d nodes", len(s.Nodes)), fmt.Sprintf("%d shards × %d", s.Shards, s.Replicas), "model pack " + short(s.Pack)}
	fmt.Fprintf(w, "%s\n\n", table.Wrap(head, " · ", 0))
	for _, part := range []struct {
		titles []string
		cells  func(m wire.Member, limit int) []string
	}{
		{[]string{"STATE", "ROLES", "PEERS AT"}, roleCells},
		{[]string{"CERTIFICATE UNTIL", "FOR CLIENTS UNTIL", "AUTHORITY UNTIL"}, certificateCells},
		{[]string{"GOSSIP KEY, AGE", "CLUSTER KEY, AGE"}, keyCells},
	} {
		err := table.Write(w, func(limit int) []table.Row {
			rows := []table.Row{{Cells: append([]string{"NODE"}, part.titles...)}}
			for _, m := range s.Nodes {
				rows = append(rows, table.Row{Cells: append([]string{table.Shorten(m.Name, limit)}, part.cells(m, limit)...)})
			}
			return rows
		})
		if err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, groupsLine(s))
	if s.ReceiptKey != "" {
		fmt.Fprintf(w, "receipts of erasures are signed with this key:\n%s\n", s.ReceiptKey)
	}
	return writeWarnings(w, s)
}

func roleCells(m wire.Member, limit int) []string {
	return []string{state(m), roles(m), table.Shorten(cmp.Or(m.Peer, "-"), limit)}
}

// roles returns the roles of a node in the cluster.
func roles(m wire.Member) string {
	if !m.Answers {
		return "-"
	}
	meta, shards, leads := "", 0, 0
	for _, g := range m.Groups {
		switch {
		case g.Group != id.Meta:
			shards++
			if g.Role == roleLeader {
				leads++
			}
		case g.Role == "non-voter":
			meta = "keeps meta"
		case g.Role == roleLeader:
			meta = "leads meta"
		default:
			meta = "votes in meta"
		}
	}
	return fmt.Sprintf("%s, %d shards, leads %d", cmp.Or(meta, "no meta"), shards, leads)
}

// certificateCells returns the ends of the certificates, and their issuer with the number of
// other authorities that the node trusts and its end.
func certificateCells(m wire.Member, _ int) []string {
	c := m.Credentials
	if c == nil {
		return []string{"-", "-", "-"}
	}
	issuer := c.Issuer
	if more := len(c.Trusted) - 1; more > 0 {
		issuer += fmt.Sprintf(" (+ %d)", more)
	}
	return []string{until(c.NodeEnds), until(c.ServerEnds), issuer + ", " + until(c.AuthorityEnds)}
}

// keyCells returns the shared keys.
func keyCells(m wire.Member, limit int) []string {
	if m.Credentials == nil {
		return []string{"-", "-"}
	}
	return []string{key(m.Credentials.Gossip, limit), key(m.Credentials.Cluster, limit)}
}

// until returns when something ends, and how many days are left.
func until(end time.Time) string {
	return fmt.Sprintf("%s (%d days)", end.Format(time.DateOnly), int(time.Until(end).Hours()/24))
}

// key returns the key in use with its age, and the number of other keys. Its place has at most
// limit characters.
func key(list []wire.KeyInfo, limit int) string {
	if len(list) == 0 {
		return "-"
	}
	text := fmt.Sprintf("%s, %s", list[0].ID, age(time.Since(list[0].Since)))
	if list[0].From != "" {
		text += ", from " + table.Shorten(list[0].From, limit)
	}
	if more := len(list) - 1; more > 0 {
		text += fmt.Sprintf(" (+ %d)", more)
	}
	return text
}

func age(d time.Duration) string {
	switch {
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(max(0, d).Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

// groupsLine summarises the groups. facet status lists them.
func groupsLine(s wire.Status) string {
	led := map[id.Shard]bool{}
	for _, m := range s.Nodes {
		for _, g := range m.Groups {
			led[g.Group] = led[g.Group] || g.Role == roleLeader
		}
	}
	with := 0
	for _, yes := range led {
		if yes {
			with++
		}
	}
	return fmt.Sprintf("%d of %d groups have a leader, %d shards are on the move (facet status shows each)\n", with, s.Shards+1, len(s.Moves))
}

func writeWarnings(w io.Writer, s wire.Status) error {
	if len(s.Warnings) == 0 {
		_, err := fmt.Fprintln(w, "\nno warnings")
		return err
	}
	fmt.Fprintln(w)
	for _, warning := range s.Warnings {
		if err := table.WriteMarked(w, "!", "%s", named(warning, s)); err != nil {
			return err
		}
	}
	return nil
}

// WritePlan prints the moves still to come, and the load of the nodes afterwards.
func WritePlan(w io.Writer, p wire.Plan) error {
	names := nodeNames{}
	for _, s := range p.Shards {
		names[s.Node] = s.Name
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tSHARDS NOW\tTHEN\tLEADS THEN")
	for _, s := range p.Shards {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\n", s.Name, s.Now, s.Then, s.LeadsThen)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%d moves to come, %d under way, at most %d at once\n", len(p.Steps), len(p.Moves), p.AtOnce)
	for _, s := range p.Steps {
		fmt.Fprintf(w, "  shard %d: from %s to %s\n", s.Shard, cmp.Or(names.list(s.From), "nobody"), cmp.Or(names.list(s.To), "nobody"))
	}
	return nil
}
