package shard

import (
	"sync/atomic"

	"github.com/tidwall/btree"

	"facet/internal/id"
	"facet/shard/record"
)

// slice is the part of a gallery that lies on this shard.
type slice struct {
	gallery    id.Gallery
	generation uint32
	// epoch is the largest epoch that Widen was given.
	epoch uint32
	// granted and returned are totals that only grow. The slice has granted − returned slots.
	granted, returned uint32

	// members has the entries, and the first active event of each subject.
	members
	// entries are in log order, which is also the order of their times.
	entries *record.Order
	// deleted are the sequences of deleted entries.
	deleted *btree.Map[uint64, struct{}]
	// pending are the events that hold a slot and are no entries yet.
	pending map[id.Event]*pendingEvent

	// sealedBytes is the total of the sealed faces, in memory or in segments.
	sealedBytes int64
	// times has when active entries expire of themselves, or is nil.
	times *timetable
	// settledTo is a sequence before which no entry is active. It follows from the entries, and
	// differs between replicas.
	settledTo uint64

	// tombstones takes the sequences of entries that died, and faces the sealed faces of those that
	// came.
	tombstones *tombstones
	faces      *faces

	// changes counts the active entries that came or went. It is written with Shard.mu held for
	// writing.
	changes   atomic.Uint64
	templates templates
	// source has the exact rows that are not in memory. searched is when the last search began, in
	// milliseconds since 1970.
	source   source
	searched atomic.Int64
	// means has the subjects' own templates, or nil if the slice has none. It is stored with Shard.mu
	// held for writing.
	means atomic.Pointer[means]
	// models has the models of the templates, those of pending events included.
	models models
}

func newSlice(g id.Gallery, generation uint32, st *state) *slice {
	t := members{record.NewTable(st.arena)}
	sl := &slice{
		tombstones: st.tombstones,
		faces:      st.faces,
		gallery:    g,
		generation: generation,
		members:    t,
		entries:    record.NewOrder(t.Table),
		deleted:    new(btree.Map[uint64, struct{}]),
		pending:    make(map[id.Event]*pendingEvent),
		templates:  templates{entries: t},
	}
	sl.source.sl, sl.templates.source = sl, &sl.source
	return sl
}

func (sl *slice) slots() uint32 { return sl.granted - sl.returned }

func (sl *slice) used() uint32 { return uint32(sl.entries.Len() + len(sl.pending)) }

// room reports whether a slot is free, and frees one if reuse permits it.
func (sl *slice) room(reuse Reuse) bool {
	return sl.used() < sl.slots() || reuse == OldestDeleted && sl.dropOldestDeleted()
}

// draft is an entry to be added.
type draft struct {
	record.Fields
	// sealed is its sealed face, followed by its note, or nil if a segment has them.
	sealed []byte
	// expires is when the event expires of itself, or 0.
	expires int64
}

// add adds an entry in a free slot.
func (sl *slice) add(d *draft) {
	m := sl.enter(d)
	if !d.Deleted {
		sl.templates.enter(m.row)
		sl.changes.Add(1)
		sl.join(m)
	}
}

// enter adds an entry without its template and a link to its subject.
func (sl *slice) enter(d *draft) member {
	sl.faces.add(d.Sequence, d.sealed)
	m := sl.at(sl.Add(&d.Fields))
	sl.entries.Append(m.row)
	if d.Deleted {
		sl.deleted.Set(d.Sequence, struct{}{})
	} else {
		sl.models.add(d.sealed)
		sl.expires(d.Sequence, d.expires)
	}
	sl.sealedBytes += int64(d.SealedLen)
	return m
}

// leave removes an active entry, and zeroes its template and its subject's own. The caller updates
// the subject, and removes the record when it is no longer needed.
func (sl *slice) leave(m member) {
	sl.means.Load().leave(m.Subject)
	sl.templates.leave(m.row)
	sl.changes.Add(1)
	sequence := m.Sequence()
	sl.entries.Delete(sequence)
	sl.times.remove(sequence)
	sl.tombstones.add(sequence)
	sl.faces.remove(sequence)
	sl.sealedBytes -= int64(m.SealedLen)
}

// dropOldestDeleted frees the slot of the oldest deleted entry, if there is one.
func (sl *slice) dropOldestDeleted() bool {
	sequence, _, ok := sl.deleted.PopMin()
	if ok {
		sl.Remove(sl.entries.Delete(sequence))
		sl.tombstones.add(sequence)
	}
	return ok
}

// drop zeroes all templates and frees their memory. The entries stay.
func (sl *slice) drop() {
	sl.templates.drop()
	sl.means.Load().drop()
}

// ref returns the place that the face of e is sealed for.
func (sl *slice) ref(e *entry) FaceRef {
	return FaceRef{sl.gallery, sl.generation, e.Subject, e.Event, e.Revision}
}

// deletedEntry returns the deleted entry that replaces m.
func deletedEntry(m member, sequence uint64, time int64) *draft {
	return &draft{Fields: record.Fields{
		Subject: m.Subject, Event: m.Event, Sequence: sequence, First: sequence, Time: time, Deleted: true,
	}}
}
