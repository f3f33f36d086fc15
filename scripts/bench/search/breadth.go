package search

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"facet/shard/scan"
)

const (
	// recallLeast is the recall that an approximate peer has to reach.
	recallLeast = .99
	// recallProbes of each kind determine the breadth for that recall. The probes that
	// are timed are too few: one hundredth of their hits would be one or two.
	recallProbes = 100
)

// breadths are the steps for a peer that searches a graph, factors those for a peer
// that searches short codes. One after the other is tried until the peer finds enough.
var (
	breadths = []int{50, 100, 200, 400, 600, 800, 1200, 1600, 2400, 3200, 4800, 6400}
	factors  = []int{5, 10, 20, 50, 100, 200, 500, 1000, 2000}
)

// looking is the key of a breadth. Lone and concurrent searches share one breadth.
type looking struct {
	peer  string
	limit int
}

// breadth is the breadth of a peer's search, 0 if it has none, and the recall that it
// reaches, as text for the table, by kind of probe.
type breadth struct {
	at     int
	recall map[string]string
}

// aim returns the breadths to try for a peer, or none, and the threshold of the hits
// that the peer has to find. Short codes have to find all candidates. A graph has to
// find the hits only, because for the rest it may have to visit the whole graph.
func (b *bench) aim(name string) (steps []int, of least) {
	switch {
	case name == "pq":
		return factors, b.set.least[len(b.set.least)-1]
	case name != "" && strings.Contains(b.o.graphs, name):
		return breadths, b.set.middle()
	}
	return nil, least{}
}

// breadth returns the smallest breadth with which a peer finds enough. Mated and
// non-mated probes share one, because before a search nobody knows which kind its probe
// is.
func (b *bench) breadth(p *peer, limit int) (breadth, error) {
	if p == nil {
		return breadth{}, nil
	}
	steps, of := b.aim(p.name)
	key := looking{p.name, limit}
	e, ok := b.found[key]
	if ok || steps == nil {
		return e, nil
	}
	mated := b.set.mated[:min(len(b.set.mated), recallProbes*b.set.dim)]
	other := b.set.other[:min(len(b.set.other), recallProbes*b.set.dim)]
	probes, n := slices.Concat(mated, other), len(mated)/b.set.dim
	a := ask{limit: limit, batch: 1}
	_, hits, err := b.our.time(probes, a)
	if err != nil {
		return breadth{}, err
	}
	var ids [][]int
	enough := false
	for _, e.at = range steps {
		if _, ids, err = p.time(probes, a, e.at); err != nil {
			return breadth{}, err
		}
		if enough = b.our.share(probes, ids, hits, of.score) >= recallLeast; enough {
			break
		}
	}
	at := fmt.Sprintf(" at %d", e.at)
	if !enough {
		at += " (too small)"
	}
	e.recall = map[string]string{
		"mated":     b.our.told(mated, ids[:n], hits[:n]) + at,
		"non-mated": b.our.told(other, ids[n:], hits[n:]) + at,
	}
	b.found[key] = e
	return e, nil
}

// share returns the recall that decides whether a breadth is enough: that of all hits
// at or above a threshold, or that of the k best if no probe has such a hit.
func (o *ours) share(probes []float32, ids [][]int, hits [][]scan.Hit, least int) float64 {
	if r := o.recall(probes, ids, hits, least); !math.IsNaN(r) {
		return r
	}
	return o.recall(probes, ids, hits, 0)
}

// told returns text with the recall of the k best, and with that of the hits if there
// are any.
func (o *ours) told(probes []float32, ids [][]int, hits [][]scan.Hit) string {
	ofHits := "no hits"
	if r := o.recall(probes, ids, hits, o.set.middle().score); !math.IsNaN(r) {
		ofHits = fmt.Sprintf("of hits %.3f", r)
	}
	return fmt.Sprintf("%.3f (%s)", o.recall(probes, ids, hits, 0), ofHits)
}
