package raftfsm

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/internal/id"
	"facet/raftfsm/transport"
)

// everybody is all members, where one may be named.
const everybody id.Member = "everybody"

const proofWay = 2 * time.Millisecond // one way between two nodes

// provers send the proofs of nodes. nil provers send none.
type provers struct {
	wires *wires
	old   atomic.Bool  // the nodes don't know the message
	stuck atomic.Value // the id.Member that does not answer
	sent  atomic.Int64 // messages

	mu sync.Mutex // guards of
	of map[id.Member]*Proofs
}

// begin returns what makes a member of a cluster on w send its proofs together.
func (p *provers) begin(t *testing.T, w *wires) func(*Config) {
	if p == nil {
		return nil
	}
	p.wires, p.of = w, map[id.Member]*Proofs{}
	t.Cleanup(func() {
		for _, o := range p.of {
			o.Close()
		}
	})
	return func(cfg *Config) { cfg.Proofs = p.node(cfg.Self) }
}

func (p *provers) node(m id.Member) *Proofs {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[m] == nil {
		p.of[m] = NewProofs(func(ctx context.Context, to id.Member, q, a any) (err error) {
			p.sent.Add(1)
			if time.Sleep(proofWay); p.old.Load() || !p.wires.reach(m, to) {
				return errors.New("unknown method")
			}
			if at := p.stuck.Load(); at == to || at == everybody {
				<-ctx.Done()
				return ctx.Err()
			}
			from, _ := m.Node()
			*a.(*ProofsAnswer), err = p.node(to).Serve(from, q.(ProofsQuestion))
			if time.Sleep(proofWay); !p.wires.reach(m, to) {
				return errors.New("cut off")
			}
			return err
		})
	}
	return p.of[m]
}

func TestLeaderProvenTogetherSeesAllWrites(t *testing.T) {
	readsSeeAll(t, &provers{}, readIndex)
}

// A voter's question is its own word for the leader.
func TestAskingVoterSeesAcknowledgedWrites(t *testing.T) {
	readsSeeAll(t, &provers{}, func(ctx context.Context, _ *cluster, m *member) error {
		point, ok := AskLeader(ctx, m.Group)
		if !ok {
			return &NotLeaderError{}
		}
		return m.WaitPoint(ctx, point)
	})
}

// proving runs a test with groups whose leader is the first member.
func proving(t *testing.T, groups, voters int, do func(t *testing.T, p *provers, groups []*cluster, members []id.Member)) {
	bubble(t, func(t *testing.T) {
		p, members := &provers{}, nodeNames(voters)
		do(t, p, ledGroups(t, groups, members, p.begin(t, newWires())), members)
	})
}

func TestProofsOfGroupsGoTogether(t *testing.T) {
	const groups, rounds = 8, 50
	proving(t, groups, 3, func(t *testing.T, p *provers, all []*cluster, members []id.Member) {
		messages := p.sent.Load()
		for range rounds {
			var work sync.WaitGroup
			for _, c := range all {
				work.Go(func() {
					if _, err := c.members[members[0]].ReadIndex(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			work.Wait()
			time.Sleep(10 * time.Millisecond)
		}
		// The first ones go at once, and the rest together.
		if n := p.sent.Load() - messages; n > 2*2*rounds {
			t.Errorf("%d messages for %d rounds of %d groups with two other voters", n, rounds, groups)
		}
	})
}

func TestAskedLeaderAsksNobody(t *testing.T) {
	proving(t, 1, 3, func(t *testing.T, p *provers, all []*cluster, members []id.Member) {
		messages := p.sent.Load()
		began := time.Now()
		point, ok := AskLeader(t.Context(), all[0].members[members[1]].Group)
		if !ok || point.Leader != members[0] || point.Index == 0 {
			t.Errorf("got %+v, %v", point, ok)
		}
		if took := time.Since(began); took > 2*proofWay || p.sent.Load() != messages+1 {
			t.Errorf("%d messages in %s", p.sent.Load()-messages, took)
		}
	})
}

func TestTwoOfFiveProveNothing(t *testing.T) {
	proving(t, 1, 5, func(t *testing.T, _ *provers, all []*cluster, members []id.Member) {
		if point, ok := AskLeader(t.Context(), all[0].members[members[1]].Group); ok {
			t.Errorf("a leader of five voters answers one of them at once: %+v", point)
		}
		if _, err := all[0].members[members[0]].ReadIndex(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// On the wrong side of a partition a leader has two members without a vote.
func TestAskingNonvoterProvesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		members := nodeNames(5)
		w := newWires()
		c := newCluster(t, w, (&provers{}).begin(t, w))
		withNonvoters(c, members)
		old := c.leader()
		w.part(1, members[3], members[4], old.name)
		if point, ok := AskLeader(t.Context(), c.members[members[3]].Group); ok {
			t.Errorf("got %+v", point)
		}
		w.part(0, members[3], members[4], old.name)
		c.agree()
	})
}

// A node that does not answer costs nobody a read, and an older one proves on streams.
func TestReadsOutliveSilentProofs(t *testing.T) {
	proving(t, 2, 3, func(t *testing.T, p *provers, all []*cluster, members []id.Member) {
		reads := func(why string) {
			t.Helper()
			for range 100 {
				began := time.Now()
				for _, c := range all {
					if _, err := c.members[members[0]].ReadIndex(t.Context()); err != nil {
						t.Errorf("%s: %v", why, err)
					}
				}
				if took := time.Since(began); took > 10*proofWay {
					t.Errorf("%s: two reads took %s", why, took)
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
		p.stuck.Store(members[1])
		reads("one voter is silent")
		p.stuck.Store(everybody)
		slow := 0
		for range 100 {
			began := time.Now()
			if _, err := all[0].members[members[0]].ReadIndex(t.Context()); err != nil {
				t.Error(err)
			}
			if time.Since(began) > 10*proofWay {
				slow++
			}
			time.Sleep(20 * time.Millisecond)
		}
		if slow == 0 || slow > 3 {
			t.Errorf("%d of 100 reads waited for messages that nobody answers", slow)
		}
		p.stuck.Store(members[0])
		p.old.Store(true)
		reads("the voters don't know the message")
	})
}

func TestForeignProofsAreRefused(t *testing.T) {
	t.Parallel()
	members := nodeNames(2)
	from, _ := members[0].Node()
	p := NewProofs(nil)
	defer p.Close()
	f := func(q ProofsQuestion, refused bool) {
		t.Helper()
		if a, err := p.Serve(from, q); (err != nil) != refused {
			t.Errorf("%d proofs of %s: %+v, %v", len(q.Proofs), q.Member, a, err)
		}
	}
	f(ProofsQuestion{Member: members[0]}, false)
	f(ProofsQuestion{Member: members[1]}, true)
	f(ProofsQuestion{Member: "nobody"}, true)
	f(ProofsQuestion{Member: members[0], Proofs: make([]transport.Proof, 5000)}, true)
}
