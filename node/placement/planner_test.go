package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

// TestLateFounderKeepsShards: the map names founders before they are
// in meta's records.
func TestLateFounderKeepsShards(t *testing.T) {
	t.Parallel()
	var records []metafsm.Node
	var seats []metafsm.Seat
	zones := map[id.Member]string{}
	for i, zone := range []string{"a", "b", "c", "a"} {
		n := id.Node{UUID: id.UUID{byte(i + 1)}}
		m := id.NewMember(n, 1)
		records = append(records, metafsm.Node{ID: n, Member: m, Zone: zone})
		seats = append(seats, metafsm.Seat{Member: m, Zone: zone})
		zones[m] = zone
	}
	shards := metafsm.Place(seats, 8, 3)
	plan := func(records []metafsm.Node) []metafsm.ShardVoters {
		var seats []metafsm.Seat
		for _, r := range withFounders(records, shards, zones) {
			seats = append(seats, metafsm.Seat{Member: r.Member, Zone: r.Zone})
		}
		return metafsm.Replan(shards, seats, 3, nil)
	}
	want := plan(records)
	for i, r := range records {
		late := append(append([]metafsm.Node{}, records[:i]...), records[i+1:]...)
		moved := func(got []metafsm.ShardVoters) (n int) {
			for s := range got {
				n += len(without(want[s].Voters, got[s].Voters))
			}
			return n
		}
		if n := moved(plan(late)); n > 0 {
			t.Errorf("node %d has no record yet: %d votes move", i+1, n)
		}
		again := append(late, metafsm.Node{ID: r.ID, Member: id.NewMember(r.ID, 2), Zone: r.Zone})
		if got := withFounders(again, shards, zones); cmp.Diff(again, got) != "" {
			t.Errorf("node %d came back with an empty disk: its former self is a seat: %v", i+1, got)
		}
	}
}

// Nobody could carry out its move, and it would keep others from moving.
func TestShardWithoutMajorityStays(t *testing.T) {
	t.Parallel()
	now := []metafsm.ShardVoters{
		{Shard: 1, Voters: letters("a")},
		{Shard: 2, Voters: letters("b")},
		{Shard: 3, Voters: letters("abc")},
		{Shard: 4, Voters: letters("acd")},
		{Shard: 5, Voters: letters("a"), Moving: true},
	}
	plan := make([]metafsm.ShardVoters, len(now))
	for i, at := range now {
		plan[i] = metafsm.ShardVoters{Shard: at.Shard, Voters: letters("e")}
	}
	stay(plan, now, map[id.Member]bool{"b": true, "c": true})
	var stays []id.Shard
	for i, at := range plan {
		if at.Voters[0] != "e" {
			stays = append(stays, now[i].Shard)
		}
	}
	if want := []id.Shard{1, 4}; !cmp.Equal(stays, want) {
		t.Errorf("shards %v stay, want %v", stays, want)
	}
}
