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
	// heldTick is how often an append that is held looks whether it is still wanted.
	heldTick = 50 * time.Millisecond
	// retryWithin is how soon a call must fail to be made again on another connection.
	retryWithin = 500 * time.Millisecond
)

// heldAppends knows which members were not reached since an append to them failed.
//
// For each append that fails, hashicorp/raft waits longer before the next one, up to
// 10.24 s, whatever heartbeats say: a member that returns gets no entries for that
// long. Nor can it be given the leadership then: the transfer, during which nothing is
// written, waits for the appends. So an append that fails is held back until a
// heartbeat, which goes out several times a second, is answered, and is made again;
// raft does not see the failure.
type heldAppends struct {
	mu    sync.Mutex // guards what follows
	out   map[raft.ServerID]outage
	hasty map[raft.ServerID]int // leaderships are being handed to them: nothing is held
}

// outage is a member that was not reached by a leader of term.
type outage struct {
	term uint64
	over chan struct{} // closed when it is
}

// lost notes that an append of term did not reach a member.
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

// reached notes that a member answered a heartbeat.
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

// outage gives a channel that is closed when the member is reached, or nil if it is.
func (h *heldAppends) outage(to raft.ServerID, term uint64) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o, out := h.out[to]; out && o.term == term {
		return o.over
	}
	return nil
}

// hurry lets appends to a member fail until done is called: a transfer of the
// leadership, which waits for them, must end when its target has died.
func (h *heldAppends) hurry(to raft.ServerID) (done func()) {
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

// Hurry lets appends to a member fail until done is called (heldAppends.hurry).
func (t *Transport) Hurry(to id.Member) (done func()) { return t.held.hurry(raft.ServerID(to)) }

// errNotReached says that a member was not reached for as long as this one led it.
var errNotReached = errors.New("raftfsm: the member was not reached")

// awaitReached returns when a member may be sent entries of term, or an error when there is
// no use in it any more.
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

// isHeartbeat tells heartbeats, raft's and ours, from what has or asks for entries.
func isHeartbeat(q *raft.AppendEntriesRequest) bool {
	return q.PrevLogEntry == 0 && q.PrevLogTerm == 0 && len(q.Entries) == 0 && q.LeaderCommitIndex == 0
}

// retryBroken makes a call again when its connection broke at once: connections that wait
// in NetworkTransport's pool may have died with the process at the other end, and a
// vote that is lost with one costs an election.
func retryBroken(call func() error) error {
	for try := 0; ; try++ {
		began := time.Now()
		err := call()
		if err == nil || errors.Is(err, errDial) || try == connsPerPeer || time.Since(began) > retryWithin {
			return err
		}
	}
}

// errDial says that there is no connection to a member, not even a broken one.
var errDial = errors.New("raftfsm: no connection")

// Follows asks a member whether it still follows the leader of term, and how far its
// log goes.
func (t *Transport) Follows(to id.Member, term uint64) (last uint64, ok bool) {
	q := raft.AppendEntriesRequest{RPCHeader: t.header, Term: term}
	var a raft.AppendEntriesResponse
	err := t.AppendEntries(raft.ServerID(to), raft.ServerAddress(to), &q, &a)
	return a.LastLog, err == nil && a.Success && a.Term == term
}
