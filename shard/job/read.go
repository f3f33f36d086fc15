package job

import (
	"bytes"
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

// Work returns the names of the batches that are open and unfinished, in order of their ids.
func (k *Book) Work() []Name {
	k.mu.RLock()
	defer k.mu.RUnlock()
	list := make([]Name, 0, len(k.state.working))
	for _, b := range k.state.working {
		list = append(list, b.name)
	}
	slices.SortFunc(list, func(a, b Name) int { return bytes.Compare(a.Batch.UUID[:], b.Batch.UUID[:]) })
	return list
}

// Left returns the number of unfinished items of open batches.
func (k *Book) Left() (items int) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, b := range k.state.working {
		items += int(b.total - b.done)
	}
	return items
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
