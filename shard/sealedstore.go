package shard

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"facet/shard/record"
	"facet/shard/segment"
)

// In a shard with a store, the sealed faces of its entries don't stay in memory:
//
//	Freeze    captures the entries, and the sequences of those that died
//	Settle    writes the entries that are in no segment yet: a set without the dead
//	Adopt     drops the faces that are in the set from memory
//
// Segments are no part of the state: replicas with equal states have different ones.

// adoptBatch is how many faces Adopt drops each time that it holds the lock.
const adoptBatch = 4096

// sealedStore finds sealed faces in memory and in segments.
type sealedStore struct {
	store *segment.Store // nil keeps all faces in memory

	// mu guards set and faces. It is taken after Shard.mu. A face leaves the memory after the set that
	// has it came.
	mu    sync.RWMutex
	set   *segment.Set
	faces *faces
}

// Keep sets the store of the shard's segments. It is called before any other method.
func (s *Shard) Keep(store *segment.Store) { s.sealed.store = store }

// Store returns the store that Keep set, or nil.
func (s *Shard) Store() *segment.Store { return s.sealed.store }

// parts returns the sealed face and the sealed note of an entry, each nil if it has none. They must
// not be changed. The error wraps segment.ErrMissing if the entry is gone.
func (ss *sealedStore) parts(e *entry) (face, note []byte, err error) {
	sealed, err := ss.read(e)
	if err != nil {
		return nil, nil, err
	}
	face, note = split(e, sealed)
	return face, note, nil
}

// read returns the sealed part of an entry: its face, and the note that it carries. The part must
// not be changed, and is nil for a deleted entry. The error wraps segment.ErrMissing if the entry is
// gone.
func (ss *sealedStore) read(e *entry) ([]byte, error) {
	if e.SealedLen == 0 {
		return nil, nil
	}
	sealed, set := ss.look(e.Sequence())
	if sealed != nil {
		return sealed, nil
	}
	defer set.Release()
	return set.Sealed(e.Sequence())
}

// look returns the sealed part of an entry in memory. If it is not there, look returns the present
// set, which the caller releases.
func (ss *sealedStore) look(sequence uint64) (sealed []byte, set *segment.Set) {
	ss.mu.RLock()
	defer ss.mu.RUnlock()
	if sealed = ss.faces.get(sequence); sealed == nil {
		set = ss.set.Retain()
	}
	return sealed, set
}

// current returns the present set, which the caller releases, or nil.
func (ss *sealedStore) current() *segment.Set {
	ss.mu.RLock()
	defer ss.mu.RUnlock()
	return ss.set.Retain()
}

// readBy returns the sealed face of an entry, with a cursor. It looks in set first, then in the
// present set. The face is valid until the cursor's next use.
func (ss *sealedStore) readBy(c *segment.Cursor, set *segment.Set, e *entry) ([]byte, error) {
	if e.SealedLen == 0 {
		return nil, nil
	}
	ss.mu.RLock()
	sealed := ss.faces.get(e.Sequence())
	ss.mu.RUnlock()
	var err error
	if sealed == nil {
		sealed, err = set.SealedBy(c, e.Sequence())
		if errors.Is(err, segment.ErrMissing) { // adopted meanwhile
			sealed, err = ss.read(e)
		}
	}
	if err != nil {
		return nil, err
	}
	face, _ := split(e, sealed)
	return face, nil
}

// swap makes set and faces the present ones and takes them over. The caller releases the old set
// after it released Shard.mu, because releasing may wait for the disk.
func (ss *sealedStore) swap(set *segment.Set, f *faces) (old *segment.Set) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	old, ss.set, ss.faces = ss.set, set, f
	return old
}

// tombstones has the sequences of dead entries that may be in a segment. Shard.mu guards it.
type tombstones struct {
	// through is the last sequence at the newest Freeze. No segment has a later entry.
	through uint64
	dead    []uint64
	// settled counts the sequences that were removed from dead because an adopted set leaves them
	// out.
	settled int
}

// add notes that an entry died.
func (t *tombstones) add(sequence uint64) {
	if sequence <= t.through {
		t.dead = append(t.dead, sequence)
	}
}

// fresh is an entry that no segment has.
type fresh struct {
	origin
	*entry
	tags []uint32
	// expires is when the event expires of itself, or 0.
	expires int64
}

// Settle writes the entries that no segment has yet, and returns the set with all entries of v,
// which v owns. Write then refers to that set. The error is the disk's or wraps segment.ErrCorrupt.
func (v *View) Settle(clean segment.Clean) (*segment.Set, error) {
	v.collectFresh()
	var row []byte
	var unread error
	records := func(yield func(segment.Record) bool) {
		for _, f := range v.fresh {
			var sealed []byte
			if sealed, unread = v.sealed(f.entry); unread != nil {
				return
			}
			row = appendRow(row[:0], f, sealed)
			if !yield(segment.Record{Sequence: f.Sequence(), Clear: row, Sealed: sealed}) {
				return
			}
		}
	}
	set, built, err := v.shard.sealed.store.Build(v.set, segment.Change{Dead: v.dead, Fresh: records, Clean: clean})
	if err == nil && unread != nil {
		set.Release()
		err = unread
	}
	if err != nil {
		return nil, err
	}
	v.settled, v.built = set, built
	return set, nil
}

// Built reports what Settle wrote.
func (v *View) Built() segment.Built { return v.built }

// collectFresh collects the entries of v that no segment has, in order.
func (v *View) collectFresh() {
	after := v.set.Last() + 1
	v.fresh = nil
	collect := func(at origin, entries *record.Order, times *timetable) {
		for _, e := range entries.All(after) {
			v.fresh = append(v.fresh, fresh{at, e, entries.Table().Tags(&e.Owner), times.at(e.Sequence())})
		}
	}
	for _, sl := range v.slices {
		collect(origin{sl.head.Gallery, sl.head.Generation}, sl.entries, sl.times)
	}
	for i := range v.fences {
		// Any generation before that of the fence will do.
		collect(origin{v.fences[i].gallery, v.fences[i].generation - 1}, v.fences[i].remains, nil)
	}
	slices.SortFunc(v.fresh, func(a, b fresh) int { return cmp.Compare(a.Sequence(), b.Sequence()) })
}

// sealed returns the sealed part of an entry of v, even if the entry died since.
func (v *View) sealed(e *entry) ([]byte, error) {
	if sealed, ok := v.faces.Get(e.Sequence()); ok || e.SealedLen == 0 {
		return sealed, nil
	}
	return v.set.Sealed(e.Sequence())
}

// Adopt makes the settled set the shard's own and drops its faces from memory. It does nothing if
// the shard's state was replaced since Freeze. It also does nothing if another view was adopted
// since: the settled set may lack faces that the other view dropped from memory.
func (v *View) Adopt() {
	s := v.shard
	s.mu.Lock()
	if s.state != v.state || s.sealed.set != v.set || v.settled == nil {
		s.mu.Unlock()
		return
	}
	if t := s.state.tombstones; v.deadEnd > t.settled {
		t.dead = slices.Clone(t.dead[v.deadEnd-t.settled:])
		t.settled = v.deadEnd
	}
	faces := s.state.faces
	old := s.sealed.swap(v.settled.Retain(), faces)
	s.mu.Unlock()
	old.Release()
	sequences := make([]uint64, 0, adoptBatch)
	for batch := range slices.Chunk(v.fresh, adoptBatch) {
		sequences = sequences[:0]
		for _, f := range batch {
			sequences = append(sequences, f.Sequence())
		}
		faces.remove(sequences...)
	}
	v.fresh = nil
}

// Release releases the segments. v is not used after it.
func (v *View) Release() {
	for _, unpin := range v.unpin {
		unpin()
	}
	v.unpin, v.faces = nil, nil
	v.set.Release()
	v.settled.Release()
	v.set, v.settled, v.fresh = nil, nil, nil
}
