package job

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/tidwall/btree"

	"facet/internal/codec"
	"facet/internal/id"
)

// The records of a book in a snapshot; 32 to 47 belong to this package. A book
// without batches has none.
var (
	headBatch  = codec.Head{Code: 32, Version: 1}
	headRecord = codec.Head{Code: 33, Version: 1}
)

// ErrSnapshot says that records contradict each other.
var ErrSnapshot = errors.New("job: the snapshot is not consistent")

// batchRecord stands before the records of its batch.
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
}

// View is a book's state at one moment, for a snapshot.
type View struct{ batches []batchView }

type batchView struct {
	head    batchRecord
	records *btree.Map[uint32, *Record]
}

// Freeze captures the state; it costs time by the batch.
func (k *Book) Freeze() *View {
	k.mu.Lock() // copying a tree changes the original too
	defer k.mu.Unlock()
	v := &View{batches: make([]batchView, 0, len(k.state.batches))}
	for _, b := range k.state.batches {
		head := batchRecord{
			b.name.Batch, b.name.Gallery, b.name.Generation, b.application, b.request,
			b.total, b.open, b.touched, uint32(b.records.Len()),
		}
		v.batches = append(v.batches, batchView{head, b.records.Copy()})
	}
	slices.SortFunc(v.batches, func(a, b batchView) int { return bytes.Compare(a.head.Batch.UUID[:], b.head.Batch.UUID[:]) })
	return v
}

// Write adds the records of v to w, in an order that depends on the state only.
func (v *View) Write(w *codec.Writer) {
	for _, b := range v.batches {
		w.Record(headBatch, b.head)
		b.records.Scan(func(_ uint32, r *Record) bool {
			w.Record(headRecord, r)
			return true
		})
	}
}

// Loader builds a state from the records of a snapshot, beside the book's own.
type Loader struct {
	state   *state
	current *batch
	// missing counts the records of current that have to come.
	missing uint32
	last    id.Batch
}

// NewLoader makes a loader without records.
func NewLoader() *Loader { return &Loader{state: newState()} }

// Load takes the next record; mine is false if it belongs to another package. The
// error wraps codec.ErrMalformed or ErrSnapshot.
func (l *Loader) Load(m codec.Message) (mine bool, err error) {
	switch m.Code {
	case headBatch.Code:
		return true, l.batch(m)
	case headRecord.Code:
		return true, l.record(m)
	default:
		return false, nil
	}
}

func (l *Loader) batch(m codec.Message) error {
	var r batchRecord
	if err := m.Decode(headBatch, &r); err != nil {
		return err
	}
	switch {
	case l.missing > 0 || bytes.Compare(r.Batch.UUID[:], l.last.UUID[:]) <= 0:
		return fmt.Errorf("%w: batch %s is out of place", ErrSnapshot, r.Batch)
	case r.Total == 0 || r.Total > ItemsMax || r.Records > r.Total || r.Open && r.Records != r.Total:
		return fmt.Errorf("%w: batch %s has %d of %d records", ErrSnapshot, r.Batch, r.Records, r.Total)
	case l.state.items+int(r.Total) > itemsPerShardMax || len(l.state.batches) >= batchesPerShardMax:
		return fmt.Errorf("%w: too many batches", ErrSnapshot)
	}
	l.last, l.missing = r.Batch, r.Records
	l.current = &batch{
		name:        Name{Gallery: r.Gallery, Generation: r.Generation, Batch: r.Batch},
		application: r.Application, request: r.Request, total: r.Total, open: r.Open, touched: r.Touched,
		records: new(btree.Map[uint32, *Record]),
	}
	l.state.add(l.current)
	return nil
}

func (l *Loader) record(m codec.Message) error {
	var r Record
	if err := m.Decode(headRecord, &r); err != nil {
		return err
	}
	if l.missing == 0 || r.Index != uint32(l.current.records.Len()) || r.Result != nil && (!l.current.open || r.Result.Index != r.Index) {
		return fmt.Errorf("%w: record %d is out of place", ErrSnapshot, r.Index)
	}
	b := l.current
	l.missing--
	b.records.Set(r.Index, &r)
	if r.Result != nil {
		b.done++
		if b.low == r.Index {
			b.low++
		}
	}
	return nil
}

// Check tells whether all records have come; the error wraps ErrSnapshot.
func (l *Loader) Check() error {
	if l.missing > 0 {
		return fmt.Errorf("%w: records are missing", ErrSnapshot)
	}
	return nil
}

// Replace puts a checked loader's state in the place of the book's. The loader is
// used up.
func (k *Book) Replace(l *Loader) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state, l.state = l.state, nil
	for _, b := range k.state.batches { // the order is of no effect
		k.state.settle(b)
	}
}
