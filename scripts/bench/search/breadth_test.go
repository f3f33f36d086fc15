package search

import (
	"math"
	"testing"

	"facet/internal/must"
	"facet/shard/scan"
)

// ids of rows that are found, one probe a line.
type ids = [][]int

func TestBreadthFindsBothKindsOfProbes(t *testing.T) {
	t.Parallel()
	// Row i has a cosine of a tenth of i to every probe.
	s := &set{dim: 2, least: cosines, table: linear}
	for i := range 10 {
		c := float64(i) / 10
		s.rows = append(s.rows, float32(c), float32(math.Sqrt(1-c*c)))
	}
	table, err := linear()
	must.Do(t, err)
	o := &ours{set: s, table: table}
	// answers returns what each probe's k best rows are.
	answers := func(best ...[]int) (probes []float32, hits [][]scan.Hit) {
		for _, rows := range best {
			probes = append(probes, 1, 0)
			var h []scan.Hit
			for _, row := range rows {
				h = append(h, scan.Hit{Score: o.score([]float32{1, 0}, row)})
			}
			hits = append(hits, h)
		}
		return probes, hits
	}
	share := func(what string, want float64, found ids, best ...[]int) {
		t.Helper()
		probes, hits := answers(best...)
		if got := o.share(probes, found, hits, s.middle().score); got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	share("both have hits", .75, ids{{9, 8, 7}, {1, 2, 3}}, []int{9, 8, 7}, []int{6, 4, 3})
	share("the second has none", 1, ids{{9, 8, 1}, {0, 0, 0}}, []int{9, 8, 3}, []int{4, 3, 2})
	share("neither has", .5, ids{{4, 3}, {0, 0}}, []int{4, 3}, []int{4, 2})

	told := func(want string, found ids, best ...[]int) {
		t.Helper()
		probes, hits := answers(best...)
		if got := o.told(probes, found, hits); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	told("0.750 (of hits 1.000)", ids{{9, 8, 4, 0}}, []int{9, 8, 4, 3})
	told("0.500 (no hits)", ids{{4, 0}}, []int{4, 3})
}

func TestMiddleThresholdTellsHits(t *testing.T) {
	t.Parallel()
	for want, of := range map[string][]least{"≥ .5": cosines, "≥ 7000": scores} {
		if got := (&set{least: of}).middle().name; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
