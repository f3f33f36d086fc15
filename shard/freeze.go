package shard

import (
	"bytes"
	"slices"

	"github.com/tidwall/btree"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/shard/record"
	"facet/shard/segment"
)

// The records of a shard in a snapshot. The codes are stored and never reused; those below 16
// belong to this package.
var (
	headShard   = codec.Head{Code: 1, Version: 1}
	headSlice   = codec.Head{Code: 2, Version: 1}
	headEntry   = codec.Head{Code: 3, Version: 1}
	headFence   = codec.Head{Code: 4, Version: 1}
	headPending = codec.Head{Code: 5, Version: 1}
	// headStored replaces headShard where the entries are in segments: no entries
	// follow slices and fences, and the segments follow all fences.
	headStored  = codec.Head{Code: 6, Version: 1}
	headSegment = codec.Head{Code: 7, Version: 1}
)

type shardRecord struct {
	Sequence uint64 `cbor:"1,keyasint"`
	Slices   uint64 `cbor:"2,keyasint"`
	Fences   uint64 `cbor:"3,keyasint,omitempty"`
	Pending  uint64 `cbor:"4,keyasint,omitempty"`
}

// storedRecord is a shardRecord of a shard whose entries are in segments.
type storedRecord struct {
	Sequence uint64 `cbor:"1,keyasint"`
	Slices   uint64 `cbor:"2,keyasint"`
	Fences   uint64 `cbor:"3,keyasint,omitempty"`
	Pending  uint64 `cbor:"4,keyasint,omitempty"`
	Segments uint64 `cbor:"5,keyasint,omitempty"`
}

// segmentRecord is one segment. The records are in the order of their sequences.
type segmentRecord struct {
	Hash segment.Hash `cbor:"1,keyasint"`
	// Dead lists the sequences of the segment's dead records in ascending order. Each is a varint:
	// the difference to the sequence before.
	Dead []byte `cbor:"2,keyasint,omitempty"`
}

// sliceRecord precedes the entries of its slice.
type sliceRecord struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Granted    uint32     `cbor:"3,keyasint"`
	Entries    uint64     `cbor:"4,keyasint"`
	Returned   uint32     `cbor:"5,keyasint,omitempty"`
	Epoch      uint32     `cbor:"6,keyasint,omitempty"`
}

type entryRecord struct {
	Sequence uint64     `cbor:"1,keyasint"`
	Subject  id.Subject `cbor:"2,keyasint"`
	Event    id.Event   `cbor:"3,keyasint"`
	Time     int64      `cbor:"4,keyasint"`
	Deleted  bool       `cbor:"5,keyasint,omitempty"`
	Tags     []uint32   `cbor:"6,keyasint,omitempty"`
	Sealed   []byte     `cbor:"7,keyasint,omitempty"`
	// First is the sequence of the registration, or 0 if that is Sequence.
	First    uint64 `cbor:"8,keyasint,omitempty"`
	Revision uint32 `cbor:"9,keyasint,omitempty"`
	Note     []byte `cbor:"10,keyasint,omitempty"`
	Expires  int64  `cbor:"12,keyasint,omitempty"`
}

// fenceRecord precedes the entries behind its fence. Fences follow all slices.
type fenceRecord struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Sequence   uint64     `cbor:"3,keyasint"`
	Entries    uint64     `cbor:"4,keyasint"`
}

// pendingRecord is a pending event. Pending events follow all slices and fences.
type pendingRecord struct {
	Sequence uint64       `cbor:"1,keyasint"`
	Gallery  id.Gallery   `cbor:"2,keyasint"`
	Subject  id.Subject   `cbor:"3,keyasint"`
	Event    id.Event     `cbor:"4,keyasint"`
	Time     int64        `cbor:"5,keyasint"`
	Tags     []uint32     `cbor:"6,keyasint,omitempty"`
	Sealed   []byte       `cbor:"7,keyasint,omitempty"`
	Op       id.Operation `cbor:"8,keyasint"`
	Request  [16]byte     `cbor:"9,keyasint"`
	Further  bool         `cbor:"10,keyasint,omitempty"`
	Number   uint64       `cbor:"11,keyasint"`
	Note     []byte       `cbor:"12,keyasint,omitempty"`
	Expires  int64        `cbor:"13,keyasint,omitempty"`
}

// View is a shard's state at one moment, for a snapshot. It shares memory with the shard and does
// not see later writes. It holds no decrypted templates.
type View struct {
	shard *Shard
	state *state // to notice a replaced state
	// set has the segments at Freeze. dead has the sequences of its entries that had died by then.
	// deadEnd is the number of all deaths that the shard had recorded by then.
	set     *segment.Set
	dead    []uint64
	deadEnd int
	// settled is the set with all entries, after Settle. fresh has the entries that set lacks.
	settled *segment.Set
	fresh   []fresh
	built   segment.Built
	// faces has the faces in memory at Freeze. unpin releases the entries.
	faces *btree.Map[uint64, []byte]
	unpin []func()

	sequence uint64
	slices   []sliceView
	fences   []fence
	pending  *btree.Map[uint64, *pendingEvent]
}

type sliceView struct {
	head    sliceRecord
	entries *record.Order
	times   *timetable
}

// Freeze captures the state. Its cost grows with slices and fences, and little with events: 8 bytes
// are copied for some hundred of them. The caller releases the view.
func (s *Shard) Freeze() *View {
	s.mu.Lock() // copying a tree changes the original, too
	defer s.mu.Unlock()
	v := &View{
		shard: s, state: s.state,
		sequence: s.state.sequence,
		slices:   make([]sliceView, 0, len(s.state.slices)),
		fences:   make([]fence, 0, len(s.state.fences.of)),
		pending:  s.state.pending.Copy(),
		faces:    s.state.faces.copied(),
	}
	if s.sealed.store != nil {
		t := s.state.tombstones
		t.through = s.state.sequence
		v.dead, v.deadEnd = slices.Clip(t.dead), t.settled+len(t.dead)
		v.set = s.sealed.set.Retain() // only changed with mu held
	}
	for _, sl := range s.state.slices {
		head := sliceRecord{sl.gallery, sl.generation, sl.granted, uint64(sl.entries.Len()), sl.returned, sl.epoch}
		v.slices = append(v.slices, sliceView{head, v.keep(sl.entries), sl.times.copied()})
	}
	slices.SortFunc(v.slices, func(a, b sliceView) int { return bytes.Compare(a.head.Gallery.UUID[:], b.head.Gallery.UUID[:]) })
	s.state.fences.order.Scan(func(_ uint64, f *fence) bool {
		v.fences = append(v.fences, fence{f.gallery, f.generation, f.sequence, v.keep(f.remains)})
		return true
	})
	return v
}

// keep returns a copy of entries, which stay readable until Release.
func (v *View) keep(entries *record.Order) *record.Order {
	if entries != nil {
		v.unpin = append(v.unpin, entries.Table().Pin())
	}
	return entries.Copy()
}

// Write adds the records of v to w, in an order that depends on the state only. After Settle, the
// records refer to its set. It returns the error of an unreadable sealed face.
func (v *View) Write(w *codec.Writer) error {
	stored := v.settled != nil
	if stored {
		w.Record(headStored, storedRecord{
			v.sequence, uint64(len(v.slices)), uint64(len(v.fences)), uint64(v.pending.Len()), uint64(len(v.settled.Parts())),
		})
	} else {
		w.Record(headShard, shardRecord{v.sequence, uint64(len(v.slices)), uint64(len(v.fences)), uint64(v.pending.Len())})
	}
	for _, sl := range v.slices {
		w.Record(headSlice, sl.head)
		if err := v.writeEntries(w, sl.entries, sl.times); err != nil {
			return err
		}
	}
	for _, f := range v.fences {
		w.Record(headFence, fenceRecord{f.gallery, f.generation, f.sequence, uint64(f.remains.Len())})
		if err := v.writeEntries(w, f.remains, nil); err != nil {
			return err
		}
	}
	for _, p := range v.settled.Parts() {
		w.Record(headSegment, segmentRecord{p.File.Ref().Hash, appendSequences(nil, p.Dead)})
	}
	v.pending.Scan(func(_ uint64, c *pendingEvent) bool {
		e := c.event
		w.Record(headPending, pendingRecord{
			Sequence: c.sequence, Gallery: e.Gallery, Subject: e.Subject, Event: e.Event, Time: e.Time,
			Tags: e.Tags, Sealed: e.Sealed, Op: e.Op, Request: e.Request, Further: c.want == knownSubject, Number: c.number,
			Note:    e.Note,
			Expires: e.Expires,
		})
		return true
	})
	return nil
}

// writeEntries adds entries, unless segments have them.
func (v *View) writeEntries(w *codec.Writer, entries *record.Order, times *timetable) error {
	if v.settled != nil {
		return nil
	}
	for _, e := range entries.All(0) {
		sequence := e.Sequence()
		r := entryRecord{
			Sequence: sequence, Subject: e.Subject, Event: e.Event,
			Time: e.Time(), Deleted: e.Deleted, Tags: entries.Table().Tags(&e.Owner), Revision: e.Revision,
			Expires: times.at(sequence),
		}
		if first := e.First(); first != sequence {
			r.First = first
		}
		sealed, err := v.sealed(e)
		if err != nil {
			return err
		}
		r.Sealed, r.Note = split(e, sealed)
		w.Record(headEntry, r)
	}
	return nil
}
