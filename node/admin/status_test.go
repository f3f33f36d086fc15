package admin

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/node/wire"
)

func TestWarningsGroupShards(t *testing.T) {
	t.Parallel()
	// status of three voters, of which those answer that lead and follow name.
	status := func(lead, follow []id.Shard) wire.Status {
		s := wire.Status{Founded: true, Shards: 6, Replicas: 3, Nodes: []wire.Member{{Answers: true}, {Answers: true}, {Answers: true}}}
		for i, groups := range [][]id.Shard{lead, follow} {
			for _, g := range groups {
				s.Nodes[i].Groups = append(s.Nodes[i].Groups, wire.GroupStatus{Group: g, Role: []string{"leader", "follower"}[i], Voters: 3})
			}
		}
		return s
	}
	all := []id.Shard{0, 1, 2, 3, 4, 5, 6}
	f := func(s wire.Status, want ...string) {
		t.Helper()
		if d := cmp.Diff(append([]string{}, want...), warnings(s)); d != "" {
			t.Error(d)
		}
	}
	f(status(all, all), "meta, shards 1-6 have 2 of 3 replicas: one more death stops them")
	f(status(all[1:], all[1:]), "meta has no leader that answers: its data can't be read or written", "shards 1-6 have 2 of 3 replicas: one more death stops them")
	f(status([]id.Shard{0, 1, 3, 5, 6}, all), "shards 2, 4 have no leader that answers: their data can't be read or written",
		"meta, shards 1, 3, 5-6 have 2 of 3 replicas: one more death stops them")
	s := status(all, all)
	for _, g := range all[1:6] { // they have the third replica; shard 6 was not given it yet
		s.Nodes[2].Groups = append(s.Nodes[2].Groups, wire.GroupStatus{Group: g, Role: "follower", Voters: 3})
	}
	s.Nodes[2].Groups = append(s.Nodes[2].Groups, wire.GroupStatus{Group: 0, Role: "follower", Voters: 3}, wire.GroupStatus{Group: 6, Role: "non-voter", Voters: 2})
	for i := range 2 {
		s.Nodes[i].Groups[6].Voters = 2
	}
	f(s, "shard 6 has 2 of 3 replicas: one more death stops it")

	one := wire.Status{Founded: true, Shards: 2, Replicas: 1, Nodes: []wire.Member{{Answers: true}, {Answers: true}, {Answers: true}}}
	for i, role := range []string{"leader", "follower", "follower"} {
		one.Nodes[i].Groups = []wire.GroupStatus{{Group: 0, Role: role, Voters: 3}}
	}
	for i := range 2 { // shard 2 has still to lose one
		one.Nodes[0].Groups = append(one.Nodes[0].Groups, wire.GroupStatus{Group: id.Shard(i + 1), Role: "leader", Voters: 1 + 2*i})
		one.Nodes[i].Groups = append(one.Nodes[i].Groups, wire.GroupStatus{Group: 2, Role: "follower", Voters: 3})
	}
	f(one, "shard 1 has one replica, as ordered: the death of its node stops a shard, and the loss of its disk loses it (facet cluster replicas 3)")
	if got := voting(one.Nodes); !maps.Equal(got, map[int]int{1: 1, 3: 1}) {
		t.Errorf("the shards have voters %v", got)
	}
}
