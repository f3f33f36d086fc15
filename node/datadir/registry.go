package datadir

import (
	"path/filepath"
	"slices"
	"sync"

	"facet/internal/id"
)

// Registry are the groups of which this data directory has a replica. They are written
// down in IdentityFile, beside the name that the replicas vote under: a folder that
// vanishes later (removed by hand, a mount that is missing) is noticed then, and its
// replica does not vote anew with nothing behind it. Who loses the file as well is
// another member (Identity.Epoch).
type Registry struct {
	path string

	mu  sync.Mutex // guards who; held while the file is written
	who Identity
}

// NewRegistry returns the registry of a directory that belongs to who.
func NewRegistry(dir string, who Identity) *Registry {
	return &Registry{path: filepath.Join(dir, IdentityFile), who: who}
}

// Has reports whether the directory has, or had, a replica of a group.
func (h *Registry) Has(number id.Shard) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.who.Groups, number)
}

// Add notes a replica, before it is opened for the first time.
func (h *Registry) Add(number id.Shard) error {
	return h.change(func(list []id.Shard) []id.Shard {
		if slices.Contains(list, number) {
			return list
		}
		list = append(list, number)
		slices.Sort(list)
		return list
	})
}

// Forget notes that this node has nothing to do with a group any more: its members
// are others, and its folder may go.
func (h *Registry) Forget(numbers ...id.Shard) error {
	return h.change(func(list []id.Shard) []id.Shard {
		return slices.DeleteFunc(list, func(n id.Shard) bool { return slices.Contains(numbers, n) })
	})
}

func (h *Registry) change(edit func([]id.Shard) []id.Shard) error {
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
