package shard

import (
	"errors"
	"fmt"

	"facet/internal/codec"
	"facet/shard/record"
	"facet/shard/segment"
)

// ErrSnapshot is returned when records contradict each other.
var ErrSnapshot = errors.New("shard: the snapshot is not consistent")

// Loader builds a state from the records of a snapshot, beside the state that the shard has.
type Loader struct {
	state *state
	begun bool
	// head has the numbers of records to come.
	head shardRecord
	// The next entries belong to the slice current, or to remains, the entries behind a fence.
	// missing is how many are still to come.
	current *slice
	remains *record.Order
	missing uint64

	// store has the segments. stored reports that the entries are in segments. In that case
	// segments is the number of segments in the snapshot, parts has the segments read so far, and
	// expected has the number of entries of each slice and fence.
	store    *segment.Store
	stored   bool
	segments uint64
	parts    []segment.Part
	expected map[*record.Order]uint64
	set      *segment.Set
}

// NewLoader returns an empty loader for s. The caller closes the loader.
func NewLoader(s *Shard) *Loader {
	return &Loader{state: newState(s.arena), store: s.sealed.store, expected: make(map[*record.Order]uint64)}
}

// Close releases what Replace has not taken over.
func (l *Loader) Close() {
	if l.state != nil {
		l.state.free()
		l.state = nil
	}
	for _, p := range l.parts {
		p.File.Release()
	}
	l.set.Release()
	l.parts, l.set = nil, nil
}

// Load reads the next record; mine is false if the record belongs to another package. The error
// wraps codec.ErrMalformed or ErrSnapshot.
func (l *Loader) Load(m codec.Message) (mine bool, err error) {
	switch m.Code {
	case headShard.Code:
		return true, l.shard(m)
	case headSlice.Code:
		return true, l.slice(m)
	case headEntry.Code:
		return true, l.entry(m)
	case headFence.Code:
		return true, l.fence(m)
	case headPending.Code:
		return true, l.pendingEvent(m)
	case headStored.Code:
		return true, l.storedShard(m)
	case headSegment.Code:
		return true, l.segment(m)
	default:
		return false, nil
	}
}

func (l *Loader) shard(m codec.Message) error {
	var r shardRecord
	if err := m.Decode(headShard, &r); err != nil {
		return err
	}
	return l.begin(r)
}

func (l *Loader) begin(r shardRecord) error {
	if l.begun || r.Sequence > record.SequenceMax {
		return fmt.Errorf("%w: two heads, or sequence %d", ErrSnapshot, r.Sequence)
	}
	l.begun, l.head, l.state.sequence = true, r, r.Sequence
	return nil
}

// follow records that n entries belong to the last slice or fence. They follow it directly or are
// in segments.
func (l *Loader) follow(entries *record.Order, n uint64) {
	if l.stored {
		l.expected[entries] = n
	} else {
		l.missing = n
	}
}

func (l *Loader) slice(m codec.Message) error {
	var r sliceRecord
	if err := m.Decode(headSlice, &r); err != nil {
		return err
	}
	g := r.Gallery
	switch {
	case !l.begun || l.missing > 0 || len(l.state.fences.of) > 0 || len(l.parts) > 0 || l.state.pending.Len() > 0:
		return fmt.Errorf("%w: slice %s is out of place", ErrSnapshot, g)
	case l.state.slices[g] != nil:
		return fmt.Errorf("%w: slice %s is there twice", ErrSnapshot, g)
	case r.Returned > r.Granted || r.Entries > uint64(r.Granted-r.Returned):
		return fmt.Errorf("%w: slice %s has %d entries in %d slots less %d", ErrSnapshot, g, r.Entries, r.Granted, r.Returned)
	}
	l.current = newSlice(g, r.Generation, l.state)
	l.follow(l.current.entries, r.Entries)
	l.current.granted, l.current.returned, l.current.epoch = r.Granted, r.Returned, r.Epoch
	l.state.slices[g] = l.current
	return nil
}

func (l *Loader) entry(m codec.Message) error {
	var r entryRecord
	if err := m.Decode(headEntry, &r); err != nil {
		return err
	}
	if l.missing == 0 {
		return fmt.Errorf("%w: entry %d is out of place", ErrSnapshot, r.Sequence)
	}
	if !fits(r.Deleted, r.Sealed, r.Note) {
		return fmt.Errorf("%w: face or note of entry %d", ErrSnapshot, r.Sequence)
	}
	if r.First == 0 {
		r.First = r.Sequence
	}
	l.missing--
	return l.add(l.current, l.remains, newDraft(record.Fields{
		Subject: r.Subject, Event: r.Event, Tags: r.Tags,
		Sequence: r.Sequence, First: r.First, Time: r.Time, Deleted: r.Deleted, Revision: r.Revision,
	}, r.Sealed, r.Note, r.Expires))
}

// add adds an entry to a slice or, without one, to the entries behind a fence.
func (l *Loader) add(sl *slice, remains *record.Order, d *draft) error {
	among := remains
	if sl != nil {
		among = sl.entries
	}
	last, time := uint64(0), d.Time
	if before := among.Last(); before != nil {
		last, time = before.Sequence(), before.Time()
	}
	if d.Sequence <= last || d.Sequence > l.state.sequence || d.First > d.Sequence || d.Time < time || !expirable(d.expires, d.Deleted) {
		return fmt.Errorf("%w: entry %d after %d", ErrSnapshot, d.Sequence, last)
	}
	if sl == nil {
		l.state.faces.add(d.Sequence, d.sealed)
		remains.Append(remains.Table().Add(&d.Fields))
		return nil
	}
	sl.enter(d) // Check links it to its subject
	return nil
}

func (l *Loader) fence(m codec.Message) error {
	var r fenceRecord
	if err := m.Decode(headFence, &r); err != nil {
		return err
	}
	g, sl := r.Gallery, l.state.slices[r.Gallery]
	last, _, _ := l.state.fences.order.Max()
	switch {
	case !l.begun || l.missing > 0 || len(l.parts) > 0 || l.state.pending.Len() > 0 || r.Sequence <= last || r.Sequence > l.state.sequence:
		return fmt.Errorf("%w: fence %d of gallery %s is out of place", ErrSnapshot, r.Sequence, g)
	case l.state.fences.of[g] != nil || len(l.state.fences.of) == fencesMax:
		return fmt.Errorf("%w: gallery %s has two fences, or there are too many", ErrSnapshot, g)
	case sl != nil && sl.generation < r.Generation:
		return fmt.Errorf("%w: gallery %s has a slice behind its fence", ErrSnapshot, g)
	}
	l.current, l.remains = nil, record.NewOrder(record.NewTable(l.state.arena))
	l.follow(l.remains, r.Entries)
	l.state.fences.add(&fence{g, r.Generation, r.Sequence, l.remains})
	return nil
}

func (l *Loader) pendingEvent(m codec.Message) error {
	var r pendingRecord
	if err := m.Decode(headPending, &r); err != nil {
		return err
	}
	sl := l.state.slices[r.Gallery]
	last, before, ok := l.state.pending.Max()
	switch {
	case !l.begun || l.missing > 0 || uint64(len(l.parts)) != l.segments || r.Sequence <= last || r.Sequence > l.state.sequence || ok && r.Time < before.event.Time,
		r.Number == 0 || r.Number > r.Sequence, !expirable(r.Expires, false):
		return fmt.Errorf("%w: pending event %d after %d", ErrSnapshot, r.Sequence, last)
	case sl == nil || sl.used() >= sl.slots() || sl.pending[r.Event] != nil:
		return fmt.Errorf("%w: pending event %s has no slot, or is there twice", ErrSnapshot, r.Event)
	}
	l.state.add(sl, &pendingEvent{sequence: r.Sequence, number: r.Number, want: siblings(r.Further), event: Event{
		Gallery: r.Gallery, Generation: sl.generation, Subject: r.Subject, Event: r.Event, Time: r.Time,
		Tags: r.Tags, Sealed: r.Sealed, Op: r.Op, Request: r.Request, Note: r.Note, Expires: r.Expires,
	}})
	return nil
}

// Check returns an error that wraps ErrSnapshot unless all records have come.
func (l *Loader) Check() (err error) {
	st, h := l.state, l.head
	if !l.begun || l.missing > 0 || uint64(len(st.slices)) != h.Slices || uint64(len(st.fences.of)) != h.Fences ||
		uint64(st.pending.Len()) != h.Pending || uint64(len(l.parts)) != l.segments {
		return fmt.Errorf("%w: records are missing", ErrSnapshot)
	}
	for entries, n := range l.expected {
		if uint64(entries.Len()) != n {
			return fmt.Errorf("%w: %d entries of %d", ErrSnapshot, entries.Len(), n)
		}
	}
	for _, sl := range st.slices {
		if err := sl.index(); err != nil {
			return err
		}
	}
	if l.parts != nil {
		parts := l.parts
		l.parts = nil
		l.set, err = segment.NewSet(parts)
		// Each entry in the set may die, and needs a tombstone then.
		st.tombstones.through = st.sequence
	}
	st.keepStored()
	return err
}

// Replace replaces the shard's state by that of a checked loader, and zeroes the old templates. The
// loader is used up.
func (s *Shard) Replace(l *Loader) {
	s.mu.Lock()
	old := s.state
	s.state, l.state = l.state, nil
	set := s.sealed.swap(l.set, s.state.faces)
	l.set = nil
	old.free()
	s.mu.Unlock()
	set.Release()
}
