package admin

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"facet/cmd/facet/table"
	"facet/internal/id"
	"facet/node/wire"
)

// WriteCluster prints the nodes of s with their roles, certificates and keys,
// followed by the warnings.
func WriteCluster(w io.Writer, s wire.Status) error {
	fmt.Fprintf(w, "cluster %s · %d nodes · %d shards × %d · model pack %s\n\n", s.Cluster, len(s.Nodes), s.Shards, s.Replicas, short(s.Pack))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tSTATE\tROLES\tPEERS AT\tCERTIFICATE\tFOR CLIENTS\tAUTHORITY\tGOSSIP KEY\tCLUSTER KEY")
	for _, m := range s.Nodes {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", m.Name, state(m), roles(m), cmp.Or(m.Peer, "-"), trust(m.Credentials))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprint(w, groupsLine(s))
	if s.ReceiptKey != "" {
		fmt.Fprintf(w, "receipts of erasures are signed with the key\n  %s\n", s.ReceiptKey)
	}
	return writeWarnings(w, s)
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

// trust returns five columns: the ends of the certificates, their issuers and the
// keys.
func trust(c *wire.Credentials) string {
	if c == nil {
		return strings.Join(slices.Repeat([]string{"-"}, 5), "\t")
	}
	issuer := c.Issuer
	if len(c.Trusted) > 1 {
		issuer += fmt.Sprintf(" (trusts %d)", len(c.Trusted))
	}
	return strings.Join([]string{
		until(c.NodeEnds), until(c.ServerEnds), issuer + " " + until(c.AuthorityEnds), key(c.Gossip), key(c.Cluster),
	}, "\t")
}

// until returns when something ends, and how many days are left.
func until(end time.Time) string {
	return fmt.Sprintf("until %s (%d days)", end.Format(time.DateOnly), int(time.Until(end).Hours()/24))
}

// key returns the key in use with its age, and the number of other keys.
func key(list []wire.KeyInfo) string {
	if len(list) == 0 {
		return "-"
	}
	text := fmt.Sprintf("%s, %s", list[0].ID, age(time.Since(list[0].Since)))
	if list[0].From != "" {
		text += ", from " + list[0].From
	}
	if more := len(list) - 1; more > 0 {
		text += fmt.Sprintf(" (+ %d)", more)
	}
	return text
}

func age(d time.Duration) string {
	switch {
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min old", int(max(0, d).Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h old", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days old", int(d.Hours()/24))
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
	return fmt.Sprintf("\n%d of %d groups have a leader, %d shards are on the move (facet status shows each)\n", with, s.Shards+1, len(s.Moves))
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
