package shard

import (
	"errors"
	"slices"
	"sync"

	"github.com/tidwall/btree"

	"facet/shard/segment"
)

// Where a shard has a store, the sealed faces of its entries don't stay in memory:
//
//	Freeze    captures the entries, and the sequences of those that died
//	Settle    writes entries that are in no segment yet, and leaves out the dead: the set
//	Adopt     the faces of entries that are in the set leave the memory
//
// Segments are no part of the state: replicas with equal states have different ones.

// adoptBatch is how many faces are let go of without giving readers a chance.
const adoptBatch = 4096

// sealedStore knows where sealed faces are.
type sealedStore struct {
	store *segment.Store // nil: in memory, all of them

	// mu guards set, the sealed of every entry that is shared, views, and the later of
	// every view. It is taken after Shard.mu.
	mu  sync.RWMutex
	set *segment.Set
	// views are those that are not released.
	views map[*View]struct{}
}

// Keep gives the shard the store of its segments, before anything else is called.
func (s *Shard) Keep(store *segment.Store) { s.sealed.store = store }

// Store is what Keep was given, or nil.
func (s *Shard) Store() *segment.Store { return s.sealed.store }

// read returns the sealed face of an entry, which must not be changed; nil if it has
// none. The error wraps segment.ErrMissing if the entry is gone.
func (ss *sealedStore) read(e *entry) ([]byte, error) {
	ss.mu.RLock()
	sealed, set := e.sealed, ss.set
	if sealed != nil || e.sealedLen == 0 {
		ss.mu.RUnlock()
		return sealed, nil
	}
	if set == nil {
		ss.mu.RUnlock()
		return nil, segment.ErrMissing
	}
	set.Retain()
	ss.mu.RUnlock()
	defer set.Release()
	return set.Sealed(e.sequence)
}

// current returns the present set, which the caller releases; nil without one.
func (ss *sealedStore) current() *segment.Set {
	ss.mu.RLock()
	defer ss.mu.RUnlock()
	if ss.set == nil {
		return nil
	}
	return ss.set.Retain()
}

// readBy is read, by a cursor and from set if that has the face. It is valid until
// the cursor's next use.
func (ss *sealedStore) readBy(c *segment.Cursor, set *segment.Set, e *entry) ([]byte, error) {
	ss.mu.RLock()
	sealed := e.sealed
	ss.mu.RUnlock()
	if sealed != nil || e.sealedLen == 0 {
		return sealed, nil
	}
	sealed, err := set.SealedBy(c, e.sequence)
	if errors.Is(err, segment.ErrMissing) { // adopted since
		return ss.read(e)
	}
	return sealed, err
}

// swap makes set the present one, which it takes over, and gives the old one for the
// caller to release: not while Shard.mu is held, because that may wait for the disk.
func (ss *sealedStore) swap(set *segment.Set) (old *segment.Set) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	old, ss.set = ss.set, set
	return old
}

// adopt is swap, and hands the set to all views: it may be the only one that has an
// entry of theirs whose face is about to leave the memory.
func (ss *sealedStore) adopt(v *View) (old *segment.Set) {
	set := v.settled.Retain()
	ss.mu.Lock()
	for view := range ss.views {
		view.later = append(view.later, set.Retain())
	}
	ss.mu.Unlock()
	return ss.swap(set)
}

// open and close say from when to when a view reads faces.
func (ss *sealedStore) open(v *View) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.views == nil {
		ss.views = make(map[*View]struct{})
	}
	ss.views[v] = struct{}{}
}

func (ss *sealedStore) close(v *View) (later []*segment.Set) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.views, v)
	later, v.later = v.later, nil
	return later
}

// tombstones are the sequences of the entries that are no more, as far as a segment may
// have them. Shard.mu guards them.
type tombstones struct {
	// through is the last sequence that was ever frozen for a store: later entries
	// are in no segment.
	through uint64
	dead    []uint64
	// settled counts those that were in dead before and that an adopted set knows of.
	settled int
}

// add notes that an entry is no more.
func (t *tombstones) add(sequence uint64) {
	if sequence <= t.through {
		t.dead = append(t.dead, sequence)
	}
}

// addAll notes that entries are no more.
func (t *tombstones) addAll(entries *btree.Map[uint64, *entry]) {
	entries.Scan(func(sequence uint64, _ *entry) bool {
		t.add(sequence)
		return sequence < t.through
	})
}

// fresh is an entry that is in no segment.
type fresh struct {
	origin
	*entry
}

// Settle writes what is in no segment yet, and gives the set of segments that has
// all entries of v. It belongs to v. Write then refers to it. The error is the disk's
// or wraps segment.ErrCorrupt.
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
			row = appendRow(row[:0], f.origin, f.entry, sealed)
			if !yield(segment.Record{Sequence: f.sequence, Clear: row, Sealed: sealed}) {
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

// Built says what Settle wrote.
func (v *View) Built() segment.Built { return v.built }

// collectFresh finds the entries of v that are in no segment, in order.
func (v *View) collectFresh() {
	after := v.set.Last() + 1
	v.fresh = nil
	collect := func(at origin, entries *btree.Map[uint64, *entry]) {
		entries.Ascend(after, func(_ uint64, e *entry) bool {
			v.fresh = append(v.fresh, fresh{at, e})
			return true
		})
	}
	for _, sl := range v.slices {
		collect(origin{sl.head.Gallery, sl.head.Generation}, sl.entries)
	}
	for i := range v.fences {
		// The generation only has to be one that the fence keeps out.
		collect(origin{v.fences[i].gallery, v.fences[i].generation - 1}, v.fences[i].remains)
	}
	slices.SortFunc(v.fresh, func(a, b fresh) int {
		if a.sequence < b.sequence {
			return -1
		}
		return 1
	})
}

// sealed gives the sealed face of an entry of v, which may have died since: it is in
// memory, or in the set of v, or in one that was adopted after v was frozen.
func (v *View) sealed(e *entry) ([]byte, error) {
	v.shard.sealed.mu.RLock()
	sealed, later := e.sealed, v.later
	v.shard.sealed.mu.RUnlock()
	if sealed != nil || e.sealedLen == 0 {
		return sealed, nil
	}
	sealed, err := v.set.Sealed(e.sequence)
	for i := 0; i < len(later) && errors.Is(err, segment.ErrMissing); i++ {
		sealed, err = later[i].Sealed(e.sequence)
	}
	return sealed, err
}

// Adopt makes the settled set the shard's own: what is in it is read from there, and
// leaves the memory. It is of no effect if the shard's state was replaced since
// Freeze, or if another view was adopted: the set of v may lack what left the memory
// by that.
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
	old := s.sealed.adopt(v)
	s.mu.Unlock()
	old.Release()
	for batch := range slices.Chunk(v.fresh, adoptBatch) {
		s.sealed.mu.Lock()
		for _, f := range batch {
			f.sealed = nil
		}
		s.sealed.mu.Unlock()
	}
	v.fresh = nil
}

// Release lets go of the segments. v is not used after it.
func (v *View) Release() {
	for _, set := range v.shard.sealed.close(v) {
		set.Release()
	}
	v.set.Release()
	v.settled.Release()
	v.set, v.settled, v.fresh = nil, nil, nil
}
