package shard

import (
	"bytes"
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
	headFence = codec.Head{Code: 4, Version: 1}
	headClaim = codec.Head{Code: 5, Version: 1}
)

type shardRecord struct {
	Sequence uint64 `cbor:"1,keyasint"`
	Slices   uint64 `cbor:"2,keyasint"`
	Fences   uint64 `cbor:"3,keyasint,omitempty"`
	Claims   uint64 `cbor:"4,keyasint,omitempty"`
}

// sliceRecord stands before the entries of its slice.
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
	// First is the sequence of the registration, 0 where it is Sequence.
	First    uint64 `cbor:"8,keyasint,omitempty"`
	Revision uint32 `cbor:"9,keyasint,omitempty"`
}

// fenceRecord stands before the entries behind its fence, after all slices.
type fenceRecord struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Sequence   uint64     `cbor:"3,keyasint"`
	Entries    uint64     `cbor:"4,keyasint"`
}

// claimRecord is a pending event, after all slices and fences.
type claimRecord struct {
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
}

// View is a shard's state at one moment, for a snapshot. It shares memory with the
// shard and does not see later writes. Templates in clear are no part of it.
type View struct {
	sequence uint64
	slices   []sliceView
	fences   []fence
	claims   *btree.Map[uint64, *claim]
}

type sliceView struct {
	head    sliceRecord
	entries *btree.Map[uint64, *entry]
}

// Freeze captures the state; it costs time by the slice and the fence, not by the
// event.
func (s *Shard) Freeze() *View {
	s.mu.Lock() // copying a tree changes the original too
	defer s.mu.Unlock()
	v := &View{
		sequence: s.state.sequence,
		slices:   make([]sliceView, 0, len(s.state.slices)),
		fences:   make([]fence, 0, len(s.state.fences.of)),
		claims:   s.state.waiting.Copy(),
	}
	for _, sl := range s.state.slices {
		head := sliceRecord{sl.gallery, sl.generation, sl.granted, uint64(sl.entries.Len()), sl.returned, sl.epoch}
		v.slices = append(v.slices, sliceView{head, sl.entries.Copy()})
	}
	slices.SortFunc(v.slices, func(a, b sliceView) int { return bytes.Compare(a.head.Gallery.UUID[:], b.head.Gallery.UUID[:]) })
	s.state.fences.order.Scan(func(_ uint64, f *fence) bool {
		v.fences = append(v.fences, fence{f.gallery, f.generation, f.sequence, f.remains.Copy()})
		return true
	})
	return v
}

// Write adds the records of v to w, in an order that depends on the state only.
func (v *View) Write(w *codec.Writer) {
	w.Record(headShard, shardRecord{v.sequence, uint64(len(v.slices)), uint64(len(v.fences)), uint64(v.claims.Len())})
	for _, sl := range v.slices {
		w.Record(headSlice, sl.head)
		writeEntries(w, sl.entries)
	}
	for _, f := range v.fences {
		w.Record(headFence, fenceRecord{f.gallery, f.generation, f.sequence, uint64(f.remains.Len())})
		writeEntries(w, f.remains)
	}
	v.claims.Scan(func(_ uint64, c *claim) bool {
		e := c.event
		w.Record(headClaim, claimRecord{
			Sequence: c.sequence, Gallery: e.Gallery, Subject: e.Subject, Event: e.Event, Time: e.Time,
			Tags: e.Tags, Sealed: e.Sealed, Op: e.Op, Request: e.Request, Further: c.kin == knownSubject, Number: c.number,
		})
		return true
	})
}

func writeEntries(w *codec.Writer, entries *btree.Map[uint64, *entry]) {
	entries.Scan(func(_ uint64, e *entry) bool {
		r := entryRecord{
			Sequence: e.sequence, Subject: e.subject, Event: e.event,
			Time: e.time, Deleted: e.deleted, Tags: e.tags, Sealed: e.sealed, Revision: e.revision,
		}
		if e.first != e.sequence {
			r.First = e.first
		}
		w.Record(headEntry, r)
		return true
	})
}
