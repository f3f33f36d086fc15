package placement

import (
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/node/membership"
	"facet/raftfsm/metafsm"
)

// records are a node's replica of meta with nothing but records of nodes.
type records struct {
	Replicas
	meta *metafsm.Machine
}

func (r records) Meta() *metafsm.Machine { return r.meta }

// seen are the nodes that gossip shows.
type seen []membership.Member

func (s *seen) Members() []membership.Member { return *s }

func TestMissedNodeIsAwayInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		meta := metafsm.New()
		var nodes []membership.Member
		for i := range 3 {
			n := id.Node{UUID: id.UUID{byte(i + 1)}}
			m := id.NewMember(n, 1)
			meta.Apply(uint64(i+1), metafsm.PutNodeOp.Encode(metafsm.PutNode{Node: metafsm.Node{ID: n, Member: m, Level: metafsm.Level}}))
			nodes = append(nodes, membership.Member{Meta: membership.Meta{Member: m}})
		}
		there := seen(nodes)
		p := New(Config{Self: nodes[0].Member, Away: 10 * time.Minute, Replicas: records{meta: meta}, Gossip: &there})
		f := func(what string, wait time.Duration, missed, away bool) {
			t.Helper()
			time.Sleep(wait)
			seats, _ := p.seats(p.missed)
			if len(seats) != 3 {
				t.Fatalf("%s: %d seats, want 3", what, len(seats))
			}
			for _, s := range seats {
				last := s.Member == nodes[2].Member
				if s.Missed != (last && missed) || s.Away != (last && away) {
					t.Errorf("%s: %+v; want missed %v, away %v of the third", what, s, missed, away)
				}
			}
			if seats, _ := p.Seats(); seats[2].Away {
				t.Errorf("%s: a plan takes it for away", what)
			}
		}
		f("there", time.Hour, false, false)
		there = seen(nodes[:2])
		f("gone", time.Hour, true, false)
		f("gone for a while", 10*time.Minute-1, true, false)
		f("gone for too long", 1, true, true)
		there = nodes
		f("back", 0, false, false)
		there = seen(nodes[:2])
		f("gone again", 0, true, false)
		clear(p.missed) // another node led meta meanwhile
		f("under a new leader", 9*time.Minute, true, false)
	})
}

// The number that is wanted counts, not the one that shards have yet.
func TestNodeMayLeaveByWantedNumber(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wanted, nodes, drained int
		want                   bool
	}{{3, 4, 0, true}, {3, 3, 0, false}, {5, 5, 0, false}, {5, 6, 0, true}, {5, 6, 1, false}, {5, 4, 0, false}, {1, 2, 0, true}, {1, 1, 0, false}} {
		meta := metafsm.New()
		apply := func(cmd []byte) { meta.Apply(1, cmd) }
		apply(metafsm.FoundOp.Encode(metafsm.Found{Cluster: metafsm.Cluster{Shards: 1, Replicas: 3}}))
		apply(metafsm.SetReplicasOp.Encode(metafsm.SetReplicas{Replicas: c.wanted}))
		for i := range c.nodes {
			n := id.Node{UUID: id.UUID{byte(i + 1)}}
			apply(metafsm.PutNodeOp.Encode(metafsm.PutNode{Node: metafsm.Node{ID: n, Member: id.NewMember(n, 1), Level: metafsm.Level}}))
			if i >= c.nodes-c.drained {
				apply(metafsm.SetNodeStateOp.Encode(metafsm.SetNodeState{Node: n, State: metafsm.NodeDraining}))
			}
		}
		p := New(Config{Replicas: records{meta: meta}})
		if err := p.MayLeave(id.Node{UUID: id.UUID{1}}); (err == nil) != c.want {
			t.Errorf("%d replicas, %d nodes, %d of them drained: %v", c.wanted, c.nodes, c.drained, err)
		}
	}
}
