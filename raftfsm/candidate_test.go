package raftfsm

import (
	"cmp"
	"context"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
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
func failsOver(t *testing.T, c *cluster, first id.Member) {
	t.Helper()
	for round := range 5 {
		if c.leader().name == first {
			t.Fatalf("round %d: %s leads", round, first)
		}
		if took := failover(t, c); took >= heartbeatDefault/5 {
			t.Errorf("round %d: a write %s after the leader's end", round, took)
		}
		time.Sleep(time.Duration(round) * 37 * time.Millisecond) // at another phase of the timers
	}
}

// failsOverBeside adds a member that may not vote, and does the work of failsOver.
func failsOverBeside(t *testing.T, c *cluster, nonvoter id.Member) {
	t.Helper()
	leader := c.leader()
	_, index, err := leader.Servers()
	if err == nil {
		err = leader.AddNonvoter(t.Context(), nonvoter, index)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.agree()
	failsOver(t, c, nonvoter)
}

// Nobody leaves an election to a member that may not vote.
func TestVotersDoNotWaitForNonvoter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newWires(), nil)
		all := ranked(4)
		c.found(all[1:]...)
		c.propose("x")
		c.open(all[0])
		failsOverBeside(t, c, all[0])
		c.close()
		settle()
	})
}

// agreed returns a cluster of n members that agree, and the members in the order in which they
// stand for election.
func agreed(t *testing.T, n int) (*cluster, []id.Member) {
	t.Helper()
	c, all := newCluster(t, newWires(), nil), ranked(n)
	c.found(all...)
	c.propose("x")
	c.agree()
	return c, all
}

// Nobody waits for the word of an empty member as if it were the voter whose node it has.
func TestVotersDoNotWaitForWipedNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, all := agreed(t, 5)
		node, err := all[0].Node()
		if err != nil {
			t.Fatal(err)
		}
		c.stop(all[0])
		empty := id.NewMember(node, 2)
		c.open(empty)
		c.address.Store(all[0], string(empty)) // the same node at the same address
		failsOverBeside(t, c, empty)
		c.close()
		settle()
	})
}

// Nobody waits for a member that votes and takes no leadership.
func TestVotersDoNotWaitForResignedMember(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, all := agreed(t, 5)
		if err := c.members[all[0]].Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.leader(all[1:]...)
		failsOver(t, c, all[0])
		c.close()
		settle()
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, cut := newWires(), new(atomic.Value)
		c := newCluster(t, w, func(cfg *Config) { cfg.Stream = hanging{cfg.Stream, cfg.Self, cut} })
		c.found(nodeNames(3)...)
		c.propose("x")
		c.agree()
		for round := range 5 {
			old := c.leader()
			rest := c.others(old)
			start := time.Now()
			cut.Store(old.name)
			w.part(1, old.name) // ends the streams
			w.part(0, old.name)
			c.propose("after the leader's silence", rest...)
			if took := time.Since(start); took > heartbeatDefault*5/4 {
				t.Errorf("round %d: a write %s after the leader's silence", round, took)
			}
			cut.Store(id.Member(""))
			time.Sleep(3 * electionDefault)
			c.agree()
		}
		c.close()
		settle()
	})
}
