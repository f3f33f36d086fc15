package admin

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"facet/cmd/facet/table"
	"facet/internal/id"
	"facet/internal/must"
	"facet/node/wire"
)

// wide returns a cluster of nodes with these names, with something in every line of a status.
func wide(names ...string) wire.Status {
	s := wire.Status{Founded: true, Shards: 12, Replicas: 3, Pack: strings.Repeat("ab", 32), ReceiptKey: "facet-" + strings.Repeat("k", 90), Voting: map[int]int{2: 3, 3: 9}}
	for i, name := range names {
		n := wire.Member{
			ID: id.Node{UUID: id.Random([16]byte{byte(i + 1)})}, Name: name, Zone: "europe-north-" + name, URL: "https://" + name + ".example.org:7420",
			Peer: name + ".internal.example.org:7421", Credentials: wideCredentials(), Alive: true, Answers: true, Version: "0.3.1", Parts: []wire.Part{{Name: "backup", Running: true, Error: strings.Repeat("no such folder, ", 9)}},
		}
		for g := range id.Shard(13) {
			role := "non-voter"
			if int(g)%len(names) == i {
				role = "leader"
			}
			n.Groups = append(n.Groups, wire.GroupStatus{Group: g, Role: role, Term: 12_345, Commit: 1_234_567_890, Lag: 123_456, Voters: 5, Events: 12_345_678})
		}
		s.Nodes = append(s.Nodes, n)
		s.Warnings = append(s.Warnings, fmt.Sprintf("node %s (%s): a damaged replica was set aside and rebuilt from its peers", name, n.ID),
			fmt.Sprintf("member %s.0123abcd has lost state and stopped at %s: it knows of a later start", n.ID, time.Unix(0, 0).UTC()))
		s.Moves = append(s.Moves, wire.Move{Shard: 1, To: []id.Node{n.ID}, From: []id.Node{s.Nodes[0].ID}, Behind: 7})
	}
	return s
}

// wideCredentials returns credentials in the midst of a rotation, with keys that lie elsewhere.
func wideCredentials() *wire.Credentials {
	end := time.Now().AddDate(10, 0, 0)
	keys := []wire.KeyInfo{{ID: "0123456789ab", Since: time.Now().AddDate(-20, 0, 0), From: "vault: https://vault.example.org/secret/facet"}, {}}
	return &wire.Credentials{
		NodeEnds: end, ServerEnds: end, AuthorityEnds: end, Issuer: "0123456789ab", Trusted: []string{"", ""}, Gossip: keys, Cluster: keys,
	}
}

func TestStatusFitsHundredColumns(t *testing.T) {
	t.Parallel()
	f := func(n, length int, s wire.Status, write func(io.Writer, wire.Status) error) {
		t.Helper()
		var b strings.Builder
		must.Do(t, write(&b, s))
		for line := range strings.Lines(b.String()) {
			line = strings.TrimSuffix(line, "\n")
			if got := utf8.RuneCountInString(line); got > table.Columns || strings.HasSuffix(line, " ") {
				t.Errorf("%d nodes with names of %d: %d columns: %q", n, length, got, line)
			}
		}
		if found := regexp.MustCompile(`(?m)^.*[^-][0-9a-f]{8}-[0-9a-f]{4}-.*$`).FindAllString(b.String(), -1); len(found) != 1 { // the cluster's
			t.Errorf("ids stand in %q", found)
		}
	}
	for _, length := range []int{1, 2, 12, 20, 30, 63} {
		var names []string
		for i := range 5 {
			names = append(names, (strings.Repeat("älong", 13)[:length+length/10] + fmt.Sprint(i)))
		}
		for n := 1; n <= len(names); n += 2 {
			f(n, length, wide(names[:n]...), Write)
			f(n, length, wide(names[:n]...), WriteCluster)
		}
	}
}

// Names that fit are whole, and the ends of longer ones tell nodes apart.
func TestLongNamesLoseTheirMiddle(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	must.Do(t, Write(&b, wide("node-1", "node-2", "node-3")))
	for _, want := range []string{
		"node-3  up     europe-north-node-3  https://nod…e.org:7420", "shard 3   node-1  12345  5       1234567890  12345678  node-1 leader (123456),\n",
		"! node node-1: a damaged", "! member node-2 has lost", "> shard 1 moves to node-2 (7 entries behind), away from node-1",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("missing %q in\n%s", want, b.String())
		}
	}
}

func TestNodesWithOneNameKeepIDs(t *testing.T) {
	t.Parallel()
	s := wide("twin", "twin", "other")
	text := fmt.Sprintf("node twin (%s) and node other (%s) and %s", s.Nodes[0].ID, s.Nodes[2].ID, id.Node{UUID: id.Random([16]byte{9})})
	want := strings.Replace(text, fmt.Sprintf(" (%s)", s.Nodes[2].ID), "", 1)
	if got := named(text, s); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHealthFollowsTheStatus(t *testing.T) {
	t.Parallel()
	f := func(what string, want Health, change func(*wire.Status)) {
		t.Helper()
		s := wide("a", "b", "c")
		s.Warnings = nil
		for i := range s.Nodes {
			s.Nodes[i].Parts[0].Error = ""
		}
		change(&s)
		if got := HealthOf(s); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	f("all well, shards on the move", Healthy, func(*wire.Status) {})
	f("a warning", Warned, func(s *wire.Status) { s.Warnings = []string{"w"} })
	f("a part that fails", Warned, func(s *wire.Status) { s.Nodes[1].Parts[0].Error = "e" })
	f("a part that does not run", Warned, func(s *wire.Status) { s.Nodes[1].Parts[0].Running = false })
	f("a cluster that is not founded", Broken, func(s *wire.Status) { s.Founded = false })
	f("shards whose leader does not answer", Broken, func(s *wire.Status) {
		s.Warnings = []string{"w"}
		s.Nodes[2].Groups, s.Nodes[2].Answers = nil, false
	})
	f("meta without a leader", Broken, func(s *wire.Status) { s.Nodes[0].Groups[0].Role = "candidate" })
}
