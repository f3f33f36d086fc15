package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node"
	"facet/node/audit/entry"
	"facet/node/backup"
	"facet/node/nodetest"
	"facet/node/wire"
)

// endsOf returns what the cluster's log says of the acts with an operation, the first one first.
func endsOf(t *testing.T, n *node.Node, operation string) (reasons []string) {
	t.Helper()
	for _, r := range n.ClusterRecords(t) {
		if r.Kind == entry.Act.String() && r.Operation == operation {
			reasons = append(reasons, r.Reason)
		}
	}
	slices.Reverse(reasons)
	return reasons
}

// hasEnds fails the test unless the log gets these ends and no more: each is a prefix and a part of a reason.
func hasEnds(t *testing.T, n *node.Node, operation string, want ...[2]string) {
	t.Helper()
	until(func() bool { return len(endsOf(t, n, operation)) >= len(want) })
	time.Sleep(time.Second)
	got := endsOf(t, n, operation)
	if len(got) != len(want) {
		t.Fatalf("%s: the log has %q, want %q", operation, got, want)
	}
	for i, reason := range got {
		if !strings.HasPrefix(reason, want[i][0]) || !strings.Contains(reason, want[i][1]) || !strings.Contains(reason, ", begun 20") {
			t.Errorf("%s: the log has %q, want %q", operation, reason, want[i])
		}
	}
}

// waitJob waits for the end of a node's job that was begun.
func waitJob(t *testing.T, b *backup.Service, begun bool) {
	t.Helper()
	if !begun || !until(func() bool { return !b.Progress("").Running }) {
		t.Fatalf("begun: %v: %+v", begun, b.Progress(""))
	}
}

// A shard moves by an operator's order and another because its node leaves: each move has one act.
func TestEndsOfMovesAreRecorded(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		// 5 shards × 3 votes on 4 nodes: three nodes have 4, and one has 3.
		cluster := nodetest.Start(t, nodetest.Options{Nodes: 4, Shards: 5})
		waitNewest(t, cluster)
		first := cluster.Nodes[0].Node
		s := first.Status(t.Context())
		names := map[id.Node]string{}
		for _, m := range s.Nodes {
			names[m.ID] = m.Name
		}
		i := slices.IndexFunc(s.Nodes, func(m wire.Member) bool { return holds(s, m.ID) == 3 })
		if i < 0 {
			t.Fatalf("nobody has three votes: %+v", s.Nodes)
		}
		to, from := s.Nodes[i].ID, s.Nodes[(i+1)%4].ID
		shard := id.Shard(1)
		for votesIn(s.Nodes[i], shard) {
			shard++
		}
		must.Do(t, first.Admin().MoveShard(t.Context(), wire.ShardOrder{Shard: shard, From: from, To: to}))
		eventually(t, first, "the shard has moved", func(s wire.Status) bool { return settled(s) && holds(s, to) == 4 })
		for what, bad := range map[string]wire.ShardOrder{
			"an unknown shard":         {Shard: 99, From: from, To: to},
			"a node without a vote":    {Shard: shard, From: from, To: to},
			"a node that is not there": {Shard: shard, From: to, To: id.Node{UUID: id.UUID{1}}},
		} {
			if err := first.Admin().MoveShard(t.Context(), bad); err == nil {
				t.Errorf("%s: %+v is carried out", what, bad)
			}
		}
		time.Sleep(2 * time.Second) // it stays
		if s := first.Status(t.Context()); !settled(s) || holds(s, to) != 4 {
			t.Errorf("the shard moves on: %+v", s)
		}
		hasEnds(t, first, "move a shard", [2]string{fmt.Sprintf("done: shard %d, begun ", shard), names[from]})
		before, after, _ := strings.Cut(endsOf(t, first, "move a shard")[0], " to ")
		if _, before, _ = strings.Cut(before, " from "); strings.Contains(before, names[to]) || strings.Contains(after, names[from]) || !strings.Contains(after, names[to]) {
			t.Errorf("the move from %s to %s was from %q to %q", names[from], names[to], before, after)
		}
		leaves := cluster.Nodes[3].Node.ID()
		moves := holds(first.Status(t.Context()), leaves)
		setState(t, first, leaves, wire.StateDraining)
		eventually(t, first, "the node holds nothing", func(s wire.Status) bool { return settled(s) && holds(s, leaves) == 0 })
		until(func() bool { return len(endsOf(t, first, "move a shard")) >= 1+moves })
		time.Sleep(time.Second)
		done := map[string]int{}
		for _, reason := range endsOf(t, first, "move a shard")[1:] {
			what, _, _ := strings.Cut(reason, ", begun ")
			done[what]++
			if !strings.Contains(reason, ", begun 20") || strings.Contains(reason[strings.Index(reason, " to "):], names[leaves]) {
				t.Errorf("the log has %q", reason)
			}
		}
		if len(done) != moves {
			t.Errorf("%d shards have left the node, and the log has %v", moves, done)
		}
		for what, n := range done {
			if n != 1 || !strings.HasPrefix(what, "done: shard ") {
				t.Errorf("the log has %q %d times", what, n)
			}
		}
	})
}
