package scan_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/scan"
)

const dim = 8

func newTable(t testing.TB) *score.Table {
	t.Helper()
	table, err := score.NewTable([]score.Point{
		{Cosine: -1}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max},
	})
	must.Do(t, err)
	return table
}

func unit(r *rand.Rand) []float32 {
	v := make([]float32, dim)
	var norm float64
	for i := range v {
		v[i] = float32(r.NormFloat64())
		norm += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(norm))
	}
	return v
}

// randomRows makes rows of few subjects and few templates, so that subjects and
// scores repeat.
func randomRows(r *rand.Rand, n int) []scan.Row {
	templates := make([][]float32, 1+r.IntN(20))
	for i := range templates {
		templates[i] = unit(r)
	}
	rows := make([]scan.Row, n)
	for i := range rows {
		rows[i] = scan.Row{
			Subject:  id.Subject{UUID: id.UUID{byte(r.IntN(12))}},
			Event:    id.Event{UUID: id.UUID{byte(i >> 8), byte(i)}},
			Template: templates[r.IntN(len(templates))],
		}
		for range r.IntN(3) {
			rows[i].Tags = append(rows[i].Tags, uint32(r.IntN(70)))
		}
	}
	r.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}

// plain is the definition: sort all, keep each subject's first if so wanted, cut.
func plain(rows []scan.Row, table *score.Table, q scan.Query) []scan.Hit {
	var all []scan.Hit
	for _, row := range rows {
		wanted := len(q.Tags) == 0
		for _, tag := range row.Tags {
			wanted = wanted || slices.Contains(q.Tags, tag)
		}
		wanted = wanted && (q.After == nil || bytes.Compare(row.Subject.UUID[:], q.After.UUID[:]) > 0)
		if s := table.Score(score.Dot(q.Probe, row.Template)); wanted && s >= q.Threshold {
			all = append(all, scan.Hit{Subject: row.Subject, Event: row.Event, Score: s})
		}
	}
	slices.SortFunc(all, func(a, b scan.Hit) int {
		switch {
		case a.Score != b.Score:
			return b.Score - a.Score
		case a.Subject != b.Subject:
			return bytes.Compare(a.Subject.UUID[:], b.Subject.UUID[:])
		default:
			return bytes.Compare(a.Event.UUID[:], b.Event.UUID[:])
		}
	})
	if q.BySubject || q.After != nil {
		seen := map[id.Subject]bool{}
		all = slices.DeleteFunc(all, func(h scan.Hit) bool {
			again := seen[h.Subject]
			seen[h.Subject] = true
			return again
		})
	}
	if q.After != nil {
		slices.SortFunc(all, func(a, b scan.Hit) int { return bytes.Compare(a.Subject.UUID[:], b.Subject.UUID[:]) })
	}
	return all[:min(len(all), q.Limit)]
}

func TestTopKEqualsSortingEverything(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0))
		rows := randomRows(r, r.IntN(120))
		q := scan.Query{Probe: unit(r), Threshold: r.IntN(9000), Limit: 1 + r.IntN(15), BySubject: r.IntN(2) == 0}
		for range r.IntN(3) {
			q.Tags = append(q.Tags, uint32(r.IntN(70)))
		}
		if r.IntN(3) == 0 {
			q.After = &id.Subject{UUID: id.UUID{byte(r.IntN(13))}}
		}
		got, want := scan.TopK(slices.Values(rows), table, q), plain(rows, table, q)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, query %+v:\ngot  %v\nwant %v", seed, q, got, want)
		}
	}
}

func TestThresholdIsInclusive(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	r := rand.New(rand.NewPCG(1, 1))
	rows := randomRows(r, 1)
	q := scan.Query{Probe: unit(r), Limit: 1}
	s := table.Score(score.Dot(q.Probe, rows[0].Template))
	for threshold, want := range map[int]int{s - 1: 1, s: 1, s + 1: 0} {
		q.Threshold = threshold
		if got := scan.TopK(slices.Values(rows), table, q); len(got) != want {
			t.Errorf("score %d, threshold %d: %d hits, want %d", s, threshold, len(got), want)
		}
	}
}

func TestThresholdZeroHitsAll(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	r := rand.New(rand.NewPCG(2, 1))
	rows := randomRows(r, 30)
	q := scan.Query{Probe: unit(r), Limit: 50}
	for i := range q.Probe { // a probe of more than unit norm: cosines below −1
		q.Probe[i] *= 3
	}
	if got := scan.TopK(slices.Values(rows), table, q); len(got) != len(rows) {
		t.Errorf("%d hits among %d rows", len(got), len(rows))
	}
}
