package search

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"facet/shard/scan"
)

const (
	// recallLeast is the recall that a peer has to reach that is not exact.
	recallLeast = .99
	// recallProbes of each kind tell what breadth that takes: a hundredth of the hits of the few that are
	// timed would be one or two.
	recallProbes = 100
)

// breadths are those of a graph's search, factors those of a search by short codes: one
// after the other until it finds enough.
var (
	breadths = []int{50, 100, 200, 400, 600, 800, 1200, 1600, 2400, 3200, 4800, 6400}
	factors  = []int{5, 10, 20, 50, 100, 200, 500, 1000, 2000}
)

// looking is what a breadth was found for: it is the same for searches at once.
type looking struct {
	peer  string
	limit int
}

// breadth is that of a peer's search, 0 if it has none, and what the table tells of what it finds with it,
// by kind of probe.
type breadth struct {
	at     int
	recall map[string]string
}

// aim returns the breadths to try for a peer, none if it has none, and the threshold of what it has to find:
// a graph the hits, since it may have to look at all of it for the rest, and short codes all.
func (b *bench) aim(name string) (steps []int, of least) {
	switch {
	case name == "pq":
		return factors, b.set.least[len(b.set.least)-1]
	case name != "" && strings.Contains(b.o.graphs, name):
		return breadths, b.set.middle()
	}
	return nil, least{}
}

// breadth finds the least breadth with which a peer finds enough. Mated and non-mated probes share one,
// since nobody knows before a search which a probe is.
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

// share is the recall that says whether a breadth will do: of all hits together of at least so much, or
// of the k best where no probe has one.
func (o *ours) share(probes []float32, ids [][]int, hits [][]scan.Hit, least int) float64 {
	if r := o.recall(probes, ids, hits, least); !math.IsNaN(r) {
		return r
	}
	return o.recall(probes, ids, hits, 0)
}

// told returns the recall of the k best, and that of the hits if there are any.
func (o *ours) told(probes []float32, ids [][]int, hits [][]scan.Hit) string {
	ofHits := "no hits"
	if r := o.recall(probes, ids, hits, o.set.middle().score); !math.IsNaN(r) {
		ofHits = fmt.Sprintf("of hits %.3f", r)
	}
	return fmt.Sprintf("%.3f (%s)", o.recall(probes, ids, hits, 0), ofHits)
}
