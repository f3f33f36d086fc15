package shard

import (
	"sync/atomic"

	"github.com/tidwall/btree"

	"facet/internal/id"
	"facet/shard/kernel"
)

// entry is one slot in use: an active or deleted event. The fields that a View reads never change,
// so views may share entries. A change of the event makes another entry with a new sequence.
type entry struct {
	// Owner has the ids and tags; its address is the row's identity in the matrix.
	kernel.Owner
	sequence uint64
	// first is the sequence of the event's registration, whatever was replaced since.
	first  uint64
	time   int64  // of the last change, in milliseconds since 1970
	sealed []byte // nil when deleted or in a segment: sealedStore.read returns it
	// further is the next active event of the subject; Shard.mu guards it.
	further *entry
	// revision counts the replacements of the event. The sealed face is bound to it.
	revision uint32
	place    place // of an active entry; templates.mu guards it
	// sealedLen is the length of the sealed face, in memory or in a segment, and noteLen that of the
	// subject's note, which follows the face (note.go). The two fill what the struct has to spare.
	sealedLen uint32
	noteLen   uint16
	deleted   bool
}

// slice is the part of a gallery that lies on this shard.
type slice struct {
	gallery    id.Gallery
	generation uint32
	// epoch is the largest epoch that Widen was given.
	epoch uint32
	// granted and returned are totals that only grow. The slice has granted − returned slots.
	granted, returned uint32

	// entries are in log order, which is also the order of their times.
	entries *btree.Map[uint64, *entry]
	// deleted are the sequences of deleted entries.
	deleted *btree.Map[uint64, struct{}]
	// subjects has the first active event of each subject; see subject.go.
	subjects map[id.Subject]*entry
	// pending are the events that hold a slot and are no entries yet.
	pending map[id.Event]*pendingEvent

	// sealedBytes is the total of the sealed faces, in memory or in segments.
	sealedBytes int64
	// times has when active entries expire of themselves, or is nil.
	times *timetable
	// settledTo is a sequence before which no entry is active. It follows from the entries, and
	// differs between replicas.
	settledTo uint64

	// tombstones takes the sequences of entries that died.
	tombstones *tombstones

	// changes counts the active entries that came or went. It is written with Shard.mu held for
	// writing.
	changes   atomic.Uint64
	templates templates
	// means has the subjects' own templates, or nil if the slice has none. It is stored with Shard.mu
	// held for writing.
	means atomic.Pointer[means]
	// models has the models of the templates, those of pending events included.
	models models
}

func newSlice(g id.Gallery, generation uint32, tombstones *tombstones) *slice {
	return &slice{
		tombstones: tombstones,
		gallery:    g,
		generation: generation,
		entries:    new(btree.Map[uint64, *entry]),
		deleted:    new(btree.Map[uint64, struct{}]),
		subjects:   make(map[id.Subject]*entry),
		pending:    make(map[id.Event]*pendingEvent),
	}
}

func (sl *slice) slots() uint32 { return sl.granted - sl.returned }

func (sl *slice) used() uint32 { return uint32(sl.entries.Len() + len(sl.pending)) }

// room reports whether a slot is free, and frees one if reuse permits it.
func (sl *slice) room(reuse Reuse) bool {
	return sl.used() < sl.slots() || reuse == OldestDeleted && sl.dropOldestDeleted()
}

// add adds e, which is not shared yet, in a free slot.
func (sl *slice) add(e *entry) {
	sl.enter(e)
	if !e.deleted {
		sl.join(e)
	}
}

// enter adds e to the entries. The caller updates subjects.
func (sl *slice) enter(e *entry) {
	if e.deleted {
		sl.deleted.Set(e.sequence, struct{}{})
	} else {
		sl.models.add(e.sealed)
		sl.templates.enter(e)
		sl.changes.Add(1)
	}
	sl.entries.Load(e.sequence, e) // fast, because e is the last
	sl.sealedBytes += int64(e.sealedLen)
}

// leave removes an active entry and zeroes its template and its subject's own. The caller updates
// subjects.
func (sl *slice) leave(e *entry) {
	sl.means.Load().leave(e.Subject)
	sl.templates.leave(e)
	sl.changes.Add(1)
	sl.entries.Delete(e.sequence)
	sl.times.remove(e.sequence)
	sl.tombstones.add(e.sequence)
	sl.sealedBytes -= int64(e.sealedLen)
}

// dropOldestDeleted frees the slot of the oldest deleted entry, if there is one.
func (sl *slice) dropOldestDeleted() bool {
	sequence, _, ok := sl.deleted.PopMin()
	if ok {
		sl.entries.Delete(sequence)
		sl.tombstones.add(sequence)
	}
	return ok
}

// drop zeroes all templates and frees their memory.
func (sl *slice) drop() {
	sl.templates.drop()
	sl.means.Load().drop()
}

// ref returns the place that the face of e is sealed for.
func (sl *slice) ref(e *entry) FaceRef {
	return FaceRef{sl.gallery, sl.generation, e.Subject, e.Event, e.revision}
}
