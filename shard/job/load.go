package job

import (
	"bytes"
	"fmt"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/shard/segment"
)

// Loader builds a state from the records of a snapshot, beside the state that the book has.
type Loader struct {
	state   *state
	store   *segment.Store // nil if there may be no files
	current *batch
	// missing is how many records of current have not come yet.
	missing uint32
	last    id.Batch
	// stored has the batches whose records are in files, with the numbers that Check expects.
	stored map[*batch]storedRecord
}

// NewLoader returns an empty loader.
func NewLoader() *Loader { return &Loader{state: newState(), stored: make(map[*batch]storedRecord)} }

// Keep sets the store of the files. It is called before any other method; without a store there may
// be no files.
func (l *Loader) Keep(store *segment.Store) { l.store = store }

// Load reads the next record; mine is false if the record belongs to another package. The error
// wraps codec.ErrMalformed, segment.ErrCorrupt, segment.ErrMissing or ErrSnapshot, or is the
// disk's.
func (l *Loader) Load(m codec.Message) (mine bool, err error) {
	switch m.Code {
	case headBatch.Code:
		return true, l.whole(m)
	case headRecord.Code:
		return true, l.record(m)
	case headStored.Code:
		return true, l.storedBatch(m)
	case headFile.Code:
		return true, l.file(m)
	default:
		return false, nil
	}
}

func (l *Loader) whole(m codec.Message) error {
	var r batchRecord
	if err := m.Decode(headBatch, &r); err != nil {
		return err
	}
	if len(l.stored) > 0 {
		return fmt.Errorf("%w: batch %s is out of place", ErrSnapshot, r.Batch)
	}
	if err := l.batch(r); err != nil {
		return err
	}
	l.missing = r.Records
	return nil
}

func (l *Loader) batch(r batchRecord) error {
	switch {
	case l.missing > 0 || bytes.Compare(r.Batch.UUID[:], l.last.UUID[:]) <= 0:
		return fmt.Errorf("%w: batch %s is out of place", ErrSnapshot, r.Batch)
	case r.Total == 0 || r.Total > ItemsMax || r.Records > r.Total || r.Open && r.Records != r.Total:
		return fmt.Errorf("%w: batch %s has %d of %d records", ErrSnapshot, r.Batch, r.Records, r.Total)
	case r.Kind > Cases:
		return fmt.Errorf("%w: batch %s is of kind %d", ErrSnapshot, r.Batch, r.Kind)
	case l.state.items+int(r.Total) > itemsPerShardMax || len(l.state.batches) >= batchesPerShardMax:
		return fmt.Errorf("%w: too many batches", ErrSnapshot)
	}
	l.last = r.Batch
	l.current = newBatch(Name{Gallery: r.Gallery, Generation: r.Generation, Batch: r.Batch}, r.Total, l.state.sequence)
	l.current.tenant, l.current.application, l.current.request, l.current.open, l.current.touched = r.Tenant, r.Application, r.Request, r.Open, r.Touched
	l.current.kind, l.current.holder = r.Kind, r.Holder
	l.state.add(l.current)
	return nil
}

func (l *Loader) record(m codec.Message) error {
	var r Record
	if err := m.Decode(headRecord, &r); err != nil {
		return err
	}
	if l.missing == 0 || r.Index != uint32(l.current.records.Len()) || !l.current.may(r) {
		return fmt.Errorf("%w: record %d is out of place", ErrSnapshot, r.Index)
	}
	b := l.current
	l.missing--
	l.state.set(b, r)
	if r.Result != nil {
		b.done++
		if b.low == r.Index {
			b.low++
		}
	}
	return nil
}

// may reports whether a batch may have a record.
func (b *batch) may(r Record) bool {
	return r.Index < b.total && (r.Result == nil || b.open && r.Result.Index == r.Index)
}

func (l *Loader) storedBatch(m codec.Message) error {
	var r storedRecord
	if err := m.Decode(headStored, &r); err != nil {
		return err
	}
	if len(l.state.files) > 0 || len(l.stored) != len(l.state.batches) {
		return fmt.Errorf("%w: batch %s is out of place", ErrSnapshot, r.Batch.Batch)
	}
	if err := l.batch(r.Batch); err != nil {
		return err
	}
	l.current.since = r.Since
	l.state.sequence = max(l.state.sequence, r.Since)
	l.stored[l.current] = r
	return nil
}

// file reads the records of a file. A later record of the same batch and index replaces an earlier
// one. Records whose batch is gone are ignored.
func (l *Loader) file(m codec.Message) error {
	var r fileRecord
	if err := m.Decode(headFile, &r); err != nil {
		return err
	}
	if len(l.stored) == 0 || len(l.stored) != len(l.state.batches) || l.store == nil {
		return fmt.Errorf("%w: file %s of items is out of place", ErrSnapshot, r.Hash)
	}
	f, err := l.store.File(r.Hash)
	if err != nil {
		return err
	}
	defer f.Release()
	files := l.state.files
	if first, _ := f.Range(); len(files) > 0 && first <= files[len(files)-1].Last {
		return fmt.Errorf("%w: file %s of items comes too late", ErrSnapshot, r.Hash)
	}
	if err := f.Clear(l.row); err != nil {
		return fmt.Errorf("items of file %s: %w", r.Hash, err)
	}
	l.state.files = append(files, f.Batch())
	l.state.sequence = max(l.state.sequence, f.Batch().Last)
	return nil
}

// row reads one record of a file.
func (l *Loader) row(sequence uint64, row []byte, _ int) error {
	var name id.Batch
	if len(row) < len(name.UUID) {
		return fmt.Errorf("%w: an item of %d bytes", ErrSnapshot, len(row))
	}
	b := l.state.batches[id.Batch{UUID: id.UUID(row[:len(name.UUID)])}]
	if b == nil || sequence <= b.since {
		return nil
	}
	var r Record
	if err := codec.Decode(row[len(name.UUID):], headRecord, &r); err != nil {
		return err
	}
	if !b.may(r) {
		return fmt.Errorf("%w: record %d of batch %s", ErrSnapshot, r.Index, b.name.Batch)
	}
	b.records.Set(r.Index, &record{r, sequence})
	return nil
}

// Check returns an error that wraps ErrSnapshot unless all records have come.
func (l *Loader) Check() error {
	if l.missing > 0 {
		return fmt.Errorf("%w: records are missing", ErrSnapshot)
	}
	for b, want := range l.stored {
		b.count()
		last, _, some := b.records.Max()
		if n := uint32(b.records.Len()); n != want.Batch.Records || some && last != n-1 || b.done != want.Done {
			return fmt.Errorf("%w: batch %s has %d records, %d done, of %d and %d", ErrSnapshot, b.name.Batch, n, b.done, want.Batch.Records, want.Done)
		}
	}
	return nil
}

// count counts the results of a batch that was read from files.
func (b *batch) count() {
	b.records.Scan(func(index uint32, r *record) bool {
		if r.Result != nil {
			b.done++
			if b.low == index {
				b.low++
			}
		}
		return true
	})
}

// Replace replaces the book's state by that of a checked loader. The loader is used up.
func (k *Book) Replace(l *Loader) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state, l.state = l.state, nil
	for _, b := range k.state.batches { // any order will do
		k.state.settle(b)
	}
}
