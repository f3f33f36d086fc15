package transport

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/id"
)

// Two questions prove that a member leads: a leader asks a voter whether it has left the
// leader's term, and a voter asks its leader for a read point and says that it has not left
// the term. A node asks them for many groups at about the same moment. Proofs sends those for
// the same other node as one message, and no message waits for company:
//
//	group 3 ──┐                      group 7 ──┐
//	group 5 ──┴→ message ────→ answer group 4 ──┴→ message ────→ answer
//	             at once                           what came meanwhile
//
// The receiver answers for each group by itself, and never waits for one. A group that can't
// be answered at once asks by itself. So does every group for failedRest after a message failed.
const (
	// proofsMax is the most questions of one message.
	proofsMax = 4096
	// proofsTimeout is the longest time of a message.
	proofsTimeout = 500 * time.Millisecond
	failedRest    = time.Second
)

// Proofs sends the proofs of the groups of a node. It is safe for concurrent use.
type Proofs struct {
	ask    Ask
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // messages
	groups groups         // that answer

	mu     sync.Mutex // guards all below, and every wg.Go
	closed bool
	peers  map[id.Member]*proofsPeer
}

// proofsPeer is another member.
type proofsPeer struct {
	busy   bool         // a message is under way
	next   *proofsBatch // nil: none
	failed time.Time    // when a message failed last
}

// ProofsQuestion holds questions of the groups of one node to another one.
type ProofsQuestion struct {
	Member id.Member `json:"member"` // the sender
	Addr   string    `json:"addr"`   // of its headers
	Proofs []Proof   `json:"proofs"`
}

// Proof is the question of one group. The sender leads it in Term, or follows and asks for a
// read point.
type Proof struct {
	Group id.Shard `json:"g"`
	Term  uint64   `json:"t"`
	Point bool     `json:"p,omitempty"`
	Last  uint64   `json:"l,omitempty"` // with Point: the last index of the sender's log
}

// ProofsAnswer answers a ProofsQuestion. Index has, for each question, the last index of the
// voter's log, or the leader's commit index, or -1 if the group has no answer.
type ProofsAnswer struct {
	Member id.Member `json:"member"`
	Addr   string    `json:"addr"`
	Index  []int64   `json:"index"`
}

// proofsBatch is a message.
type proofsBatch struct {
	proofs []Proof
	sent   chan struct{} // closed when answer is set
	answer ProofsAnswer
}

// NewProofs returns Proofs that send their questions by ask. The caller calls Close after it
// has closed all groups.
func NewProofs(ask Ask) *Proofs {
	p := &Proofs{ask: ask, peers: make(map[id.Member]*proofsPeer)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Close waits until all messages have ended.
func (p *Proofs) Close() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.wg.Wait()
}

// Serve answers the questions of a node. It never waits for a group.
func (p *Proofs) Serve(from id.Node, q ProofsQuestion) (ProofsAnswer, error) {
	if node, err := q.Member.Node(); err != nil || node != from || len(q.Proofs) > proofsMax {
		return ProofsAnswer{}, fmt.Errorf("%w: %d proofs of %s from node %s", errMalformed, len(q.Proofs), q.Member, from)
	}
	a := ProofsAnswer{Index: make([]int64, len(q.Proofs))}
	for i, proof := range q.Proofs {
		a.Index[i] = -1
		t := p.groups.group(proof.Group)
		if t == nil || proof.Term == 0 {
			continue
		}
		h := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(q.Member), Addr: []byte(q.Addr)}
		index, ok := uint64(0), false
		if proof.Point {
			index, ok = proof.point(t, &h)
		} else {
			index, ok = t.beat(&raft.AppendEntriesRequest{RPCHeader: h, Term: proof.Term})
		}
		if ok {
			a.Index[i], a.Member, a.Addr = int64(index), id.Member(t.self.self), string(t.self.address())
		}
	}
	return a, nil
}

// put asks a member's node, with other groups, and returns the index of its answer and the
// header. It returns false if the group has to ask by itself.
func (p *Proofs) put(ctx context.Context, t *Transport, to id.Member, q Proof) (index uint64, h raft.RPCHeader, ok bool) {
	b, i := p.join(t, to, q)
	if b == nil {
		return 0, h, false
	}
	select {
	case <-b.sent:
	case <-t.done:
		return 0, h, false
	case <-ctx.Done():
		return 0, h, false
	}
	if i >= len(b.answer.Index) || b.answer.Index[i] < 0 {
		return 0, h, false
	}
	return uint64(b.answer.Index[i]), raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(b.answer.Member), Addr: []byte(b.answer.Addr),
	}, true
}

// join adds a question to the next message to a member, and returns its number there. It
// returns nil if there is none.
func (p *Proofs) join(t *Transport, to id.Member, q Proof) (*proofsBatch, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	peer := p.peers[to]
	if peer == nil {
		peer = &proofsPeer{}
		p.peers[to] = peer
	}
	if p.closed || time.Since(peer.failed) < failedRest {
		return nil, 0
	}
	if peer.next == nil {
		peer.next = &proofsBatch{sent: make(chan struct{})}
	}
	b := peer.next
	if len(b.proofs) == proofsMax {
		return nil, 0
	}
	b.proofs = append(b.proofs, q)
	if !peer.busy {
		peer.busy = true
		p.wg.Go(func() { p.send(to, peer, t) }) // ends when there are no more questions
	}
	return b, len(b.proofs) - 1
}

// send sends messages to a member in the name of the member of t, until there is none.
func (p *Proofs) send(to id.Member, peer *proofsPeer, t *Transport) {
	for {
		runtime.Gosched() // the groups of one request are about to ask
		p.mu.Lock()
		b := peer.next
		peer.next = nil
		if b == nil {
			peer.busy = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		ctx, cancel := context.WithTimeout(p.ctx, proofsTimeout)
		var a ProofsAnswer
		err := p.ask(ctx, to, ProofsQuestion{Member: id.Member(t.self.self), Addr: string(t.self.address()), Proofs: b.proofs}, &a)
		cancel()
		if err == nil && len(a.Index) == len(b.proofs) {
			b.answer = a
		} else {
			p.mu.Lock()
			peer.failed = time.Now()
			p.mu.Unlock()
		}
		close(b.sent)
	}
}

// carry is the carrier of read rounds of t: with those of other groups, if that works. p may be nil.
func (p *Proofs) carry(t *Transport, to raft.ServerID, at raft.ServerAddress, q *raft.AppendEntriesRequest, a *raft.AppendEntriesResponse) error {
	if p != nil {
		if last, h, ok := p.put(context.Background(), t, id.Member(to), Proof{Group: t.group, Term: q.Term}); ok {
			*a = raft.AppendEntriesResponse{RPCHeader: h, Term: q.Term, LastLog: last, Success: true}
			return nil
		}
	}
	return t.NetworkTransport.AppendEntries(to, at, q, a)
}

// AskPoint asks the leader that t's member follows for its commit index, and says that this
// member has not left the leader's term. It returns false if the leader did not answer at
// once: it may need other voters.
//
// The point covers every write that was acknowledged before AskPoint was called. Until this
// member and the leader have left the term, and they are a majority, no later leader can be
// elected. Neither had left it when AskPoint was called.
func AskPoint(ctx context.Context, t *Transport) (Point, bool) {
	r := t.raft.Load()
	if r == nil || t.proofs == nil || !t.Gate.receives() || t.self.mayAct() != nil {
		return Point{}, false
	}
	_, leader := r.LeaderWithID()
	term := r.CurrentTerm()
	last, follows := t.follows(&raft.AppendEntriesRequest{RPCHeader: t.self.header(), Term: term})
	if leader == "" || !follows {
		return Point{}, false
	}
	index, h, ok := t.proofs.put(ctx, t, id.Member(leader), Proof{Group: t.group, Term: term, Point: true, Last: last})
	if !ok || t.answersFor(leader, h) != nil {
		return Point{}, false
	}
	return Point{Index: index, Term: term, Leader: id.Member(leader)}, true
}

// point returns the commit index of a leader for a voter that has not left the leader's term,
// as q says. It returns false if the two are no majority of the voters.
func (q Proof) point(t *Transport, h *raft.RPCHeader) (index uint64, ok bool) {
	r := t.raft.Load()
	if r == nil || !t.Gate.receives() || t.self.admit(h) != nil || t.mute() != nil {
		return 0, false
	}
	leads := func() bool { return r.State() == raft.Leader && r.CurrentTerm() == q.Term }
	if !leads() {
		return 0, false
	}
	// A mark may be newer than q, so an older state is no reason to accuse the voter.
	known, err := t.known(raft.ServerID(h.ID))
	if err != nil || (Mark{known.Life, q.Term, q.Last}).Before(known) {
		return 0, false
	}
	index, ok = t.commit(q.Term)
	return index, ok && isMajority(r, h.ID, t.self.self) && leads()
}

// isMajority reports whether two members are voters and a majority of all.
func isMajority(r *raft.Raft, a, b []byte) bool {
	voters, both := 0, 0
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if string(s.ID) == string(a) || string(s.ID) == string(b) {
			both++
		}
	}
	return both == 2 && both > voters/2
}
