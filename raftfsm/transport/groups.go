package transport

import (
	"sync"

	"facet/internal/id"
)

// groups are the Transports of a node's groups. It is safe for concurrent use.
type groups struct {
	mu sync.Mutex // guards of
	of map[id.Shard]*Transport
}

// add makes a group answer messages for several groups.
func (g *groups) add(t *Transport) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = make(map[id.Shard]*Transport)
	}
	g.of[t.group] = t
}

// remove ends add.
func (g *groups) remove(t *Transport) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of[t.group] == t {
		delete(g.of, t.group)
	}
}

// group returns the Transport of a group, or nil.
func (g *groups) group(number id.Shard) *Transport {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.of[number]
}
