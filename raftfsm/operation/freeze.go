package operation

import (
	"errors"
	"iter"

	"github.com/tidwall/btree"

	"facet/internal/codec"
	"facet/shard/segment"
)

// The records of a memory in a snapshot. This package has the codes 16 to 31.
var (
	headClock   = codec.Head{Code: 16, Version: 1}
	headOutcome = codec.Head{Code: 17, Version: 1}
	// headStored replaces headClock in a snapshot whose outcomes lie in files. The
	// snapshot then has records of files instead of outcomes, plain ones first.
	headStored = codec.Head{Code: 18, Version: 1}
	headFile   = codec.Head{Code: 19, Version: 1}
)

// ErrSnapshot is returned when the records of a snapshot contradict each other.
var ErrSnapshot = errors.New("operation: the snapshot is not consistent")

type clockRecord struct {
	Clock int64  `cbor:"1,keyasint"`
	Plain uint64 `cbor:"2,keyasint"`
	Keyed uint64 `cbor:"3,keyasint"`
}

// storedRecord is the clockRecord of a memory whose outcomes lie in files.
type storedRecord struct {
	Clock int64       `cbor:"1,keyasint"`
	Plain storedQueue `cbor:"2,keyasint"`
	Keyed storedQueue `cbor:"3,keyasint"`
}

// storedQueue counts the outcomes and files of a queue. First is the number of the oldest
// outcome. The first file may hold older ones, which are forgotten.
type storedQueue struct {
	Outcomes uint64 `cbor:"1,keyasint,omitempty"`
	First    uint64 `cbor:"2,keyasint,omitempty"`
	Files    uint64 `cbor:"3,keyasint,omitempty"`
}

type fileRecord struct {
	Hash segment.Hash `cbor:"1,keyasint"`
}

// View is the state of a memory at one moment. The caller releases it.
type View struct {
	memory       *Memory // only compared, by Adopt
	clock        int64
	plain, keyed queueView
	settled      bool
}

// queueView is the state of a queue at one moment. It implements segment.Living.
type queueView struct {
	outcomes *btree.Map[uint64, *Outcome]
	last     uint64
	old      []segment.Batch
	files    *segment.Batches // set by Settle
}

// Freeze captures the state in constant time.
func (m *Memory) Freeze() *View {
	return &View{memory: m, clock: m.clock, plain: m.plain.freeze(), keyed: m.keyed.freeze()}
}

func (q *queue) freeze() queueView { return queueView{outcomes: q.Copy(), last: q.last, old: q.files} }

// first returns the number of the oldest outcome. For an empty queue it returns the number
// after the last.
func (q *queueView) first() uint64 {
	if first, _, ok := q.outcomes.Min(); ok {
		return first
	}
	return q.last + 1
}

// Last returns the number of the newest outcome.
func (q *queueView) Last() uint64 { return q.last }

// Count returns how many of the outcomes with these numbers are remembered.
func (q *queueView) Count(first, last uint64) uint64 {
	first, last = max(first, q.first()), min(last, q.last)
	if first > last {
		return 0
	}
	return last - first + 1
}

// Records returns the outcomes with these numbers.
func (q *queueView) Records(first, last uint64) iter.Seq[segment.Record] {
	return func(yield func(segment.Record) bool) {
		q.outcomes.Ascend(first, func(number uint64, o *Outcome) bool {
			return number <= last && yield(segment.Record{Sequence: number, Clear: codec.Encode(headOutcome, o)})
		})
	}
}

// Settle writes the outcomes that are in no file yet. v owns the files, and Write refers to
// them. A file goes when all its outcomes are forgotten. With segment.Erase, forgotten
// outcomes leave the files at once.
func (v *View) Settle(store *segment.Store, clean segment.Clean) (err error) {
	if clean != segment.Erase {
		clean = segment.Leave // the oldest outcomes are forgotten first
	}
	for _, q := range []*queueView{&v.plain, &v.keyed} {
		if q.files, err = store.Rebatch(q.old, q, clean); err != nil {
			return err
		}
	}
	v.settled = true
	return nil
}

// Files returns the files that Settle has found or written.
func (v *View) Files() []*segment.File {
	return append(append([]*segment.File(nil), v.plain.files.Files()...), v.keyed.files.Files()...)
}

// Adopt records the files of v, when v has become a snapshot. It does nothing if v is the
// view of another memory.
func (m *Memory) Adopt(v *View) {
	if v.memory == m {
		m.plain.files, m.keyed.files = v.plain.files.List(), v.keyed.files.List()
	}
}

// Release releases the files.
func (v *View) Release() {
	v.plain.files.Release()
	v.keyed.files.Release()
}

// Write writes the records of v to w. After Settle they refer to files.
func (v *View) Write(w *codec.Writer) {
	if v.settled {
		w.Record(headStored, storedRecord{v.clock, v.plain.stored(), v.keyed.stored()})
		for _, f := range v.Files() {
			w.Record(headFile, fileRecord{f.Ref().Hash})
		}
		return
	}
	w.Record(headClock, clockRecord{v.clock, uint64(v.plain.outcomes.Len()), uint64(v.keyed.outcomes.Len())})
	for _, q := range []*queueView{&v.plain, &v.keyed} {
		q.outcomes.Scan(func(_ uint64, o *Outcome) bool {
			w.Record(headOutcome, o)
			return true
		})
	}
}

func (q *queueView) stored() storedQueue {
	n := uint64(q.outcomes.Len())
	if n == 0 {
		return storedQueue{}
	}
	return storedQueue{n, q.first(), uint64(len(q.files.List()))}
}
