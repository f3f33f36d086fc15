package node

import (
	"path/filepath"
	"slices"
	"sync"

	"facet/internal/id"
)

// holdings are the groups of which this data directory has a replica. They are written
// down in identityFile, beside the name that the replicas vote under: a folder that
// vanishes later (removed by hand, a mount that is missing) is noticed then, and its
// replica does not vote anew with nothing behind it. Who loses the file as well is
// another member (identity.Epoch).
type holdings struct {
	path string

	mu  sync.Mutex // guards who; held while the file is written
	who identity
}

func newHoldings(dir string, who identity) *holdings {
	return &holdings{path: filepath.Join(dir, identityFile), who: who}
}

// has tells whether the directory has, or had, a replica of a group.
func (h *holdings) has(number id.Shard) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.who.Groups, number)
}

// add notes a replica, before it is opened for the first time.
func (h *holdings) add(number id.Shard) error {
	return h.change(func(list []id.Shard) []id.Shard {
		if slices.Contains(list, number) {
			return list
		}
		list = append(list, number)
		slices.Sort(list)
		return list
	})
}

// forget notes that this node has nothing to do with a group any more: its members
// are others, and its folder may go.
func (h *holdings) forget(numbers ...id.Shard) error {
	return h.change(func(list []id.Shard) []id.Shard {
		return slices.DeleteFunc(list, func(n id.Shard) bool { return slices.Contains(numbers, n) })
	})
}

func (h *holdings) change(edit func([]id.Shard) []id.Shard) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := h.who
	next.Groups = edit(slices.Clone(h.who.Groups))
	if slices.Equal(next.Groups, h.who.Groups) {
		return nil
	}
	if err := next.write(h.path); err != nil {
		return err
	}
	h.who = next
	return nil
}
