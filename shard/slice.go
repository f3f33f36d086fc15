package shard

import (
	"fmt"
	"slices"
	"sync"

	"github.com/tidwall/btree"

	"facet/internal/id"
	"facet/shard/seal"
)

// entry is one slot in use: an active or deleted event. It does not change, so
// that frozen views may share it; a change is another entry with a new sequence.
type entry struct {
	sequence uint64
	// first is the sequence of the event's registration, whatever was replaced since.
	first   uint64
	subject id.Subject
	event   id.Event
	time    int64 // of the last change, in milliseconds since 1970
	deleted bool
	tags    []uint32
	sealed  []byte // nil when deleted
	// revision counts the replacements of the event; sealed is bound to it.
	revision uint32
	row      int // in templates; of no meaning when deleted
}

// slice is the part of a gallery that lies on this shard.
type slice struct {
	gallery    id.Gallery
	generation uint32
	// epoch is the largest that the slice was told of.
	epoch uint32
	// granted and returned are totals that only grow; the slots are what is between.
	granted, returned uint32

	// entries are in log order, which is also the order of their times.
	entries *btree.Map[uint64, *entry]
	// deleted are the sequences of deleted entries.
	deleted *btree.Map[uint64, struct{}]
	// subjects gives the active events of a subject in order of registration.
	subjects map[id.Subject][]*entry
	// pending are the events that hold a slot and are no entries yet.
	pending map[id.Event]*claim

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
		pending:    make(map[id.Event]*claim),
	}
}

// slots counts the slots that the slice has.
func (sl *slice) slots() uint32 { return sl.granted - sl.returned }

// used counts the slots in use.
func (sl *slice) used() uint32 { return uint32(sl.entries.Len() + len(sl.pending)) }

// room tells whether a slot is free, and makes one free if reuse permits it.
func (sl *slice) room(reuse Reuse) bool {
	return sl.used() < sl.slots() || reuse == OldestDeleted && sl.dropOldestDeleted()
}

// active gives the place of an event among those of its subject, or −1.
func (sl *slice) active(subject id.Subject, event id.Event) int {
	return slices.IndexFunc(sl.subjects[subject], func(e *entry) bool { return e.event == event })
}

// add takes a slot for e, which is not shared yet. An active one is the last of
// its subject's events to be registered, unless its first says otherwise.
func (sl *slice) add(e *entry) {
	sl.enter(e)
	if e.deleted {
		return
	}
	of := sl.subjects[e.subject]
	i := len(of)
	for i > 0 && of[i-1].first > e.first {
		i--
	}
	sl.subjects[e.subject] = slices.Insert(of, i, e)
}

// enter puts e among the entries. The caller sees to subjects.
func (sl *slice) enter(e *entry) {
	if e.deleted {
		sl.deleted.Set(e.sequence, struct{}{})
	} else {
		e.row = sl.templates.take(e)
	}
	sl.entries.Set(e.sequence, e)
	sl.sealedBytes += int64(len(e.sealed))
}

// leave takes an active entry away and zeroes its template. The caller sees to
// subjects.
func (sl *slice) leave(e *entry) {
	sl.templates.release(e.row)
	sl.entries.Delete(e.sequence)
	sl.sealedBytes -= int64(len(e.sealed))
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
	plain, err := openPlain(key, sl.ref(r.entry), r.entry.sealed)
	if err != nil {
		return err
	}
	defer clear(plain)
	if err := sl.templates.fill(row, templateBytes(plain)); err != nil {
		return fmt.Errorf("open face of event %s: %w", r.entry.event, err)
	}
	return nil
}

// ref is the place that an entry's face is sealed for.
func (sl *slice) ref(e *entry) FaceRef {
	return FaceRef{sl.gallery, sl.generation, e.subject, e.event, e.revision}
}
