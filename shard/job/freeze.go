package job

import (
	"bytes"
	"cmp"
	"errors"
	"iter"
	"slices"

	"github.com/tidwall/btree"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/shard/segment"
)

// The records of a book in a snapshot; codes 32 to 47 belong to this package. A book without
// batches has none.
var (
	headBatch  = codec.Head{Code: 32, Version: 1}
	headRecord = codec.Head{Code: 33, Version: 1}
	// headStored replaces headBatch where the records of all batches are in files; the files follow
	// the batches.
	headStored = codec.Head{Code: 34, Version: 1}
	headFile   = codec.Head{Code: 35, Version: 1}
)

// ErrSnapshot is returned when records contradict each other.
var ErrSnapshot = errors.New("job: the snapshot is not consistent")

// batchRecord precedes the records of its batch.
type batchRecord struct {
	Batch       id.Batch       `cbor:"1,keyasint"`
	Gallery     id.Gallery     `cbor:"2,keyasint"`
	Generation  uint32         `cbor:"3,keyasint"`
	Application id.Application `cbor:"4,keyasint"`
	Request     [16]byte       `cbor:"5,keyasint"`
	Total       uint32         `cbor:"6,keyasint"`
	Open        bool           `cbor:"7,keyasint,omitempty"`
	Touched     int64          `cbor:"8,keyasint"`
	Records     uint32         `cbor:"9,keyasint"`
	Tenant      id.Tenant      `cbor:"10,keyasint,omitzero"`
	Kind        Kind           `cbor:"11,keyasint,omitempty"`
	Holder      id.UUID        `cbor:"12,keyasint,omitzero"`
}

// storedRecord is a batch whose records are in files. Records up to the sequence Since belong to an
// earlier batch of that name. Done is the number of results.
type storedRecord struct {
	Batch batchRecord `cbor:"1,keyasint"`
	Since uint64      `cbor:"2,keyasint,omitempty"`
	Done  uint32      `cbor:"3,keyasint,omitempty"`
}

type fileRecord struct {
	Hash segment.Hash `cbor:"1,keyasint"`
}

// View is a book's state at one moment, for a snapshot. The caller releases it.
type View struct {
	book    *Book
	state   *state // to notice a replaced state
	batches []batchView

	// sequence is that of the last record, and old are the files, at the freeze.
	sequence uint64
	old      []segment.Batch
	files    *segment.Batches // set by Settle
}

type batchView struct {
	head    batchRecord
	since   uint64
	done    uint32
	records *btree.Map[uint32, *record]
}

// Freeze captures the state. Its cost grows with batches, not with records.
func (k *Book) Freeze() *View {
	k.mu.Lock() // copying a tree changes the original, too
	defer k.mu.Unlock()
	s := k.state
	v := &View{book: k, state: s, sequence: s.sequence, old: s.files, batches: make([]batchView, 0, len(s.batches))}
	for _, b := range s.batches {
		head := batchRecord{
			b.name.Batch, b.name.Gallery, b.name.Generation, b.application, b.request,
			b.total, b.open, b.touched, uint32(b.records.Len()), b.tenant, b.kind, b.holder,
		}
		v.batches = append(v.batches, batchView{head, b.since, b.done, b.records.Copy()})
	}
	slices.SortFunc(v.batches, func(a, b batchView) int { return bytes.Compare(a.head.Batch.UUID[:], b.head.Batch.UUID[:]) })
	return v
}

// living implements segment.Living for the records of a view.
type living struct {
	view *View
	// sequences are those of all records, ascending.
	sequences []uint64
}

func (v *View) living() *living {
	l := &living{view: v}
	for _, b := range v.batches {
		b.records.Scan(func(_ uint32, r *record) bool {
			l.sequences = append(l.sequences, r.sequence)
			return true
		})
	}
	slices.Sort(l.sequences)
	return l
}

// Last returns the last sequence.
func (l *living) Last() uint64 { return l.view.sequence }

// Count returns the number of records from first to last.
func (l *living) Count(first, last uint64) uint64 {
	from, _ := slices.BinarySearch(l.sequences, first)
	to, _ := slices.BinarySearch(l.sequences, last+1)
	return uint64(to - from)
}

// placed is a record and its batch.
type placed struct {
	batch id.Batch
	*record
}

// Records returns the records from first to last. Each is the id of its batch and the record as
// encoded in a snapshot.
func (l *living) Records(first, last uint64) iter.Seq[segment.Record] {
	return func(yield func(segment.Record) bool) {
		var list []placed
		for _, b := range l.view.batches {
			b.records.Scan(func(_ uint32, r *record) bool {
				if r.sequence >= first && r.sequence <= last {
					list = append(list, placed{b.head.Batch, r})
				}
				return true
			})
		}
		slices.SortFunc(list, func(a, b placed) int { return cmp.Compare(a.sequence, b.sequence) })
		for _, r := range list {
			row := append(slices.Clone(r.batch.UUID[:]), codec.Encode(headRecord, r.Record)...)
			if !yield(segment.Record{Sequence: r.sequence, Clear: row}) {
				return
			}
		}
	}
}

// Settle writes the records that no file has yet. v owns the files, and Write refers to them.
func (v *View) Settle(store *segment.Store, clean segment.Clean) (err error) {
	v.files, err = store.Rebatch(v.old, v.living(), clean)
	return err
}

// Files returns the files that Settle found or wrote.
func (v *View) Files() []*segment.File { return v.files.Files() }

// Adopt tells the book its files after v became a snapshot. It does nothing if the book was
// replaced since.
func (v *View) Adopt() {
	v.book.mu.Lock()
	defer v.book.mu.Unlock()
	if v.book.state == v.state {
		v.state.files = v.files.List()
	}
}

// Release releases the files.
func (v *View) Release() { v.files.Release() }

// Write adds the records of v to w, in an order that depends on the state only. After Settle, it
// refers to files instead.
func (v *View) Write(w *codec.Writer) {
	for _, b := range v.batches {
		if v.files != nil {
			w.Record(headStored, storedRecord{b.head, b.since, b.done})
			continue
		}
		w.Record(headBatch, b.head)
		b.records.Scan(func(_ uint32, r *record) bool {
			w.Record(headRecord, r.Record)
			return true
		})
	}
	for _, f := range v.Files() {
		w.Record(headFile, fileRecord{f.Ref().Hash})
	}
}
