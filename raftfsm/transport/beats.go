package transport

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/id"
	"facet/internal/tick"
)

// A node leads many groups, and each leader sends each follower a heartbeat several times a
// second. Beats sends those for the same member as one message between nodes, at each tick of
// the node (package tick):
//
//	leaders here                     message               followers there
//	group 3 ──┐ join                                      ┌─→ group 3: seen
//	group 5 ──┼───→ wait for the tick ───→ {3, 5, 9} ─────┼─→ group 5: not seen
//	group 9 ──┘                                           └─→ group 9: seen
//
// raft sends a heartbeat some time after the answer to the last one, which may be too late for
// the next tick. So a message also has the heartbeats of the groups for which raft has sent one
// lately.
//
// The receiver answers at once for every group that would answer such a heartbeat at once, as
// Transport.heartbeat does. It says of any other that it has not seen the heartbeat: the group
// is not open there, has another term, or is out of service. Such a heartbeat goes over the
// group's own stream, where it may take its time or fail. So no group waits for another, and
// no heartbeat is answered that its group has not seen.
//
// A member gets one message at a time, so that none needs a second connection. Heartbeats go
// over the streams until the member has promptly answered a message without any. If a message
// fails or is late, its heartbeats go over the streams, and those that follow, until the member
// answers again.
const (
	// beatsMax is the most heartbeats of one message.
	beatsMax = 4096
	// beatsPatience is how long heartbeats wait for the answer to their message: a round trip of
	// half a second. A message over a new connection takes three. It is not given up, so that the
	// next one finds the connection.
	beatsPatience = 600 * time.Millisecond
	// tryInterval is how often a member that answers no messages is sent one without
	// heartbeats.
	tryInterval = 10 * time.Second
	// leadTicks is the number of ticks after raft's last heartbeat in which others are sent for
	// the same group. raft waits for an answer, and then for less than a tick.
	leadTicks = 3
)

// Ask sends a question to a member's node as JSON, and reads the answer into a.
type Ask func(ctx context.Context, to id.Member, q, a any) error

// Beats sends the heartbeats of the groups of a node. It is safe for concurrent use.
type Beats struct {
	ask      Ask
	interval time.Duration   // between two messages to a member
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	wg       sync.WaitGroup // runs and questions
	groups   groups         // that answer

	mu     sync.Mutex // guards all below, and every wg.Go
	closed bool
	peers  map[raft.ServerID]*beatsPeer
}

// beatsPeer is another member.
type beatsPeer struct {
	answers bool                     // it answered its last message promptly
	tried   time.Time                // when the last message without heartbeats was sent
	runs    bool                     // run runs
	next    *beatsBatch              // of the next tick; nil: no heartbeat has joined
	led     map[*Transport]heartbeat // the last ones of raft
}

// heartbeat is one of raft.
type heartbeat struct {
	term uint64
	at   time.Time
	in   *beatsBatch // the message that it joined
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

// beatsBatch is a message.
type beatsBatch struct {
	beats  []Beat
	groups []*Transport  // of beats
	once   sync.Once     // closes sent
	sent   chan struct{} // closed when answer is set
	answer BeatsAnswer
}

// end sets the answer, if the heartbeats still wait for one.
func (m *beatsBatch) end(a BeatsAnswer) {
	m.once.Do(func() {
		m.answer = a
		close(m.sent)
	})
}

// NewBeats returns Beats that send a question by ask at each interval. The caller calls Close
// after it has closed all groups.
func NewBeats(ask Ask, interval time.Duration) *Beats {
	b := &Beats{ask: ask, interval: interval, peers: make(map[raft.ServerID]*beatsPeer)}
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

// remove ends what a group has here.
func (b *Beats) remove(t *Transport) {
	b.groups.remove(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.peers {
		delete(p.led, t)
	}
}

// Serve answers the heartbeats that a node sends. It never waits for a group.
func (b *Beats) Serve(from id.Node, q BeatsQuestion) (BeatsAnswer, error) {
	if node, err := q.Member.Node(); err != nil || node != from || len(q.Beats) > beatsMax {
		return BeatsAnswer{}, fmt.Errorf("%w: %d heartbeats of %s from node %s", errMalformed, len(q.Beats), q.Member, from)
	}
	a := BeatsAnswer{Last: make([]int64, len(q.Beats))}
	for i, beat := range q.Beats {
		a.Last[i] = -1
		t := b.groups.group(beat.Group)
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

// join adds a heartbeat to the next message to its member, and returns its number there. It
// returns nil if the heartbeat has to go over the group's stream.
func (b *Beats) join(t *Transport, to raft.ServerID, term uint64) (*beatsBatch, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, 0
	}
	p := b.peers[to]
	if p == nil {
		p = &beatsPeer{led: make(map[*Transport]heartbeat)}
		b.peers[to] = p
	}
	now := time.Now()
	if !p.answers {
		if now.Sub(p.tried) >= tryInterval {
			p.tried = now
			b.wg.Go(func() { b.exchange(to, p, &beatsBatch{groups: []*Transport{t}, sent: make(chan struct{})}) }) // ends with its question
		}
		return nil, 0
	}
	if p.next == nil {
		p.next = &beatsBatch{sent: make(chan struct{})}
	}
	if len(p.next.beats) == beatsMax {
		return nil, 0
	}
	if !p.runs {
		p.runs = true
		b.wg.Go(func() { b.run(to, p) }) // ends when p has no heartbeats any more
	}
	p.led[t] = heartbeat{term, now, p.next}
	p.next.add(t, term)
	return p.next, len(p.next.beats) - 1
}

func (m *beatsBatch) add(t *Transport, term uint64) {
	m.groups, m.beats = append(m.groups, t), append(m.beats, Beat{t.group, term})
}

// run sends p a message at each tick, once the last one is answered or late, as long as groups
// here lead p's member.
func (b *Beats) run(to raft.ServerID, p *beatsPeer) {
	var m *beatsBatch
	for {
		_ = tick.Pause(b.ctx, b.interval) // at the end the heartbeats that wait go over the streams
		if m != nil {
			<-m.sent
		}
		m = b.take(p)
		if m == nil {
			return
		}
		for i, g := range m.groups { // meanwhile the disk of a group may have hung too long
			if g.mute() != nil {
				m.beats[i] = Beat{} // of term 0: it is not seen
			}
		}
		b.wg.Go(func() { b.exchange(to, p, m) }) // ends with its question
	}
}

// take returns the message that is due to p. It returns nil at the end of run.
func (b *Beats) take(p *beatsPeer) *beatsBatch {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, now := p.next, time.Now()
	p.next = nil
	if m == nil {
		m = &beatsBatch{sent: make(chan struct{})}
	}
	for t, h := range p.led {
		switch {
		case h.in == m:
		case !p.answers || b.closed || now.Sub(h.at) > leadTicks*b.interval || !t.leads(h.term):
			delete(p.led, t)
		case len(m.beats) < beatsMax:
			m.add(t, h.term)
		}
	}
	if len(m.beats) == 0 {
		p.runs = false
		return nil
	}
	return m
}

// exchange sends m in the name of the member of its first group, and notes whether p answers
// promptly. Until then the heartbeats of m wait, but no longer than beatsPatience.
func (b *Beats) exchange(to raft.ServerID, p *beatsPeer, m *beatsBatch) {
	ctx, cancel := context.WithTimeout(b.ctx, Timeout)
	defer cancel()
	late := time.AfterFunc(beatsPatience, func() {
		b.note(p, false)
		m.end(BeatsAnswer{})
	})
	t := m.groups[0]
	var a BeatsAnswer
	err := b.ask(ctx, id.Member(to), BeatsQuestion{Member: id.Member(t.self.self), Addr: string(t.self.address()), Beats: m.beats}, &a)
	answers := late.Stop() && err == nil && len(a.Last) == len(m.beats)
	if !answers {
		a = BeatsAnswer{}
	}
	b.note(p, answers)
	m.end(a)
}

// note records whether p has answered its last message promptly. If not, the heartbeats of the
// next one go over the streams at once.
func (b *Beats) note(p *beatsPeer, answers bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.answers = answers
	if !answers && p.next != nil {
		p.next.end(BeatsAnswer{})
		p.next = nil
	}
}
