package shard

import (
	"errors"
	"fmt"

	"github.com/tidwall/btree"

	"facet/internal/codec"
)

// ErrSnapshot says that records contradict each other.
var ErrSnapshot = errors.New("shard: the snapshot is not consistent")

// Loader builds a state from the records of a snapshot, beside the shard's own.
type Loader struct {
	state *state
	begun bool
	// head counts what has to come.
	head shardRecord
	// current is the slice, or remains are the entries behind the fence, whose
	// entries follow; missing counts them.
	current *slice
	remains *btree.Map[uint64, *entry]
	missing uint64
}

// NewLoader makes a loader without records.
func NewLoader() *Loader { return &Loader{state: newState()} }

// Load takes the next record; mine is false if it belongs to another package. The
// error wraps codec.ErrMalformed or ErrSnapshot.
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
	case headClaim.Code:
		return true, l.claim(m)
	default:
		return false, nil
	}
}

func (l *Loader) shard(m codec.Message) error {
	var r shardRecord
	if err := m.Decode(headShard, &r); err != nil {
		return err
	}
	if l.begun {
		return fmt.Errorf("%w: two heads", ErrSnapshot)
	}
	l.begun, l.head, l.state.sequence = true, r, r.Sequence
	return nil
}

func (l *Loader) slice(m codec.Message) error {
	var r sliceRecord
	if err := m.Decode(headSlice, &r); err != nil {
		return err
	}
	g := r.Gallery
	switch {
	case !l.begun || l.missing > 0 || len(l.state.fences.of) > 0 || l.state.waiting.Len() > 0:
		return fmt.Errorf("%w: slice %s is out of place", ErrSnapshot, g)
	case l.state.slices[g] != nil:
		return fmt.Errorf("%w: slice %s is there twice", ErrSnapshot, g)
	case r.Returned > r.Granted || r.Entries > uint64(r.Granted-r.Returned):
		return fmt.Errorf("%w: slice %s has %d entries in %d slots less %d", ErrSnapshot, g, r.Entries, r.Granted, r.Returned)
	}
	l.current, l.missing = newSlice(g, r.Generation), r.Entries
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
	among := l.remains
	if l.current != nil {
		among = l.current.entries
	}
	last, before, ok := among.Max()
	if r.Sequence <= last || r.Sequence > l.state.sequence || r.First > r.Sequence || ok && r.Time < before.time {
		return fmt.Errorf("%w: entry %d after %d", ErrSnapshot, r.Sequence, last)
	}
	l.missing--
	e := &entry{
		sequence: r.Sequence, first: r.First, subject: r.Subject, event: r.Event,
		time: r.Time, deleted: r.Deleted, tags: r.Tags, sealed: r.Sealed, revision: r.Revision,
	}
	if e.first == 0 {
		e.first = e.sequence
	}
	if l.current == nil {
		l.remains.Set(e.sequence, e)
		return nil
	}
	if !e.deleted && l.current.active(e.subject, e.event) >= 0 {
		return fmt.Errorf("%w: event %s is there twice", ErrSnapshot, e.event)
	}
	l.current.add(e)
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
	case !l.begun || l.missing > 0 || l.state.waiting.Len() > 0 || r.Sequence <= last || r.Sequence > l.state.sequence:
		return fmt.Errorf("%w: fence %d of gallery %s is out of place", ErrSnapshot, r.Sequence, g)
	case l.state.fences.of[g] != nil || len(l.state.fences.of) == fencesMax:
		return fmt.Errorf("%w: gallery %s has two fences, or there are too many", ErrSnapshot, g)
	case sl != nil && sl.generation < r.Generation:
		return fmt.Errorf("%w: gallery %s has a slice behind its fence", ErrSnapshot, g)
	}
	l.current, l.remains, l.missing = nil, new(btree.Map[uint64, *entry]), r.Entries
	l.state.fences.add(&fence{g, r.Generation, r.Sequence, l.remains})
	return nil
}

func (l *Loader) claim(m codec.Message) error {
	var r claimRecord
	if err := m.Decode(headClaim, &r); err != nil {
		return err
	}
	sl := l.state.slices[r.Gallery]
	last, before, ok := l.state.waiting.Max()
	switch {
	case !l.begun || l.missing > 0 || r.Sequence <= last || r.Sequence > l.state.sequence || ok && r.Time < before.event.Time,
		r.Number == 0 || r.Number > r.Sequence:
		return fmt.Errorf("%w: pending event %d after %d", ErrSnapshot, r.Sequence, last)
	case sl == nil || sl.used() >= sl.slots() || sl.pending[r.Event] != nil:
		return fmt.Errorf("%w: pending event %s has no slot, or is there twice", ErrSnapshot, r.Event)
	}
	l.state.add(sl, &claim{sequence: r.Sequence, number: r.Number, kin: kin(r.Further), event: Event{
		Gallery: r.Gallery, Generation: sl.generation, Subject: r.Subject, Event: r.Event, Time: r.Time,
		Tags: r.Tags, Sealed: r.Sealed, Op: r.Op, Request: r.Request,
	}})
	return nil
}

// Check tells whether all records have come; the error wraps ErrSnapshot.
func (l *Loader) Check() error {
	st, h := l.state, l.head
	if !l.begun || l.missing > 0 || uint64(len(st.slices)) != h.Slices || uint64(len(st.fences.of)) != h.Fences || uint64(st.waiting.Len()) != h.Claims {
		return fmt.Errorf("%w: records are missing", ErrSnapshot)
	}
	return nil
}

// Replace puts a checked loader's state in the place of the shard's, whose
// templates it zeroes. The loader is used up.
func (s *Shard) Replace(l *Loader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.state
	s.state, l.state = l.state, nil
	for _, sl := range old.slices {
		sl.templates.erase()
	}
}
