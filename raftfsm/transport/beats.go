package transport

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/id"
)

// A node leads many groups, and each leader sends each follower a heartbeat several times a
// second. Beats gathers those for the same member for a moment, and sends them as one message
// between nodes:
//
//	leaders here                     message               followers there
//	group 3 ──┐ join                                      ┌─→ group 3: seen
//	group 5 ──┼──────→ gather a moment ──→ {3, 5, 9} ─────┼─→ group 5: not seen
//	group 9 ──┘                                           └─→ group 9: seen
//
// The receiver answers at once for every group that would answer such a heartbeat at once, as
// Transport.heartbeat does. It says of any other that it has not seen the heartbeat: the group
// is not open there, has another term, or is out of service. Such a heartbeat goes over the
// group's own stream, where it may take its time or fail. So no group waits for another, and
// no heartbeat is answered that its group has not seen.
//
// Heartbeats go over the streams until the member has promptly answered a message without any.
// If a message fails, all its heartbeats go over the streams, and those that follow, until the
// member answers again. Nodes up to release 0.3 never do.
const (
	// beatsMax is the most heartbeats of one message.
	beatsMax = 4096
	// beatsTimeout is the longest time of a message with heartbeats. A member that takes longer
	// than beatsPrompt gets the next ones over the streams.
	beatsTimeout = time.Second
	beatsPrompt  = beatsTimeout / 2
	// tryInterval is how often a member that answers no messages is sent one without
	// heartbeats.
	tryInterval = 10 * time.Second
	// gatherShare is the part of Config.Silence for which a heartbeat waits for others. raft
	// sends a heartbeat after one to two such times.
	gatherShare = 5
)

// Ask sends a question to a member's node as JSON, and reads the answer into a.
type Ask func(ctx context.Context, to id.Member, q, a any) error

// Beats sends the heartbeats of the groups of a node. It is safe for concurrent use.
type Beats struct {
	ask    Ask
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // questions

	mu     sync.Mutex // guards all below, and every wg.Go
	closed bool
	groups map[id.Shard]*Transport
	peers  map[raft.ServerID]*beatsPeer
}

// beatsPeer is another member.
type beatsPeer struct {
	answers bool        // it answered its last message promptly
	tried   time.Time   // when the last message without heartbeats was sent
	gathers *beatsBatch // nil: none
}

// BeatsQuestion holds heartbeats of leaders on one node for members on another one.
type BeatsQuestion struct {
	Member id.Member `json:"member"` // the sender
	Addr   string    `json:"addr"`   // of its headers
	Beats  []Beat    `json:"beats"`
}

// Beat is the heartbeat of one group.
type Beat struct {
	Group id.Shard `json:"g"`
	Term  uint64   `json:"t"`
}

// BeatsAnswer answers a BeatsQuestion. Last has, for each of its heartbeats, the last index of
// the member's log, or -1 if the member has not seen the heartbeat.
type BeatsAnswer struct {
	Member id.Member `json:"member"`
	Addr   string    `json:"addr"`
	Last   []int64   `json:"last"`
}

// beatsBatch is a message that gathers heartbeats.
type beatsBatch struct {
	beats  []Beat
	groups []*Transport  // of beats
	sent   chan struct{} // closed when answer is set
	answer BeatsAnswer
}

// NewBeats returns Beats that send their questions by ask. The caller calls Close after it has
// closed all groups.
func NewBeats(ask Ask) *Beats {
	b := &Beats{ask: ask, groups: make(map[id.Shard]*Transport), peers: make(map[raft.ServerID]*beatsPeer)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// Close waits until all messages have ended.
func (b *Beats) Close() {
	b.cancel()
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.wg.Wait()
}

// add makes a group answer heartbeats.
func (b *Beats) add(t *Transport) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.groups[t.group] = t
}

// remove ends add.
func (b *Beats) remove(t *Transport) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.groups[t.group] == t {
		delete(b.groups, t.group)
	}
}

func (b *Beats) group(number id.Shard) *Transport {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.groups[number]
}

// Serve answers the heartbeats that a node sends. It never waits for a group.
func (b *Beats) Serve(from id.Node, q BeatsQuestion) (BeatsAnswer, error) {
	if node, err := q.Member.Node(); err != nil || node != from || len(q.Beats) > beatsMax {
		return BeatsAnswer{}, fmt.Errorf("%w: %d heartbeats of %s from node %s", errMalformed, len(q.Beats), q.Member, from)
	}
	a := BeatsAnswer{Last: make([]int64, len(q.Beats))}
	for i, beat := range q.Beats {
		a.Last[i] = -1
		t := b.group(beat.Group)
		if t == nil || beat.Term == 0 {
			continue
		}
		h := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(q.Member), Addr: []byte(q.Addr)}
		if last, seen := t.beat(&raft.AppendEntriesRequest{RPCHeader: h, Term: beat.Term}); seen {
			a.Last[i], a.Member, a.Addr = int64(last), id.Member(t.self.self), string(t.self.address())
		}
	}
	return a, nil
}

// send sends a heartbeat with others, and reports whether its member has seen it. If not, the
// caller sends it over the group's stream.
func (b *Beats) send(t *Transport, to raft.ServerID, q *raft.AppendEntriesRequest, a *raft.AppendEntriesResponse) bool {
	m, i := b.join(t, to, q.Term)
	if m == nil {
		return false
	}
	select {
	case <-m.sent:
	case <-t.done:
		return false
	}
	if i >= len(m.answer.Last) || m.answer.Last[i] < 0 {
		return false
	}
	*a = raft.AppendEntriesResponse{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(m.answer.Member), Addr: []byte(m.answer.Addr)},
		Term:      q.Term, LastLog: uint64(m.answer.Last[i]), Success: true,
	}
	return true
}

// join adds a heartbeat to the message that gathers for its member, and returns its number
// there. It returns nil if the heartbeat has to go over the group's stream.
func (b *Beats) join(t *Transport, to raft.ServerID, term uint64) (*beatsBatch, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, 0
	}
	p := b.peers[to]
	if p == nil {
		p = &beatsPeer{}
		b.peers[to] = p
	}
	if !p.answers {
		if now := time.Now(); now.Sub(p.tried) >= tryInterval {
			p.tried = now
			b.wg.Go(func() { b.exchange(to, p, t, Timeout, &beatsBatch{}) }) // ends with its question
		}
		return nil, 0
	}
	if p.gathers == nil {
		p.gathers = &beatsBatch{sent: make(chan struct{})}
		b.wg.Go(func() { b.gather(to, p, t) }) // ends with its question
	}
	m := p.gathers
	if len(m.beats) == beatsMax {
		return nil, 0
	}
	m.groups, m.beats = append(m.groups, t), append(m.beats, Beat{t.group, term})
	return m, len(m.beats) - 1
}

// gather waits until the message to p has gathered, and sends it. t is its first group.
func (b *Beats) gather(to raft.ServerID, p *beatsPeer, t *Transport) {
	select {
	case <-time.After(t.loss.silence / gatherShare):
	case <-b.ctx.Done():
	}
	b.mu.Lock()
	m := p.gathers
	p.gathers = nil
	b.mu.Unlock()
	defer close(m.sent)
	for i, g := range m.groups { // meanwhile the disk of a group may have hung too long
		if g.mute() != nil {
			m.beats[i] = Beat{} // of term 0: it is not seen
		}
	}
	b.exchange(to, p, t, beatsTimeout, m)
}

// exchange sends m in the name of the member of t, and notes whether p answers promptly.
func (b *Beats) exchange(to raft.ServerID, p *beatsPeer, t *Transport, timeout time.Duration, m *beatsBatch) {
	ctx, cancel := context.WithTimeout(b.ctx, timeout)
	defer cancel()
	began := time.Now()
	var a BeatsAnswer
	err := b.ask(ctx, id.Member(to), BeatsQuestion{Member: id.Member(t.self.self), Addr: string(t.self.address()), Beats: m.beats}, &a)
	answers := err == nil && len(a.Last) == len(m.beats)
	if answers {
		m.answer = a
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p.answers = answers && time.Since(began) <= beatsPrompt
}
