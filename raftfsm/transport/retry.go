package transport

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/id"
	"facet/raftfsm/health"
)

const (
	// heldTick is how often a held append checks that it is still needed.
	heldTick = 50 * time.Millisecond
	// retryWithin is how soon a call must fail to be repeated on another connection.
	retryWithin = 500 * time.Millisecond
)

// heldAppends records which members have not been reached since an append to them failed.
//
// After each failed append hashicorp/raft waits longer before the next, up to 10.24 s, even
// if heartbeats are answered. A member that returns gets no entries for that long. It
// can't get the leadership either: a transfer waits for the appends, and nothing is
// written meanwhile. So a failed append is held until the member answers a heartbeat,
// which is sent several times a second. Then it is repeated. raft does not see the
// failure.
type heldAppends struct {
	mu    sync.Mutex // guards out and hasty
	out   map[raft.ServerID]outage
	hasty map[raft.ServerID]int // transfers to each member; their appends are not held
}

// outage is the time in which a leader of term does not reach a member.
type outage struct {
	term uint64
	over chan struct{} // closed when the member is reached
}

// lost records that an append of term did not reach a member.
func (h *heldAppends) lost(to raft.ServerID, term uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o, out := h.out[to]; out && o.term == term || h.hasty[to] > 0 {
		return
	}
	h.end(to)
	if h.out == nil {
		h.out = make(map[raft.ServerID]outage)
	}
	h.out[to] = outage{term: term, over: make(chan struct{})}
}

// reached records that a member answered a heartbeat.
func (h *heldAppends) reached(to raft.ServerID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end(to)
}

func (h *heldAppends) end(to raft.ServerID) {
	if o, out := h.out[to]; out {
		close(o.over)
		delete(h.out, to)
	}
}

// outage returns a channel that is closed when the member is reached. It returns nil if no
// append of term has failed.
func (h *heldAppends) outage(to raft.ServerID, term uint64) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o, out := h.out[to]; out && o.term == term {
		return o.over
	}
	return nil
}

// Hurry makes appends to a member fail instead of being held, until done is called. A
// transfer of the leadership waits for appends, and must end if its target has died.
func (t *Transport) Hurry(member id.Member) (done func()) {
	h, to := &t.held, raft.ServerID(member)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end(to)
	if h.hasty == nil {
		h.hasty = make(map[raft.ServerID]int)
	}
	h.hasty[to]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.hasty[to]--; h.hasty[to] == 0 {
			delete(h.hasty, to)
		}
	}
}

// errNotReached is returned for a held append that this member no longer needs to send.
var errNotReached = errors.New("raftfsm: the member was not reached")

// awaitReached waits until appends of term to a member need not be held. It returns an
// error when the append is no longer needed.
func (t *Transport) awaitReached(to raft.ServerID, term uint64) error {
	over := t.held.outage(to, term)
	if over == nil {
		return nil
	}
	tick := time.NewTicker(heldTick)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return nil
		case <-t.done:
			return health.ErrClosed
		case <-tick.C:
			if r := t.raft.Load(); r == nil || r.State() != raft.Leader || r.CurrentTerm() != term || !hasMember(r, to) || t.health.Failed() != nil {
				return fmt.Errorf("append to %s: %w", to, errNotReached)
			}
		}
	}
}

func hasMember(r *raft.Raft, member raft.ServerID) bool {
	return slices.ContainsFunc(r.GetConfiguration().Configuration().Servers, func(s raft.Server) bool { return s.ID == member })
}

// isHeartbeat reports whether q is a heartbeat, of raft or of Follows.
func isHeartbeat(q *raft.AppendEntriesRequest) bool {
	return q.PrevLogEntry == 0 && q.PrevLogTerm == 0 && len(q.Entries) == 0 && q.LeaderCommitIndex == 0
}

// retryBroken repeats a call if its connection broke within retryWithin. Idle connections
// in NetworkTransport's pool may have ended with the process at the other end. A vote that
// is lost on such a connection costs an election.
func retryBroken(call func() error) error {
	for try := 0; ; try++ {
		began := time.Now()
		err := call()
		if err == nil || errors.Is(err, errDial) || try == connsPerPeer || time.Since(began) > retryWithin {
			return err
		}
	}
}

// errDial is returned when no connection to a member could be opened.
var errDial = errors.New("raftfsm: no connection")

// Follows asks a member whether it follows the leader of term. ok reports that the member
// had not left term when it answered. last is the last index of the member's log.
func (t *Transport) Follows(to id.Member, term uint64) (last uint64, ok bool) {
	q := raft.AppendEntriesRequest{RPCHeader: t.self.header(), Term: term}
	var a raft.AppendEntriesResponse
	proven := func(to raft.ServerID, at raft.ServerAddress, q *raft.AppendEntriesRequest, a *raft.AppendEntriesResponse) error {
		return t.proofs.carry(t, to, at, q, a)
	}
	err := t.sendBeat(raft.ServerID(to), raft.ServerAddress(to), &q, &a, proven)
	return a.LastLog, err == nil && a.Success && a.Term == term
}
