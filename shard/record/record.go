package record

import (
	"facet/internal/id"
	"facet/shard/kernel"
)

// Row is the number of a record in its table, from 1 on.
type Row = uint32

// Record is an active or deleted event. Only Next and Place change.
type Record struct {
	// Owner has the ids and tags.
	kernel.Owner
	// Next is the next active event of the subject, or 0. The caller's lock guards it.
	Next Row
	// Place is for the caller, which guards it.
	Place int32
	// Revision counts the replacements of the event.
	Revision uint32
	sequence uint48
	first    uint48
	time     uint48
	// SealedLen is the length of the sealed face, and NoteLen that of the note.
	SealedLen, NoteLen uint16
	Deleted            bool
}

// uint48 is a number of 48 bits, the lowest 16 first.
type uint48 [3]uint16

const (
	// SequenceMax is the largest sequence of a record.
	SequenceMax = 1<<48 - 1
	// TimeMax is the largest time of a record, in milliseconds since 1970: in the year 6429. Records
	// of earlier or later times than −TimeMax−1 and TimeMax have these.
	TimeMax = 1<<47 - 1
)

func pack(x uint64) uint48 { return uint48{uint16(x), uint16(x >> 16), uint16(x >> 32)} }

func (u uint48) value() uint64 { return uint64(u[0]) | uint64(u[1])<<16 | uint64(u[2])<<32 }

// Sequence returns the number of the record in the log's order.
func (r *Record) Sequence() uint64 { return r.sequence.value() }

// First returns the sequence of the event's registration, whatever was replaced since.
func (r *Record) First() uint64 { return r.first.value() }

// Time returns when the event last changed, in milliseconds since 1970.
func (r *Record) Time() int64 { return int64(r.time.value()<<16) >> 16 }

// Fields are the fields of a record to be added.
type Fields struct {
	Subject id.Subject
	Event   id.Event
	// Tags are the identities of the event's tags. The table keeps the slice.
	Tags []uint32
	// Sequence and First are at most SequenceMax.
	Sequence, First uint64
	// Time is in milliseconds since 1970.
	Time               int64
	Revision           uint32
	SealedLen, NoteLen uint16
	Deleted            bool
}
