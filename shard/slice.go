package shard

import (
	"fmt"
	"sync"

	"github.com/tidwall/btree"

	"facet/internal/id"
	"facet/shard/seal"
)

// entry is one slot in use: an active or deleted event. It does not change, so
// that frozen views may share it; a change is another entry with a new sequence.
type entry struct {
	sequence uint64
	subject  id.Subject
	event    id.Event
	time     int64 // of the last change, in milliseconds since 1970
	deleted  bool
	tags     []uint32
	sealed   []byte // nil when deleted
	row      int    // in templates; of no meaning when deleted
}

// slice is the part of a gallery that lies on this shard.
type slice struct {
	gallery    id.Gallery
	generation uint32
	granted    uint32

	// entries are in log order, which is also the order of their times.
	entries *btree.Map[uint64, *entry]
	// deleted are the sequences of deleted entries.
	deleted *btree.Map[uint64, struct{}]
	// subjects gives the active events of a subject, the oldest first.
	subjects map[id.Subject][]*entry

	// sealedBytes sums the sealed faces.
	sealedBytes int64

	// opening guards the contents of templates while Shard.mu is held for reading:
	// whoever opens rows holds it. It is taken after Shard.mu.
	opening   sync.Mutex
	templates matrix
}

func newSlice(g id.Gallery, generation uint32) *slice {
	return &slice{
		gallery:    g,
		generation: generation,
		entries:    new(btree.Map[uint64, *entry]),
		deleted:    new(btree.Map[uint64, struct{}]),
		subjects:   make(map[id.Subject][]*entry),
	}
}

// used counts the slots in use.
func (sl *slice) used() uint32 { return uint32(sl.entries.Len()) }

// add takes a slot for e, which is not shared yet.
func (sl *slice) add(e *entry) {
	if e.deleted {
		sl.deleted.Set(e.sequence, struct{}{})
	} else {
		e.row = sl.templates.take(e)
		sl.subjects[e.subject] = append(sl.subjects[e.subject], e)
	}
	sl.entries.Set(e.sequence, e)
	sl.sealedBytes += int64(len(e.sealed))
}

// erase puts a deleted entry in the place of an active one. The caller corrects
// subjects.
func (sl *slice) erase(old, deleted *entry) {
	sl.templates.release(old.row)
	sl.entries.Delete(old.sequence)
	sl.sealedBytes -= int64(len(old.sealed))
	sl.add(deleted)
}

// dropOldestDeleted frees the slot of the oldest deleted entry, if there is one.
func (sl *slice) dropOldestDeleted() bool {
	sequence, _, ok := sl.deleted.PopMin()
	if ok {
		sl.entries.Delete(sequence)
	}
	return ok
}

// open decrypts at most n of the templates that were added since it was last done;
// done tells that all are open. Shard.mu is held for reading.
func (sl *slice) open(key *seal.Key, n int) (done bool, err error) {
	sl.opening.Lock()
	defer sl.opening.Unlock()
	for range n {
		row, ok := sl.templates.next()
		if !ok {
			return true, nil
		}
		if err := sl.openRow(key, row); err != nil {
			return false, err
		}
		sl.templates.done(row)
	}
	return len(sl.templates.pending) == 0, nil
}

// openRow decrypts one row unless it is open or empty. opening is held.
func (sl *slice) openRow(key *seal.Key, row int) error {
	r := &sl.templates.rows[row]
	if r.open || r.entry == nil {
		return nil
	}
	ref := FaceRef{sl.gallery, sl.generation, r.entry.subject, r.entry.event}
	plain, err := openPlain(key, ref, r.entry.sealed)
	if err != nil {
		return err
	}
	defer clear(plain)
	if err := sl.templates.fill(row, templateBytes(plain)); err != nil {
		return fmt.Errorf("open face of event %s: %w", r.entry.event, err)
	}
	return nil
}
