package raftfsm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/internal/must"
)

// withNonvoters founds three voters and adds the other members without a vote.
func withNonvoters(c *cluster, members []id.Member) {
	c.t.Helper()
	c.found(members[:3]...)
	c.propose("x")
	for _, n := range members[3:] {
		c.open(n)
		c.addNonvoter(n)
	}
}

func TestNonvotersDoNotConfirmLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, newWires(), nil)
		withNonvoters(c, names(5))
		old := c.leader()
		minority := append(names(5)[3:], old.name)
		c.wires.part(1, minority...)
		// Before the lease has run out, raft's own check counts the non-voters.
		if err := old.raft.VerifyLeader().Error(); err != nil {
			t.Errorf("stock VerifyLeader now refuses (%v): our own rounds are no longer needed", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if index, err := old.ReadIndex(ctx); !errors.As(err, new(*NotLeaderError)) {
			t.Errorf("read index on the wrong side: got %d, %v, want NotLeaderError", index, err)
		}
		c.wires.part(0, minority...)
		c.propose("healed")
		c.agree()
	})
}

func TestReadSeesAcknowledgedWrites(t *testing.T) {
	readsSeeAll(t, nil, readIndex)
}

func readIndex(ctx context.Context, _ *cluster, m *member) error {
	index, err := m.ReadIndex(ctx)
	if err != nil {
		return err
	}
	return m.WaitApplied(ctx, index)
}

func TestFollowerReadSeesAcknowledgedWrites(t *testing.T) {
	readsSeeAll(t, nil, func(ctx context.Context, c *cluster, m *member) error {
		leader, known := m.Leader()
		if !known || !c.wires.reach(m.name, leader) {
			return &NotLeaderError{}
		}
		p, err := c.members[leader].ReadPoint(ctx)
		if err != nil {
			return err
		}
		return m.WaitPoint(ctx, p)
	})
}

func TestReadPointCommitsOnFollower(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		leader := c.leader()
		for _, name := range c.others(leader) {
			for range 20 {
				c.propose("y", leader.name)
				start := time.Now()
				p, err := leader.ReadPoint(t.Context())
				if err == nil {
					err = c.members[name].WaitPoint(t.Context(), p)
				}
				must.Do(t, err)
				if took := time.Since(start); took > 10*time.Millisecond {
					t.Errorf("%s read what was just written after %s", name, took)
				}
				time.Sleep(time.Second)
			}
		}
		// A point of an earlier leader proves nothing.
		old, err := leader.ReadPoint(t.Context())
		must.Do(t, err)
		must.Do(t, leader.Resign(t.Context()))
		c.propose("z")
		c.agree() // or the entry behind the follower's last may be one that is committed
		now := c.leader()
		follower := c.members[c.others(now)[0]]
		old.Index = follower.Status().Last + 1
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := follower.WaitPoint(ctx, old); err == nil {
			t.Error("a point of an earlier term is taken for what is committed")
		}
		c.agree()
	})
}

// readsSeeAll calls read on every member, while clients write and leaders are cut off.
// The members' proofs travel by p, or on streams.
func readsSeeAll(t *testing.T, p *provers, read func(context.Context, *cluster, *member) error) {
	bubble(t, func(t *testing.T) {
		w := newWires()
		c := newCluster(t, w, p.begin(t, w))
		c.found(nodeNames(3)...)
		c.propose("x")
		var mu sync.Mutex
		var acknowledged uint64 // the highest answer that a writer got
		var wg sync.WaitGroup
		done := make(chan struct{})
		for i := range 4 {
			wg.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-done:
						return
					default:
					}
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					answer, err := c.leader().Propose(ctx, fmt.Append(nil, i, n))
					cancel()
					if err != nil {
						continue
					}
					mu.Lock()
					acknowledged = max(acknowledged, binary.BigEndian.Uint64(answer))
					mu.Unlock()
					time.Sleep(20 * time.Millisecond)
				}
			})
		}
		reads := 0
		for _, m := range c.members {
			wg.Go(func() { // each member is asked for reads all the time, leader or not
				for n := 0; ; n++ {
					select {
					case <-done:
						return
					case <-time.After(30 * time.Millisecond):
					}
					mu.Lock()
					want := acknowledged
					mu.Unlock()
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					err := read(ctx, c, m)
					cancel()
					if err != nil {
						continue
					}
					if got := m.journal.count(); got < want {
						t.Errorf("%s read %d commands, %d were acknowledged before", m.name, got, want)
					}
					mu.Lock()
					reads++
					mu.Unlock()
				}
			})
		}
		for range 6 { // cut each leader off in turn
			time.Sleep(2 * time.Second)
			m := c.leader().name
			w.part(1, m)
			time.Sleep(3 * time.Second)
			w.part(0, m)
		}
		close(done)
		wg.Wait()
		if reads < 200 {
			t.Errorf("only %d reads succeeded", reads)
		}
		c.agree()
	})
}

func TestReadIndexOnFollowerNamesLeader(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		leader := c.leader()
		follower := c.members[c.others(leader)[0]]
		_, read := follower.ReadIndex(t.Context())
		_, proposed := follower.Propose(t.Context(), []byte("x"))
		for _, err := range []error{read, proposed} {
			if e := (*NotLeaderError)(nil); !errors.As(err, &e) || e.Leader != leader.name {
				t.Errorf("got %v, want a NotLeaderError that names %s", err, leader.name)
			}
		}
	})
}

func TestReadIndexWaitsForOwnTerm(t *testing.T) {
	inGroup(t, names(1), nil, func(t *testing.T, c *cluster) {
		m := c.members["member-a"]
		synctest.Wait() // until the marker of the term is applied, too
		// As right after an election: nothing of this term was applied yet.
		m.fsm.mu.Lock()
		term := m.fsm.term
		m.fsm.term--
		m.fsm.mu.Unlock()
		got := make(chan error, 1)
		go func() { _, err := m.ReadIndex(context.Background()); got <- err }()
		time.Sleep(time.Second)
		select {
		case err := <-got:
			t.Errorf("answered %v before an entry of the term was applied", err)
			got <- err
		default:
		}
		m.fsm.advance(m.Applied(), term)
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}
