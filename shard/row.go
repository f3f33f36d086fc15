package shard

import (
	"encoding/binary"
	"errors"
	"fmt"

	"facet/internal/id"
	"facet/shard/record"
)

// The clear part of an entry in a segment (shard/segment/format.md):
//
//	version 1 | flags 1 | gallery 16 | subject 16 | event 16 | generation | time |
//	sequence less that of the registration | revision | number of tags | tags |
//	length of the note, with flag 2 | time of expiry, with flag 8 |
//	head of the sealed face: its length 1, its bytes
//
// Numbers without a size are varints, times are zigzag. The head is the part of the face that is not
// encrypted. It names the model, which a start needs to know. The note is the end of the sealed part
// (note.go).
const (
	rowVersion = 1
	rowDeleted = 1 // flag
	rowNoted   = 2 // flag
	rowExpires = 8 // flag
	rowIDs     = 2 + 3*16
)

// errRow is returned for a row of a form that this version does not read.
var errRow = errors.New("shard: unknown form of an entry in a segment")

// appendRow encodes an entry of a slice for a segment. sealed is its sealed part.
func appendRow(b []byte, e fresh, sealed []byte) []byte {
	flags := byte(0)
	if e.Deleted {
		flags = rowDeleted
	}
	if e.NoteLen > 0 {
		flags |= rowNoted
	}
	if e.expires != 0 {
		flags |= rowExpires
	}
	b = append(b, rowVersion, flags)
	b = append(b, e.gallery.UUID[:]...)
	b = append(b, e.Subject.UUID[:]...)
	b = append(b, e.Event.UUID[:]...)
	b = binary.AppendUvarint(b, uint64(e.generation))
	b = binary.AppendVarint(b, e.Time())
	b = binary.AppendUvarint(b, e.Sequence()-e.First())
	b = binary.AppendUvarint(b, uint64(e.Revision))
	b = binary.AppendUvarint(b, uint64(len(e.tags)))
	for _, t := range e.tags {
		b = binary.AppendUvarint(b, uint64(t))
	}
	if e.NoteLen > 0 {
		b = binary.AppendUvarint(b, uint64(e.NoteLen))
	}
	if e.expires != 0 {
		b = binary.AppendVarint(b, e.expires)
	}
	head := sealed[:min(len(sealed), 1+modelBytes)]
	return append(append(b, byte(len(head))), head...)
}

// origin is the slice, by gallery and generation, that an entry belongs to or belonged to.
type origin struct {
	gallery    id.Gallery
	generation uint32
}

// decodeRow decodes a row that appendRow made. head is a part of b; nothing else points into b. The
// error wraps errRow.
func decodeRow(b []byte, sequence uint64) (from origin, e draft, head []byte, err error) {
	if len(b) < rowIDs || b[0] != rowVersion || b[1] > rowDeleted && b[1]&^(rowNoted|rowExpires) != 0 {
		return origin{}, draft{}, nil, fmt.Errorf("%w: entry %d", errRow, sequence)
	}
	e.Fields = record.Fields{
		Subject: id.Subject{UUID: id.UUID(b[18:34])}, Event: id.Event{UUID: id.UUID(b[34:50])},
		Sequence: sequence, Deleted: b[1]&rowDeleted != 0,
	}
	from.gallery = id.Gallery{UUID: id.UUID(b[2:18])}
	in := varints{rest: b[rowIDs:]}
	from.generation = uint32(in.next(1<<32 - 1))
	e.Time = in.signed()
	e.First = sequence - in.next(sequence)
	e.Revision = uint32(in.next(1<<32 - 1))
	if n := in.next(uint64(len(in.rest))); n > 0 {
		e.Tags = make([]uint32, n)
	}
	for i := range e.Tags {
		e.Tags[i] = uint32(in.next(1<<32 - 1))
	}
	if b[1]&rowNoted != 0 {
		e.NoteLen = uint16(in.next(uint64(NoteMax)))
		in.bad = in.bad || e.NoteLen == 0
	}
	if b[1]&rowExpires != 0 {
		e.expires = in.signed()
		in.bad = in.bad || e.expires == 0
	}
	if in.bad || len(in.rest) < 1 || int(in.rest[0]) != len(in.rest)-1 {
		return origin{}, draft{}, nil, fmt.Errorf("%w: entry %d", errRow, sequence)
	}
	return from, e, in.rest[1:], nil
}

// varints reads varints one after the other; bad reports that one was invalid.
type varints struct {
	rest []byte
	bad  bool
}

func (v *varints) next(most uint64) uint64 {
	x, n := binary.Uvarint(v.rest)
	return v.took(x, n, x <= most)
}

func (v *varints) signed() int64 {
	x, n := binary.Varint(v.rest)
	return int64(v.took(uint64(x), n, true))
}

func (v *varints) took(x uint64, n int, ok bool) uint64 {
	if n <= 0 || !ok || v.bad {
		v.bad = true
		return 0
	}
	v.rest = v.rest[n:]
	return x
}

func appendSequences(b []byte, list []uint64) []byte {
	before := uint64(0)
	for _, s := range list {
		b = binary.AppendUvarint(b, s-before)
		before = s
	}
	return b
}

func decodeSequences(b []byte) (list []uint64, ok bool) {
	in, before := varints{rest: b}, uint64(0)
	for len(in.rest) > 0 {
		before += in.next(1<<64 - 1 - before)
		list = append(list, before)
		if in.bad {
			return nil, false
		}
	}
	return list, true
}
