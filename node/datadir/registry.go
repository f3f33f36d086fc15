package datadir

import (
	"path/filepath"
	"slices"
	"sync"

	"facet/internal/id"
)

// Registry records in IdentityFile of which groups this data directory has a replica. So a
// node notices when a replica's folder has vanished (removed by hand, a missing mount), and
// the replica does not vote again with an empty log. A directory that lost the file, too,
// belongs to another member (Identity.Epoch).
type Registry struct {
	path string

	mu  sync.Mutex // guards who, and is held while the file is written
	who Identity
}

// NewRegistry returns the registry of the directory dir with the identity who.
func NewRegistry(dir string, who Identity) *Registry {
	return &Registry{path: filepath.Join(dir, IdentityFile), who: who}
}

// Has reports whether the directory has, or had, a replica of a group.
func (h *Registry) Has(number id.Shard) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.who.Groups, number)
}

// Add records a replica. Call it before the replica is opened for the first time.
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

// Forget removes the records of replicas that this node no longer holds.
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
