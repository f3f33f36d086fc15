package transport

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"facet/internal/id"
)

// A member whose data directory was rolled back (a snapshot of its machine, an old image of
// its disk) has forgotten entries that it acknowledged and votes that it gave. Its peers
// remember them as marks. Every answer that a leader gets becomes a mark of the member, and
// is compared with the mark that was known when the request was sent.
//
// A mark never accuses a sound member. A member that acknowledged an entry in a term has
// that term on its disk. Within a term, it never cuts what agrees with the leader's log. In
// a later term a leader may replace an uncommitted tail; then the member has the later term.

// Mark states that a member's log agrees with the log of Term's leader up to Index. Index 0
// states only that the member has reached Term.
type Mark struct {
	// Life grows with each replica that the member's node makes. Marks of an earlier life
	// say nothing about a later one.
	Life  uint64 `json:"l,omitempty"`
	Term  uint64 `json:"t"`
	Index uint64 `json:"i,omitempty"`
}

// Before reports whether a member at m has less than o states.
func (m Mark) Before(o Mark) bool {
	if m.Life != o.Life {
		return m.Life < o.Life
	}
	return m.Term < o.Term || m.Term == o.Term && m.Index < o.Index
}

// Marks keeps the marks of a group's members. Its methods must not block.
type Marks interface {
	// Known returns the mark of a member. sound is false from Behind until the member has
	// begun another life.
	Known(m id.Member) (k Mark, sound bool)
	// Add records a mark.
	Add(m id.Member, k Mark)
	// Behind records that a member has less than its mark k.
	Behind(m id.Member, k Mark)
}

// errStateLost is returned for a message to a member that has lost state.
var errStateLost = errors.New("raftfsm: the member has lost state that it had acknowledged")

// errNotAdmitted rejects votes before Admit.
var errNotAdmitted = errors.New("raftfsm: the member has not asked its peers yet whether it has lost state")

// Gate keeps a member that has just started out of elections. It keeps all messages from a
// member with state.
type Gate struct {
	received, admitted chan struct{}
	receive, admit     sync.Once
	barred             atomic.Bool
}

func newGate() *Gate {
	return &Gate{received: make(chan struct{}), admitted: make(chan struct{})}
}

// Receive lets the member receive appends and snapshots.
func (g *Gate) Receive() { g.receive.Do(func() { close(g.received) }) }

// Admit lets the member receive, vote and stand for election.
func (g *Gate) Admit() {
	g.Receive()
	g.admit.Do(func() { close(g.admitted) })
}

// Bar undoes Admit for good, except that the member still receives.
func (g *Gate) Bar() { g.barred.Store(true) }

// Admitted reports whether Admit was called, and Bar was not.
func (g *Gate) Admitted() bool {
	select {
	case <-g.admitted:
		return !g.barred.Load()
	default:
		return false
	}
}

// awaitReceive waits until the member may receive. It returns false when done is closed.
func (g *Gate) awaitReceive(done <-chan struct{}) bool {
	select {
	case <-g.received:
		return true
	case <-done:
		return false
	}
}

// receives reports whether the member may receive.
func (g *Gate) receives() bool {
	select {
	case <-g.received:
		return true
	default:
		return false
	}
}

// isVote reports whether a message makes its receiver vote or stand for election.
func isVote(command any) bool {
	switch command.(type) {
	case *raft.RequestVoteRequest, *raft.RequestPreVoteRequest, *raft.TimeoutNowRequest:
		return true
	default:
		return false
	}
}

// known returns the mark of a member before a request is sent to it.
func (t *Transport) known(to raft.ServerID) (Mark, error) {
	if t.marks == nil {
		return Mark{}, nil
	}
	k, sound := t.marks.Known(id.Member(to))
	if !sound {
		return k, fmt.Errorf("send to %s: %w", to, errStateLost)
	}
	return k, nil
}

// compare compares the answer to q with the mark that was known before q was sent. An
// answer of a member that has lost state is an error, so that it counts for nothing.
func (t *Transport) compare(to raft.ServerID, before Mark, q *raft.AppendEntriesRequest, a *raft.AppendEntriesResponse) error {
	if t.marks == nil {
		return nil
	}
	if (Mark{before.Life, a.Term, a.LastLog}).Before(before) {
		t.marks.Behind(id.Member(to), before)
		return fmt.Errorf("%s is at term %d, index %d, after term %d, index %d: %w", to, a.Term, a.LastLog, before.Term, before.Index, errStateLost)
	}
	if a.Success {
		t.marks.Add(id.Member(to), Mark{before.Life, q.Term, q.PrevLogEntry + uint64(len(q.Entries))})
	}
	return nil
}

// add records a mark of the life that was known before a request was sent.
func (t *Transport) add(to raft.ServerID, before Mark, term, index uint64) {
	if t.marks != nil {
		t.marks.Add(id.Member(to), Mark{before.Life, term, index})
	}
}
