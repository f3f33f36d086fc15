package node

import (
	"context"
	"sync"
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

// StopMerges stops the loop that carries out merges; then only CarryOut does.
func (n *Node) StopMerges() error {
	stop, _ := mergers.LoadAndDelete(n)
	return stop.(func() error)() //nolint:forcetypeassert // by init
}
