package searches

import (
	"sync"

	"facet/internal/id"
	"facet/shard/scan"
)

// The shards of one node that search for one request share a limit (scan.Floor). Without it each of
// them would look for the best hits of its own, and with 16 shards read up to 16 times as many rows
// from disk. Each tells the limit with its hits. The node that joins the hits looks whether enough of
// them reach the highest limit: then no hit that was left out belongs to the best. If an event went
// meanwhile, they may not, and that node searches once more without sharing.

// sharing has the limits of the searches under way on this node. The zero value is ready.
type sharing struct {
	mu sync.Mutex // guards of
	of map[id.UUID]*shared
}

type shared struct {
	floor *scan.Floor
	users int
}

// join returns the floor of the searches with this name, or nil without a name. The caller calls leave
// at its end.
func (s *sharing) join(name id.UUID, limit int) (floor *scan.Floor, leave func()) {
	if name == (id.UUID{}) || limit < 1 {
		return nil, func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.of[name]
	if at == nil {
		if s.of == nil {
			s.of = make(map[id.UUID]*shared)
		}
		at = &shared{floor: scan.NewFloor(limit)}
		s.of[name] = at
	}
	at.users++
	return at.floor, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if at.users--; at.users == 0 {
			delete(s.of, name)
		}
	}
}

// withFloor returns the hits of a shard and, behind them, the limit.
func withFloor(hits []NotedHit, floor *scan.Floor) []NotedHit {
	if floor == nil || floor.Least() == 0 {
		return hits
	}
	return append(hits, NotedHit{Floor: floor.Least()})
}

// withoutFloors removes the limits from the lists of the shards. complete reports whether the first
// limit hits of all lists together are the best of the gallery.
func withoutFloors(lists [][]NotedHit, limit int) (complete bool) {
	least, better := 0, 0
	for i, list := range lists {
		hits := list[:0]
		for _, h := range list {
			if least = max(least, h.Floor); h.Floor == 0 {
				hits = append(hits, h)
			}
		}
		lists[i] = hits
	}
	for _, list := range lists {
		for _, h := range list {
			if h.Rank() >= least {
				better++
			}
		}
	}
	return least == 0 || better >= limit
}
