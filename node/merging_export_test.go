package node

import (
	"context"
	"sync"

	"facet/internal/id"
)

// mergers has a function for each open node that stops its merges.
var mergers sync.Map

func init() {
	for i, p := range parts {
		if p.name != "merges" {
			continue
		}
		parts[i].start = func(ctx context.Context, n *Node) (func() error, error) {
			stop, err := p.start(ctx, n)
			mergers.Store(n, stop)
			return stop, err
		}
	}
}

// EventsHere returns how many events this node's replica of a subject's shard has of it.
func (n *Node) EventsHere(g id.Gallery, generation uint32, s id.Subject) int {
	m, ok := n.replicas.Shard(s.Shard())
	if !ok {
		return 0
	}
	list, _ := m.Shard().Events(g, generation, s) // a deleted gallery has none
	return len(list)
}

// StopMerges stops the loop that carries out merges; then only CarryOut does.
func (n *Node) StopMerges() error {
	stop, _ := mergers.LoadAndDelete(n)
	return stop.(func() error)() //nolint:forcetypeassert // by init
}
