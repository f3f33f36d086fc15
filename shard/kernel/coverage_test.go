package kernel

import (
	"math/rand/v2"
	"testing"

	"facet/shard/scan"
)

// Alone, together, with tags, in cold chunks: each search notes each row once.
func TestCoverageHasEveryRow(t *testing.T) {
	t.Parallel()
	const dim, n, tag = 32, 21_000, 7
	r := rand.New(rand.NewPCG(1, 91))
	w := newTwin(t, dim)
	tagged, rows := 0, 0
	for i := range n {
		slot := w.add(t, eventOf(r, i), unit(r, dim))
		if i < flatSlots && i%3 == 0 || r.IntN(9) == 0 {
			w.erase(slot)
		}
	}
	for _, row := range w.rows {
		if rows++; scan.Tagged(row.Tags, []uint32{tag}) {
			tagged++
		}
	}
	for range 2 {
		qs := make([]scan.Query, laneCount+2)
		for i := range qs {
			qs[i] = scan.Query{Probe: unit(r, dim), Threshold: 1000 * (i % 7), Limit: 1 + i, Coverage: new(scan.Coverage)}
		}
		qs[3].Tags = []uint32{tag}
		if _, err := w.m.SearchAll(w.table, qs); err != nil {
			t.Fatal(err)
		}
		for i, q := range qs {
			w.m.Count(q.Coverage)
			searched, leftOut := rows, 0
			if i == 3 {
				searched, leftOut = tagged, rows-tagged
			}
			if c := q.Coverage; c.Searched != searched || c.LeftOut != leftOut {
				t.Errorf("search %d: %d searched, %d left out, want %d and %d", i, c.Searched, c.LeftOut, searched, leftOut)
			}
		}
		w.chill(r, .5)
	}
}

// A search that goes through all chunks again counts the second time only.
func TestRestartedSearchForgetsCoverage(t *testing.T) {
	t.Parallel()
	w := newTwin(t, 8)
	w.add(t, &event{}, unit(rand.New(rand.NewPCG(1, 2)), 8))
	q := scan.Query{Probe: make([]float32, 8), Limit: 1, Coverage: new(scan.Coverage)}
	s := w.prepared(t, q, &active)
	run(t, w.m, s)
	s.restart()
	if w.m.Count(q.Coverage); q.Coverage.Searched != 0 {
		t.Errorf("%d rows are noted before the second time", q.Coverage.Searched)
	}
}
