package operation

import (
	"fmt"

	"github.com/tidwall/btree"

	"facet/internal/id"
	"facet/shard/segment"
)

// How long a memory remembers operations, in milliseconds of the group's clock. State
// machines depend on these numbers and on Limits, so other numbers need new versions of the
// commands.
const (
	plainMillis = 10 * 60 * 1000
	keyedMillis = 24 * 60 * 60 * 1000
)

// Limits is the most operations that a memory may remember at once.
type Limits struct{ Plain, Keyed int }

// Name names one write of a client.
type Name struct {
	Op id.Operation `cbor:"1,keyasint"`
	// Request is a hash of the request's body.
	Request [16]byte `cbor:"2,keyasint"`
	// Keyed operations are remembered for 24 hours, others for 10 minutes.
	Keyed bool `cbor:"3,keyasint,omitempty"`
}

// Outcome is the result of an operation: only ids and hashes.
type Outcome struct {
	Name Name `cbor:"1,keyasint"`
	// Kind is the code of the command.
	Kind byte `cbor:"2,keyasint"`
	// Time is the group's clock at the operation.
	Time int64 `cbor:"3,keyasint"`
	// Scope is the gallery or tenant that the command changed, and IDs are those of the
	// records that it created or removed there.
	Scope [16]byte    `cbor:"4,keyasint"`
	IDs   [2][16]byte `cbor:"5,keyasint"`
	// Number is a further result of the command, such as a revision.
	Number uint32 `cbor:"6,keyasint,omitempty"`
	// Owner is the tenant against whose quota the operation counts, if any.
	Owner id.Tenant `cbor:"7,keyasint,omitzero"`
}

// queue holds outcomes in order of their times, numbered in the order of insertion. The
// numbers are not part of the state.
type queue struct {
	btree.Map[uint64, *Outcome]
	// owned holds the times of each owner's outcomes, oldest first. No list is empty.
	owned map[id.Tenant][]int64
	// last is the number of the newest outcome, even if that is forgotten.
	last uint64
	// files hold the queue's outcomes of the newest snapshot.
	files []segment.Batch
}

func newQueue() *queue { return &queue{owned: make(map[id.Tenant][]int64)} }

func (q *queue) push(o *Outcome) {
	q.last++
	q.Set(q.last, o)
	if !o.Owner.IsZero() {
		q.owned[o.Owner] = append(q.owned[o.Owner], o.Time)
	}
}

// drop removes the oldest outcome, which is o.
func (q *queue) drop(o *Outcome) {
	q.PopMin()
	if o.Owner.IsZero() {
		return
	}
	if rest := q.owned[o.Owner][1:]; len(rest) > 0 {
		q.owned[o.Owner] = rest
	} else {
		delete(q.owned, o.Owner)
	}
}

// Memory remembers operations. It is not safe for concurrent use.
type Memory struct {
	limits       Limits
	clock        int64
	plain, keyed *queue
	byOp         map[id.Operation]*Outcome
}

// New returns an empty memory with the clock at 0.
func New(limits Limits) *Memory {
	return &Memory{limits: limits, plain: newQueue(), keyed: newQueue(), byOp: make(map[id.Operation]*Outcome)}
}

// Advance moves the clock to time, in milliseconds since 1970, unless that is earlier. It
// forgets operations that are too old, and returns the clock.
func (m *Memory) Advance(time int64) int64 {
	if time <= m.clock {
		return m.clock
	}
	m.clock = time
	m.forget(m.plain, plainMillis)
	m.forget(m.keyed, keyedMillis)
	return m.clock
}

// Clock returns the group's clock, in milliseconds since 1970.
func (m *Memory) Clock() int64 { return m.clock }

func (m *Memory) forget(q *queue, millis int64) {
	for {
		_, o, ok := q.Min()
		// A difference, since a sum might overflow.
		if !ok || m.clock-o.Time <= millis {
			return
		}
		q.drop(o)
		delete(m.byOp, o.Name.Op)
	}
}

// Recall returns the outcome of an operation. ok is false if the operation was not done or
// is forgotten.
func (m *Memory) Recall(op id.Operation) (o Outcome, ok bool) {
	if known := m.byOp[op]; known != nil {
		return *known, true
	}
	return o, false
}

// Full reports whether the memory has no room for an operation with this name.
func (m *Memory) Full(n Name) bool {
	if n.Keyed {
		return m.keyed.Len() >= m.limits.Keyed
	}
	return m.plain.Len() >= m.limits.Plain
}

// Owned returns how many operations of one kind, keyed or not, the memory remembers for a
// tenant.
func (m *Memory) Owned(by id.Tenant, keyed bool) int {
	return len(m.queueOf(Name{Keyed: keyed}).owned[by])
}

// RoomAt returns the time from which on the memory is not full for an operation with this
// name, if it remembers nothing else until then. It is in the past if the memory has room.
func (m *Memory) RoomAt(n Name) int64 {
	q, most := m.plain, m.limits.Plain
	if n.Keyed {
		q, most = m.keyed, m.limits.Keyed
	}
	if last := q.Len() - most; last >= 0 { // the last one to forget
		_, o, _ := q.GetAt(last)
		return forgottenAt(o.Time, n.Keyed)
	}
	return 0
}

// OwnerRoomAt returns the time from which on a tenant owns fewer than most operations of a
// kind, as RoomAt.
func (m *Memory) OwnerRoomAt(by id.Tenant, keyed bool, most int) int64 {
	owned := m.queueOf(Name{Keyed: keyed}).owned[by]
	if last := len(owned) - max(most, 1); last >= 0 {
		return forgottenAt(owned[last], keyed)
	}
	return 0
}

// forgottenAt returns when an operation of this time is forgotten.
func forgottenAt(time int64, keyed bool) int64 {
	if keyed {
		return time + keyedMillis + 1
	}
	return time + plainMillis + 1
}

// Owners returns, for each tenant with remembered operations, the larger of its two numbers
// of Owned.
func (m *Memory) Owners() map[id.Tenant]int {
	most := make(map[id.Tenant]int)
	for _, q := range []*queue{m.plain, m.keyed} {
		for by, owned := range q.owned {
			most[by] = max(most[by], len(owned))
		}
	}
	return most
}

// Len returns the number of remembered operations.
func (m *Memory) Len() int { return len(m.byOp) }

// Remember adds the outcome of an operation, with the clock as its time. It panics if the
// operation is remembered already.
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

// queueOf returns the queue of an operation.
func (m *Memory) queueOf(n Name) *queue {
	if n.Keyed {
		return m.keyed
	}
	return m.plain
}
