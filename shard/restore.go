package shard

import (
	"errors"
	"fmt"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/shard/record"
)

// A backup keeps the slices of a shard and their entries. It leaves out pending events,
// which were never acknowledged, and entries behind a fence, which were deleted.
//
// Restored entries get new sequences, because the shard they come to has its own. An
// entry that had sequence s and first f gets at least base+s and exactly base+f. base
// is the shard's sequence before the slice's first entry. So the order of a subject's
// events stays the same.

// sequenceMax is the largest base, and the largest sequence of an entry that is restored: their sum
// leaves room for new ones.
const sequenceMax = record.SequenceMax / 4

// ErrBase is returned when entries to be restored don't follow the entries that the slice has.
var ErrBase = errors.New("shard: entries are missing or there already")

// CopiedSlice is a slice in a backup.
type CopiedSlice struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	// Granted and Returned are totals; the slots are their difference.
	Granted  uint32 `cbor:"3,keyasint"`
	Returned uint32 `cbor:"4,keyasint,omitempty"`
	Epoch    uint32 `cbor:"5,keyasint,omitempty"`
	// Entries counts the entries that follow.
	Entries uint64 `cbor:"6,keyasint,omitempty"`
}

// CopiedEntry is an event, active or deleted, in a backup. A deleted one has no face.
type CopiedEntry struct {
	Subject  id.Subject `cbor:"1,keyasint"`
	Event    id.Event   `cbor:"2,keyasint"`
	Time     int64      `cbor:"3,keyasint"`
	Deleted  bool       `cbor:"4,keyasint,omitempty"`
	Tags     []uint32   `cbor:"5,keyasint,omitempty"`
	Sealed   []byte     `cbor:"6,keyasint,omitempty"`
	Revision uint32     `cbor:"7,keyasint,omitempty"`
	// Sequence and First order the entries of a slice.
	Sequence uint64 `cbor:"8,keyasint"`
	First    uint64 `cbor:"9,keyasint"`
	// Note is the subject's note, if the event carries it.
	Note []byte `cbor:"10,keyasint,omitempty"`
	// Expires is when the event expires of itself, in milliseconds since 1970.
	Expires int64 `cbor:"12,keyasint,omitempty"`
}

// Copy reads a snapshot without segments, and picks the records that a backup keeps. The zero value
// is before the first record.
type Copy struct{ entries uint64 }

// Next reads the next record. It returns a slice, an entry of the last slice, or neither if a
// backup does not keep the record. The error wraps codec.ErrMalformed or ErrSnapshot.
func (c *Copy) Next(m codec.Message) (*CopiedSlice, *CopiedEntry, error) {
	switch m.Code {
	case headSlice.Code:
		var r sliceRecord
		if err := m.Decode(headSlice, &r); err != nil {
			return nil, nil, err
		}
		c.entries = r.Entries
		return &CopiedSlice{r.Gallery, r.Generation, r.Granted, r.Returned, r.Epoch, r.Entries}, nil, nil
	case headEntry.Code:
		if c.entries == 0 {
			return nil, nil, nil // behind a fence
		}
		c.entries--
		var r entryRecord
		if err := m.Decode(headEntry, &r); err != nil {
			return nil, nil, err
		}
		if r.First == 0 {
			r.First = r.Sequence
		}
		return nil, &CopiedEntry{
			r.Subject, r.Event, r.Time, r.Deleted, r.Tags, r.Sealed, r.Revision, r.Sequence, r.First, r.Note, r.Expires,
		}, nil
	case headStored.Code, headSegment.Code:
		return nil, nil, fmt.Errorf("%w: entries are in segments", ErrSnapshot)
	default:
		return nil, nil, nil
	}
}

// Load is a piece of a slice from a backup.
type Load struct {
	Slice CopiedSlice
	// Have is how many entries of the slice were loaded before.
	Have uint64
	Base uint64
	// Entries are the next entries.
	Entries []CopiedEntry
}

// Loaded reports how far the loading of a slice has come.
type Loaded struct {
	Entries uint64
	// Last is the First that the last entry has here. Without entries, it is the Base for the first
	// ones.
	Last uint64
}

// Load makes the slice, if there is none, and adds entries to it. Unless the slice has exactly Have
// entries, it returns ErrBase and adds nothing, so a first Load without entries reports what is
// there. Other errors wrap ErrGeneration, ErrNoSlot or ErrSnapshot; then the entries before the
// wrong one stay.
func (s *lockedState) Load(l Load) (Loaded, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.open(l.Slice.Gallery, l.Slice.Generation)
	if err != nil {
		return Loaded{}, err
	}
	sl.granted, sl.returned = max(sl.granted, l.Slice.Granted), max(sl.returned, l.Slice.Returned)
	sl.epoch = max(sl.epoch, l.Slice.Epoch)
	if sl.returned > sl.granted || uint64(sl.entries.Len()) != l.Have {
		return s.state.loaded(sl), ErrBase
	}
	for i := range l.Entries {
		if err := s.state.load(sl, l.Base, &l.Entries[i]); err != nil {
			return s.state.loaded(sl), err
		}
	}
	return s.state.loaded(sl), nil
}

func (st *state) loaded(sl *slice) Loaded {
	if last := sl.entries.Last(); last != nil {
		return Loaded{uint64(sl.entries.Len()), last.First()}
	}
	return Loaded{0, st.sequence}
}

// load adds one entry.
func (st *state) load(sl *slice, base uint64, c *CopiedEntry) error {
	before := sl.entries.Last()
	switch {
	case sl.used() >= sl.slots():
		return ErrNoSlot
	case base > sequenceMax || c.Sequence > sequenceMax || c.First == 0 || c.First > c.Sequence,
		before != nil && c.Time < before.Time():
		return fmt.Errorf("%w: entry %d is out of order", ErrSnapshot, c.Sequence)
	case c.Deleted != (len(c.Sealed) == 0), !expirable(c.Expires, c.Deleted), !c.Deleted && !sl.find(c.Subject, c.Event).none():
		return fmt.Errorf("%w: event %s is there twice, or has no face", ErrSnapshot, c.Event)
	}
	if !fits(c.Deleted, c.Sealed, c.Note) {
		return fmt.Errorf("%w: face or note of event %s", ErrSnapshot, c.Event)
	}
	st.sequence = max(st.sequence+1, base+c.Sequence)
	sl.add(newDraft(record.Fields{
		Subject: c.Subject, Event: c.Event, Tags: c.Tags,
		Sequence: st.sequence, First: base + c.First, Time: c.Time, Deleted: c.Deleted, Revision: c.Revision,
	}, c.Sealed, c.Note, c.Expires))
	return nil
}
