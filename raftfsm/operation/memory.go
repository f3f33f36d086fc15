package operation

import (
	"fmt"

	"github.com/tidwall/btree"

	"facet/internal/id"
	"facet/shard/segment"
)

// How long operations are remembered, in milliseconds of the group's clock.
//
// State machines decide by these numbers and by Limits, so they are part of the
// log's meaning: others need new versions of the commands.
const (
	plainMillis = 10 * 60 * 1000
	keyedMillis = 24 * 60 * 60 * 1000
)

// Limits bounds how many operations are remembered at once.
type Limits struct{ Plain, Keyed int }

// Name names one write of a client.
type Name struct {
	Op id.Operation `cbor:"1,keyasint"`
	// Request is a hash of the request's body.
	Request [16]byte `cbor:"2,keyasint"`
	// Keyed operations are remembered for 24 hours, others for 10 minutes.
	Keyed bool `cbor:"3,keyasint,omitempty"`
}

// Outcome is what is remembered of an operation: ids and hashes only.
type Outcome struct {
	Name Name `cbor:"1,keyasint"`
	// Kind is the code of the command.
	Kind byte `cbor:"2,keyasint"`
	// Time is the group's clock when it was done.
	Time int64 `cbor:"3,keyasint"`
	// Scope and IDs are what the command gave its effect to: a gallery or tenant,
	// and what was made in it.
	Scope [16]byte    `cbor:"4,keyasint"`
	IDs   [2][16]byte `cbor:"5,keyasint"`
	// Number is what else there is to know, such as a revision.
	Number uint32 `cbor:"6,keyasint,omitempty"`
}

// queue holds outcomes by the numbers of their insertion, which follow each other in the
// order of their times. The numbers are not part of the state.
type queue struct {
	btree.Map[uint64, *Outcome]
	// last is the number of the newest one, also when that is forgotten.
	last uint64
	// files have outcomes of the queue, as of the newest snapshot.
	files []segment.Batch
}

func (q *queue) push(o *Outcome) {
	q.last++
	q.Set(q.last, o)
}

// Memory remembers operations. It is not safe for concurrent use.
type Memory struct {
	limits       Limits
	clock        int64
	plain, keyed *queue
	byOp         map[id.Operation]*Outcome
}

// New makes an empty memory whose clock stands at 0.
func New(limits Limits) *Memory {
	return &Memory{limits: limits, plain: new(queue), keyed: new(queue), byOp: make(map[id.Operation]*Outcome)}
}

// Advance moves the clock to time (milliseconds since 1970) unless it is past it,
// forgets what is too old, and gives the clock: it never goes back.
func (m *Memory) Advance(time int64) int64 {
	if time <= m.clock {
		return m.clock
	}
	m.clock = time
	m.forget(m.plain, plainMillis)
	m.forget(m.keyed, keyedMillis)
	return m.clock
}

// Clock gives the group's clock, in milliseconds since 1970.
func (m *Memory) Clock() int64 { return m.clock }

func (m *Memory) forget(q *queue, millis int64) {
	for {
		_, o, ok := q.Min()
		// A difference, since a sum might overflow.
		if !ok || m.clock-o.Time <= millis {
			return
		}
		q.PopMin()
		delete(m.byOp, o.Name.Op)
	}
}

// Recall gives the outcome of an operation that was done and is not forgotten.
func (m *Memory) Recall(op id.Operation) (Outcome, bool) {
	o := m.byOp[op]
	if o == nil {
		return Outcome{}, false
	}
	return *o, true
}

// Full tells whether an operation with this name can't be remembered now.
func (m *Memory) Full(n Name) bool {
	if n.Keyed {
		return m.keyed.Len() >= m.limits.Keyed
	}
	return m.plain.Len() >= m.limits.Plain
}

// Len counts what is remembered.
func (m *Memory) Len() int { return len(m.byOp) }

// Remember keeps the outcome of an operation that is not known yet; its time is
// set to the clock. A known one is a bug and panics.
func (m *Memory) Remember(o Outcome) {
	if m.byOp[o.Name.Op] != nil {
		panic(fmt.Sprintf("bug: operation %x is done twice", o.Name.Op))
	}
	o.Time = m.clock
	m.insert(&o)
}

func (m *Memory) insert(o *Outcome) {
	m.byOp[o.Name.Op] = o
	m.queueOf(o.Name).push(o)
}

// queueOf gives the queue that an operation belongs to.
func (m *Memory) queueOf(n Name) *queue {
	if n.Keyed {
		return m.keyed
	}
	return m.plain
}
