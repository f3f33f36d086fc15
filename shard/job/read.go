package job

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"facet/internal/id"
)

// Page returns at most n records of an open batch from index from on, and its progress. A batch
// that is not open is ErrUnknown.
func (k *Book) Page(name Name, from uint32, n int) ([]Record, Progress, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	b, err := k.state.find(name)
	if err != nil {
		return nil, Progress{}, err
	}
	if !b.open {
		return nil, Progress{}, ErrUnknown
	}
	page := make([]Record, 0, min(n, int(b.total)))
	b.records.Ascend(from, func(_ uint32, r *record) bool {
		if len(page) == n {
			return false
		}
		page = append(page, r.Record)
		return true
	})
	return page, b.progress(), nil
}

// Mark is how far a caller of Changes has read a batch. The zero Mark is before its first record.
type Mark struct {
	of       *batch
	sequence uint64
}

// Changes returns the records of an open batch that were set after a mark, and the mark for the next call. all
// reports that these are all records of the batch, because it is not the batch of the mark: the mark is zero, or
// the batch was dropped or restored. A batch that is not open is ErrUnknown.
func (k *Book) Changes(name Name, after Mark) (list []Record, next Mark, all bool, err error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	b, err := k.state.find(name)
	if err == nil && !b.open {
		err = ErrUnknown
	}
	if err != nil {
		return nil, Mark{}, false, err
	}
	next, all = Mark{b, k.state.sequence}, b != after.of
	if !all && b.last <= after.sequence {
		return nil, next, false, nil
	}
	b.records.Scan(func(_ uint32, r *record) bool {
		if all || r.sequence > after.sequence {
			list = append(list, r.Record)
		}
		return true
	})
	return list, next, all, nil
}

// Find returns the progress of a batch, open or not. The error wraps ErrUnknown.
func (k *Book) Find(name Name) (Progress, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	b, err := k.state.find(name)
	if err != nil {
		return Progress{}, err
	}
	return b.progress(), nil
}

// Summary is how far an open batch has come.
type Summary struct {
	Batch id.Batch `cbor:"1,keyasint"`
	Total uint32   `cbor:"2,keyasint"`
	Done  uint32   `cbor:"3,keyasint"`
	// Touched is the time of the last change, in milliseconds since 1970.
	Touched int64 `cbor:"4,keyasint"`
}

// Newest orders summaries by their last change, the newest first.
func Newest(a, b Summary) int {
	return cmp.Or(cmp.Compare(b.Touched, a.Touched), bytes.Compare(a.Batch.UUID[:], b.Batch.UUID[:]))
}

// List returns at most n open batches of a gallery of one kind, in the order of Newest: those of a holder, or
// all if it is zero.
func (k *Book) List(g id.Gallery, generation uint32, kind Kind, holder id.UUID, n int) []Summary {
	k.mu.RLock()
	var list []Summary
	for _, b := range k.state.batches {
		if b.open && b.kind == kind && b.name.Gallery == g && b.name.Generation == generation && (holder.IsZero() || b.holder == holder) {
			list = append(list, Summary{b.name.Batch, b.total, b.done, b.touched})
		}
	}
	k.mu.RUnlock()
	slices.SortFunc(list, Newest)
	return list[:min(n, len(list))]
}

// Work returns the names of the batches of one kind that are open and unfinished, in order of their ids.
func (k *Book) Work(kind Kind) []Name {
	k.mu.RLock()
	defer k.mu.RUnlock()
	list := make([]Name, 0, len(k.state.working))
	for _, b := range k.state.working {
		if b.kind == kind {
			list = append(list, b.name)
		}
	}
	slices.SortFunc(list, func(a, b Name) int { return bytes.Compare(a.Batch.UUID[:], b.Batch.UUID[:]) })
	return list
}

// Left returns the number of unfinished items of open batches of one kind.
func (k *Book) Left(kind Kind) (items int) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, b := range k.state.working {
		if b.kind == kind {
			items += int(b.total - b.done)
		}
	}
	return items
}

// Paired is how many pairs the finished items of a batch have together.
func (k *Book) Paired(name Name) (pairs int) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	b, err := k.state.find(name)
	if err != nil {
		return 0
	}
	b.records.Scan(func(_ uint32, r *record) bool {
		if r.Result != nil {
			pairs += int(r.Result.Pairs)
		}
		return true
	})
	return pairs
}

// Batches returns the names of the open batches of one kind, in order of their ids.
func (k *Book) Batches(kind Kind) (list []Name) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, b := range k.state.batches {
		if b.open && b.kind == kind {
			list = append(list, b.name)
		}
	}
	slices.SortFunc(list, func(a, b Name) int { return bytes.Compare(a.Batch.UUID[:], b.Batch.UUID[:]) })
	return list
}

// Unfinished returns the first n unfinished records of a batch for which skip is false, and the
// application they are registered for.
func (k *Book) Unfinished(name Name, n int, skip func(index uint32) bool) ([]Record, id.Application, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	b, err := k.state.find(name)
	if err != nil {
		return nil, id.Application{}, err
	}
	var list []Record
	if !b.open {
		return nil, b.application, nil
	}
	b.records.Ascend(b.low, func(index uint32, r *record) bool {
		if len(list) == n {
			return false
		}
		if r.Result == nil && !skip(index) {
			list = append(list, r.Record)
		}
		return true
	})
	return list, b.application, nil
}

// Owned returns how many batches, and items of batches, each tenant has.
func (k *Book) Owned() map[id.Tenant]Owned {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return maps.Clone(k.state.owned)
}
