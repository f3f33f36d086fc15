package raftfsm

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/id"
	"facet/raftfsm/transport"
)

// A read (Ongaro 2014, §6.4) needs an index that covers every write acknowledged
// before it began:
//
//  1. wait until an entry of this leader's term is applied: from then on its commit
//     index is at least any earlier leader's;
//  2. take the commit index;
//  3. confirm that, after step 2, a majority of the voters had not left the term.
//
// raft.VerifyLeader can't do the third step: it counts the answers of non-voters too
// (v1.7.3 and v1.8.0), so a deposed leader with two non-voters on its side of a partition
// would confirm itself. So the leader asks the voters here. That does not need raft's main
// goroutine, which may be writing.
//
// A voter that asks for a read point says that it has not left the term. With one that is a
// majority of three, the leader asks nobody (transport.AskPoint).
//
// One round runs at a time. Callers that come while it runs share the next.

// roundTick is how often a waiting round checks that this member still leads, and asks
// the voters again that gave no answer.
const roundTick = 20 * time.Millisecond

// pointTick is how often WaitPoint checks whether the entry has arrived.
const pointTick = 2 * time.Millisecond

// readRequest is one caller of ReadIndex.
type readRequest struct{ answer chan readAnswer } // capacity 1

type readAnswer struct {
	point ReadPoint
	err   error
}

// ReadPoint is an entry of the log. A machine that has applied the entry reflects every
// command that any member acknowledged before the point was requested. A ReadPoint may be
// sent to other members.
type ReadPoint struct {
	Index  uint64    `cbor:"1,keyasint"`
	Term   uint64    `cbor:"2,keyasint"` // of the entry at Index, and of the leader that gave the point
	Leader id.Member `cbor:"3,keyasint"`
}

// ReadIndex returns an index. A machine that has applied it reflects every command
// acknowledged before ReadIndex was called. Members that do not lead return
// *NotLeaderError.
func (g *Group) ReadIndex(ctx context.Context) (uint64, error) {
	p, err := g.ReadPoint(ctx)
	return p.Index, err
}

// ReadPoint does the same as ReadIndex, for a read on another member. That member calls
// WaitPoint with the result.
func (g *Group) ReadPoint(ctx context.Context) (ReadPoint, error) {
	if g.raft.State() != raft.Leader {
		return ReadPoint{}, g.notLeader()
	}
	q := readRequest{answer: make(chan readAnswer, 1)}
	select {
	case g.reads.requests <- q:
	case <-ctx.Done():
		return ReadPoint{}, fmt.Errorf("read index: %w", ctx.Err())
	case <-g.stop:
		return ReadPoint{}, ErrClosed
	}
	select {
	case a := <-q.answer:
		return a.point, a.err
	case <-ctx.Done():
		return ReadPoint{}, fmt.Errorf("read index: %w", ctx.Err())
	case <-g.stop:
		return ReadPoint{}, ErrClosed
	}
}

// AskLeader returns a read point of the leader that g's member follows. ok is false if the
// leader can't give it at once; its ReadPoint then asks the other voters.
func AskLeader(ctx context.Context, g *Group) (p ReadPoint, ok bool) {
	point, ok := transport.AskPoint(ctx, g.transport)
	return ReadPoint(point), ok
}

// WaitPoint waits until the machine here has applied p. It returns an error when ctx ends
// or the group is closed.
//
// A follower has an entry before it knows that the entry is committed. It learns that from
// the leader's next append, 50 ms later or more (commits.go). WaitPoint does not wait for that
// append, because p comes from the leader too. It hands raft an append of p.Term without
// entries, as if the leader had sent it.
func (g *Group) WaitPoint(ctx context.Context, p ReadPoint) error {
	tick := time.NewTicker(pointTick)
	defer tick.Stop()
	for told := false; ; {
		if g.Applied() >= p.Index {
			return nil
		}
		told = told || g.raft.State() == raft.Leader
		if !told && g.raft.State() == raft.Follower && g.raft.CurrentTerm() == p.Term && g.raft.LastIndex() >= p.Index {
			told = g.transport.Committed(ctx, transport.Point(p))
		}
		if told {
			return g.WaitApplied(ctx, p.Index)
		}
		select { // the entry is on its way
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for index %d: %w", p.Index, ctx.Err())
		case <-g.stop:
			return ErrClosed
		}
	}
}

// reads answers ReadIndex in rounds. A round asks every voter. A voter that has not yet
// answered an earlier round is asked again when it has.
type reads struct {
	g        *Group
	requests chan readRequest // full: callers wait
	round    uint64
	asked    map[id.Member]uint64 // the round of the open question; 0: none
	answers  chan roundAnswer
	ticker   *time.Ticker
}

type roundAnswer struct {
	member id.Member
	round  uint64
	ok     bool
}

func newReads(g *Group) *reads {
	return &reads{
		g: g, requests: make(chan readRequest, readsMax), asked: make(map[id.Member]uint64), answers: make(chan roundAnswer),
	}
}

// loop runs the rounds. Owned by Open; ends with stop.
func (r *reads) loop() {
	batch := make([]readRequest, 0, readsMax)
	for {
		select {
		case <-r.g.stop:
			return
		case q := <-r.requests:
			batch = append(batch[:0], q)
		}
		for len(batch) < readsMax && len(r.requests) > 0 {
			batch = append(batch, <-r.requests)
		}
		point, err := r.run()
		for _, q := range batch {
			q.answer <- readAnswer{point, err}
		}
	}
}

// run does one round. It returns a point, *NotLeaderError or ErrClosed.
func (r *reads) run() (ReadPoint, error) {
	g := r.g
	r.ticker = time.NewTicker(roundTick)
	defer r.ticker.Stop()
	term := g.raft.CurrentTerm()
	if err := r.ownTerm(term); err != nil {
		return ReadPoint{}, err
	}
	// An entry of this term is committed, so the newest committed one is of this term too.
	p := ReadPoint{Index: g.raft.CommitIndex(), Term: term, Leader: g.cfg.Self}
	if err := r.quorum(term); err != nil {
		return ReadPoint{}, err
	}
	if !r.leads(term) {
		return ReadPoint{}, g.notLeader()
	}
	return p, nil
}

// leads reports whether this member leads term.
func (r *reads) leads(term uint64) bool {
	g := r.g
	return g.health.Failed() == nil && g.raft.State() == raft.Leader && g.raft.CurrentTerm() == term
}

// committed returns the commit index, if an entry of the leader's term is applied.
func (r *reads) committed(term uint64) (index uint64, ok bool) {
	applied, _ := r.g.fsm.appliedTerm()
	return r.g.raft.CommitIndex(), applied == term
}

// ownTerm waits until an entry of this leader's term is applied.
func (r *reads) ownTerm(term uint64) error {
	for {
		applied, moved := r.g.fsm.appliedTerm()
		if applied == term {
			return nil
		}
		if !r.leads(term) {
			return r.g.notLeader()
		}
		select {
		case <-moved:
		case a := <-r.answers:
			r.took(a)
		case <-r.ticker.C:
		case <-r.g.stop:
			return ErrClosed
		}
	}
}

// quorum waits until a majority of the voters has said that it had not left term.
func (r *reads) quorum(term uint64) error {
	r.round++
	confirmed := map[id.Member]bool{r.g.cfg.Self: true}
	r.ask(term, confirmed)
	for !majority(r.voters(), confirmed) {
		if !r.leads(term) {
			return r.g.notLeader()
		}
		select {
		case a := <-r.answers:
			if r.took(a); a.ok && a.round == r.round {
				confirmed[a.member] = true
			} else if a.round != r.round {
				r.ask(term, confirmed)
			}
		case <-r.ticker.C:
			r.ask(term, confirmed)
		case <-r.g.stop:
			return ErrClosed
		}
	}
	return nil
}

func (r *reads) took(a roundAnswer) { delete(r.asked, a.member) }

// voters returns the voters of the newest configuration in this leader's log.
func (r *reads) voters() []id.Member {
	var voters []id.Member
	for _, s := range r.g.raft.GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter {
			voters = append(voters, id.Member(s.ID))
		}
	}
	return voters
}

func majority(voters []id.Member, confirmed map[id.Member]bool) bool {
	n := 0
	for _, m := range voters {
		if confirmed[m] {
			n++
		}
	}
	return n > len(voters)/2
}

// ask sends the round's question to every voter that has not confirmed and has no question
// open.
func (r *reads) ask(term uint64, confirmed map[id.Member]bool) {
	round := r.round
	for _, m := range r.voters() {
		if confirmed[m] || r.asked[m] != 0 {
			continue
		}
		r.asked[m] = round
		r.g.asks.Go(func() { // ends with its RPC, at the latest with the transport
			_, ok := r.g.transport.Follows(m, term) // whether it had not left the term when it answered
			a := roundAnswer{member: m, round: round, ok: ok}
			select {
			case r.answers <- a:
			case <-r.g.stop:
			}
		})
	}
}
