package operation

import (
	"errors"
	"fmt"

	"github.com/tidwall/btree"

	"facet/internal/codec"
	"facet/internal/id"
)

// How long operations are remembered, in milliseconds of the group's clock.
//
// State machines decide by these numbers and by Limits, so they are part of the
// log's meaning: others need new versions of the commands.
const (
	plainMillis = 10 * 60 * 1000
	keyedMillis = 24 * 60 * 60 * 1000
)

// The records of a memory in a snapshot; 16 to 31 belong to this package.
var (
	headClock   = codec.Head{Code: 16, Version: 1}
	headOutcome = codec.Head{Code: 17, Version: 1}
)

// ErrSnapshot says that records contradict each other.
var ErrSnapshot = errors.New("operation: the snapshot is not consistent")

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

// queue holds outcomes by the number of their insertion, which is the order of
// their times.
type queue = btree.Map[uint64, *Outcome]

// Memory remembers operations. It is not safe for concurrent use.
type Memory struct {
	limits Limits
	clock  int64
	// sequence numbers insertions; it is not part of the state.
	sequence     uint64
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
	m.sequence++
	m.byOp[o.Name.Op] = o
	if o.Name.Keyed {
		m.keyed.Set(m.sequence, o)
	} else {
		m.plain.Set(m.sequence, o)
	}
}

// View is a memory's state at one moment, for a snapshot.
type View struct {
	clock        int64
	plain, keyed *queue
}

// Freeze captures the state in constant time.
func (m *Memory) Freeze() *View { return &View{m.clock, m.plain.Copy(), m.keyed.Copy()} }

type clockRecord struct {
	Clock int64  `cbor:"1,keyasint"`
	Plain uint64 `cbor:"2,keyasint"`
	Keyed uint64 `cbor:"3,keyasint"`
}

// Write adds the records of v to w.
func (v *View) Write(w *codec.Writer) {
	w.Record(headClock, clockRecord{v.clock, uint64(v.plain.Len()), uint64(v.keyed.Len())})
	for _, q := range []*queue{v.plain, v.keyed} {
		q.Scan(func(_ uint64, o *Outcome) bool {
			w.Record(headOutcome, o)
			return true
		})
	}
}

// Loader builds a memory from the records of a snapshot.
type Loader struct {
	memory       *Memory
	begun        bool
	plain, keyed uint64
}

// NewLoader makes a loader of a memory with these limits.
func NewLoader(limits Limits) *Loader { return &Loader{memory: New(limits)} }

// Load takes the next record; mine is false if it belongs to another package. The
// error wraps codec.ErrMalformed or ErrSnapshot.
func (l *Loader) Load(r codec.Message) (mine bool, err error) {
	switch r.Code {
	case headClock.Code:
		return true, l.clock(r)
	case headOutcome.Code:
		return true, l.outcome(r)
	default:
		return false, nil
	}
}

func (l *Loader) clock(r codec.Message) error {
	var c clockRecord
	if err := r.Decode(headClock, &c); err != nil {
		return err
	}
	if l.begun || c.Clock < 0 {
		return fmt.Errorf("%w: a second clock, or one before 1970", ErrSnapshot)
	}
	l.begun, l.plain, l.keyed, l.memory.clock = true, c.Plain, c.Keyed, c.Clock
	return nil
}

func (l *Loader) outcome(r codec.Message) error {
	var o Outcome
	if err := r.Decode(headOutcome, &o); err != nil {
		return err
	}
	q := l.memory.plain
	if o.Name.Keyed {
		q = l.memory.keyed
	}
	_, last, ok := q.Max()
	switch {
	case !l.begun || o.Time < 0 || o.Time > l.memory.clock || ok && o.Time < last.Time:
		return fmt.Errorf("%w: operation %x is out of place", ErrSnapshot, o.Name.Op)
	case l.memory.byOp[o.Name.Op] != nil:
		return fmt.Errorf("%w: operation %x is there twice", ErrSnapshot, o.Name.Op)
	}
	l.memory.insert(&o)
	return nil
}

// Memory gives what was loaded, or an error that wraps ErrSnapshot if records are
// missing.
func (l *Loader) Memory() (*Memory, error) {
	m := l.memory
	if !l.begun || uint64(m.plain.Len()) != l.plain || uint64(m.keyed.Len()) != l.keyed {
		return nil, fmt.Errorf("%w: records are missing", ErrSnapshot)
	}
	return m, nil
}
