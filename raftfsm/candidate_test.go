package raftfsm

import (
	"cmp"
	"context"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm/transport"
)

// ranked returns members in the order in which they stand for election if their logs are equal.
func ranked(n int) []id.Member {
	list := nodeNames(n)
	slices.SortFunc(list, func(a, b id.Member) int {
		return cmp.Compare(transport.Spread(7, a), transport.Spread(7, b))
	})
	return list
}

// failsOver fails the test if writes stop for long at any of several deaths of a leader, which
// is not first.
func failsOver(t *testing.T, c *cluster, rounds int, first id.Member) {
	t.Helper()
	for round := range rounds {
		if c.leader().name == first {
			t.Fatalf("round %d: %s leads", round, first)
		}
		if took := failover(t, c); took >= heartbeatDefault/5 {
			t.Errorf("round %d: a write %s after the leader's end", round, took)
		}
		time.Sleep(time.Duration(round) * 37 * time.Millisecond) // at another phase of the timers
	}
}

// wipe stops a member, and opens an empty one on its node.
func (c *cluster) wipe(name id.Member) id.Member {
	c.t.Helper()
	node, err := name.Node()
	must.Do(c.t, err)
	c.stop(name)
	empty := id.NewMember(node, 2)
	c.open(empty)
	c.address.Store(name, string(empty)) // the same node at the same address
	return empty
}

// Nobody leaves an election to a member that may not vote.
func TestVotersDoNotWaitForNonvoter(t *testing.T) {
	all := ranked(4)
	inGroup(t, all[1:], nil, func(t *testing.T, c *cluster) {
		c.open(all[0])
		c.addNonvoter(all[0])
		failsOver(t, c, 5, all[0])
	})
}

// Nobody waits for the word of an empty member as if it were the voter whose node it has.
func TestVotersDoNotWaitForWipedNode(t *testing.T) {
	all := ranked(5)
	inGroup(t, all, nil, func(t *testing.T, c *cluster) {
		empty := c.wipe(all[0])
		c.addNonvoter(empty)
		failsOver(t, c, 5, empty)
	})
}

// Nobody waits for a member that votes and takes no leadership.
func TestVotersDoNotWaitForResignedMember(t *testing.T) {
	all := ranked(5)
	inGroup(t, all, nil, func(t *testing.T, c *cluster) {
		must.Do(t, c.members[all[0]].Resign(t.Context()))
		c.leader(all[1:]...)
		failsOver(t, c, 5, all[0])
	})
}

// hanging is the network of a member. Dials to and from cut get no answer.
type hanging struct {
	transport.StreamLayer
	self id.Member
	cut  *atomic.Value // id.Member
}

func (h hanging) Dial(ctx context.Context, address string) (net.Conn, error) {
	if cut := h.cut.Load(); cut == id.Member(address) || cut == h.self {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.StreamLayer.Dial(ctx, address)
}

// A leader's streams end, and then its machine is silent. The followers that dial it in vain do
// not miss the silence.
func TestSilenceIsNoticedAfterStreamsEnd(t *testing.T) {
	cut := new(atomic.Value)
	tune := func(cfg *Config) { cfg.Stream = hanging{cfg.Stream, cfg.Self, cut} }
	inGroup(t, nodeNames(3), tune, func(t *testing.T, c *cluster) {
		for round := range 5 {
			old := c.leader()
			rest := c.others(old)
			start := time.Now()
			cut.Store(old.name)
			c.wires.part(1, old.name) // ends the streams
			c.wires.part(0, old.name)
			c.propose("after the leader's silence", rest...)
			if took := time.Since(start); took > heartbeatDefault*5/4 {
				t.Errorf("round %d: a write %s after the leader's silence", round, took)
			}
			cut.Store(id.Member(""))
			time.Sleep(3 * electionDefault)
			c.agree()
		}
	})
}
