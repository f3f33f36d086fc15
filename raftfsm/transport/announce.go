package transport

import (
	"sync"

	"github.com/hashicorp/raft"
)

// announcements records what other members have and know, so that each is told once of a
// commit that no append has told it.
type announcements struct {
	mu      sync.Mutex // guards members
	members map[raft.ServerID]*follower
}

// follower is another member as this one knows it, as the leader of term.
type follower struct {
	term    uint64
	has     uint64 // the member's log agrees with the leader's up to this index
	commits uint64 // the newest commit index that the member has received
	newest  Point  // to be announced
	busy    bool   // an announcement is under way
}

// answered records that a member has accepted an append.
func (a *announcements) answered(to raft.ServerID, q *raft.AppendEntriesRequest) {
	if isHeartbeat(q) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.follower(to, q.Term)
	f.has = q.PrevLogEntry + uint64(len(q.Entries))
	f.commits = max(f.commits, q.LeaderCommitIndex)
}

// has returns the index up to which a member's log agrees with that of the leader of term.
func (a *announcements) has(to raft.ServerID, term uint64) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.follower(to, term).has
}

// follower returns the record of a member for the leader of term. The caller holds mu.
func (a *announcements) follower(to raft.ServerID, term uint64) *follower {
	f := a.members[to]
	if f == nil {
		f = &follower{}
		if a.members == nil {
			a.members = make(map[raft.ServerID]*follower)
		}
		a.members[to] = f
	}
	if term > f.term {
		*f = follower{term: term, busy: f.busy}
	}
	return f
}

// take takes p for a member.
func (a *announcements) take(to raft.ServerID, p Point) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.follower(to, p.Term).newest = p
}

// begin reports whether the caller is to send what next returns.
func (a *announcements) begin(to raft.ServerID, term uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.follower(to, term)
	begins := !f.busy && f.due()
	f.busy = f.busy || begins
	return begins
}

// next returns the point to announce. If it returns false, the caller is done.
func (a *announcements) next(to raft.ServerID, failed bool) (Point, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.members[to]
	f.busy = !failed && f.due()
	return f.newest, f.busy
}

// due reports whether the member has the newest point and does not know that it is committed.
func (f *follower) due() bool { return f.commits < f.newest.Index && f.newest.Index <= f.has }

// Announce tells the other members that p, which this member has committed as the leader, is
// committed, unless they know so by an append. Those without the entry, and those that can't be
// reached, are told when they have answered.
func (t *Transport) Announce(p Point) {
	r := t.raft.Load()
	if r == nil {
		return
	}
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if string(s.ID) == string(t.self.self) {
			continue
		}
		if t.commits.take(s.ID, p); t.held.outage(s.ID, p.Term) == nil {
			t.tell(s.ID, p.Term)
		}
	}
}

// tell announces what a member is to be told, if anything.
func (t *Transport) tell(to raft.ServerID, term uint64) {
	if t.commits.begin(to, term) {
		t.wg.Go(func() { t.announce(to) }) // ends with its exchanges
	}
}

func (t *Transport) announce(to raft.ServerID) {
	for failed := false; ; {
		p, due := t.commits.next(to, failed)
		if !due {
			return
		}
		var a raft.AppendEntriesResponse
		err := t.append(to, raft.ServerAddress(to), p.append(t.self.header()), &a, t.NetworkTransport.AppendEntries)
		failed = err != nil || !a.Success // raft tells the member later
	}
}

// append returns the message by which p's leader tells that p is committed.
func (p Point) append(h raft.RPCHeader) *raft.AppendEntriesRequest {
	return &raft.AppendEntriesRequest{RPCHeader: h, Term: p.Term, PrevLogEntry: p.Index, PrevLogTerm: p.Term, LeaderCommitIndex: p.Index}
}
