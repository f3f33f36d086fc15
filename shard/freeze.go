package shard

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/tidwall/btree"

	"facet/internal/codec"
	"facet/internal/id"
)

// The records of a shard in a snapshot. The numbers are stored and never reused;
// those below 16 belong to this package.
var (
	headShard = codec.Head{Code: 1, Version: 1}
	headSlice = codec.Head{Code: 2, Version: 1}
	headEntry = codec.Head{Code: 3, Version: 1}
)

// ErrSnapshot says that records contradict each other.
var ErrSnapshot = errors.New("shard: the snapshot is not consistent")

type shardRecord struct {
	Sequence uint64 `cbor:"1,keyasint"`
	Slices   uint64 `cbor:"2,keyasint"`
}

// sliceRecord stands before the entries of its slice.
type sliceRecord struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Granted    uint32     `cbor:"3,keyasint"`
	Entries    uint64     `cbor:"4,keyasint"`
}

type entryRecord struct {
	Sequence uint64     `cbor:"1,keyasint"`
	Subject  id.Subject `cbor:"2,keyasint"`
	Event    id.Event   `cbor:"3,keyasint"`
	Time     int64      `cbor:"4,keyasint"`
	Deleted  bool       `cbor:"5,keyasint,omitempty"`
	Tags     []uint32   `cbor:"6,keyasint,omitempty"`
	Sealed   []byte     `cbor:"7,keyasint,omitempty"`
}

// View is a shard's state at one moment, for a snapshot. It shares memory with the
// shard and does not see later writes. Templates in clear are no part of it.
type View struct {
	sequence uint64
	slices   []sliceView
}

type sliceView struct {
	gallery             id.Gallery
	generation, granted uint32
	entries             *btree.Map[uint64, *entry]
}

// Freeze captures the state; it costs time by the slice, not by the event.
func (s *Shard) Freeze() *View {
	s.mu.Lock() // copying a tree changes the original too
	defer s.mu.Unlock()
	v := &View{sequence: s.state.sequence, slices: make([]sliceView, 0, len(s.state.slices))}
	for _, sl := range s.state.slices {
		v.slices = append(v.slices, sliceView{sl.gallery, sl.generation, sl.granted, sl.entries.Copy()})
	}
	slices.SortFunc(v.slices, func(a, b sliceView) int { return bytes.Compare(a.gallery.UUID[:], b.gallery.UUID[:]) })
	return v
}

// Write adds the records of v to w, in an order that depends on the state only.
func (v *View) Write(w *codec.Writer) {
	w.Record(headShard, shardRecord{v.sequence, uint64(len(v.slices))})
	for _, sl := range v.slices {
		w.Record(headSlice, sliceRecord{sl.gallery, sl.generation, sl.granted, uint64(sl.entries.Len())})
		sl.entries.Scan(func(_ uint64, e *entry) bool {
			w.Record(headEntry, entryRecord{
				Sequence: e.sequence, Subject: e.subject, Event: e.event,
				Time: e.time, Deleted: e.deleted, Tags: e.tags, Sealed: e.sealed,
			})
			return true
		})
	}
}

// Loader builds a state from the records of a snapshot, beside the shard's own.
type Loader struct {
	state  *state
	begun  bool
	slices uint64
	// current is the slice whose entries follow; missing counts them.
	current *slice
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
	l.begun, l.slices, l.state.sequence = true, r.Slices, r.Sequence
	return nil
}

func (l *Loader) slice(m codec.Message) error {
	var r sliceRecord
	if err := m.Decode(headSlice, &r); err != nil {
		return err
	}
	g := r.Gallery
	switch {
	case !l.begun || l.missing > 0:
		return fmt.Errorf("%w: slice %s is out of place", ErrSnapshot, g)
	case l.state.slices[g] != nil:
		return fmt.Errorf("%w: slice %s is there twice", ErrSnapshot, g)
	case r.Entries > uint64(r.Granted):
		return fmt.Errorf("%w: slice %s has %d entries in %d slots", ErrSnapshot, g, r.Entries, r.Granted)
	}
	l.current, l.missing = newSlice(g, r.Generation), r.Entries
	l.current.granted = r.Granted
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
	last, before, ok := l.current.entries.Max()
	if r.Sequence <= last || r.Sequence > l.state.sequence || ok && r.Time < before.time {
		return fmt.Errorf("%w: entry %d after %d", ErrSnapshot, r.Sequence, last)
	}
	l.missing--
	l.current.add(&entry{
		sequence: r.Sequence, subject: r.Subject, event: r.Event,
		time: r.Time, deleted: r.Deleted, tags: r.Tags, sealed: r.Sealed,
	})
	return nil
}

// Check tells whether all records have come; the error wraps ErrSnapshot.
func (l *Loader) Check() error {
	if !l.begun || l.missing > 0 || uint64(len(l.state.slices)) != l.slices {
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
