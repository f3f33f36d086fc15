package score_test

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math"
	"testing"

	"facet/engine/score"
	"facet/internal/must"
)

var curve = []score.Point{
	{Cosine: -1, Score: 0},
	{Cosine: 0, Score: 0},
	{Cosine: .25, Score: 3000},
	{Cosine: .478, Score: 7000},
	{Cosine: score.Same, Score: score.Max},
	{Cosine: 1, Score: score.Max},
}

func table(t testing.TB, points []score.Point) *score.Table {
	t.Helper()
	made, err := score.NewTable(points)
	must.Do(t, err)
	return made
}

func TestScoreMeetsCalibrationPoints(t *testing.T) {
	t.Parallel()
	tab := table(t, curve)
	f := func(similarity float32, want int) {
		t.Helper()
		if got := tab.Score(similarity); got != want {
			t.Errorf("Score(%v): got %d, want %d", similarity, got, want)
		}
	}
	below := func(x float32) float32 { return math.Nextafter32(x, -2) }
	f(-1, 0)
	f(below(0), 0)
	f(0, 0)
	f(.25, 3000)
	f(below(.25), 2999)
	f(.478, 7000)
	f(below(.478), 6999)
	f(score.Same, 9999)
	f(below(score.Same), 9998)
	f(1, 9999)
	f(1.0000002, 9999)
	f(float32(math.Inf(1)), 9999)
	f(float32(math.Inf(-1)), 0)
	f(float32(math.NaN()), 0)
}

func TestLeastIsFirstSimilarityOfScore(t *testing.T) {
	t.Parallel()
	tab := table(t, curve)
	for s := 1; s <= score.Max; s++ {
		least := tab.Least(s)
		if got := tab.Score(least); got != s {
			t.Fatalf("Score(Least(%d)): got %d", s, got)
		}
		if got := tab.Score(math.Nextafter32(least, -2)); got != s-1 {
			t.Fatalf("just below Least(%d): got %d", s, got)
		}
	}
	if got := tab.Least(0); !math.IsInf(float64(got), -1) {
		t.Errorf("Least(0): got %v, want −Inf", got)
	}
	if got := tab.Least(score.Max + 1); !math.IsInf(float64(got), 1) {
		t.Errorf("Least(Max+1): got %v, want +Inf", got)
	}
}

func TestTableHasFixedBits(t *testing.T) {
	t.Parallel()
	tab := table(t, curve)
	sum := fnv.New64a()
	for s := 1; s <= score.Max; s++ {
		var raw [4]byte
		binary.LittleEndian.PutUint32(raw[:], math.Float32bits(tab.Least(s)))
		sum.Write(raw[:])
	}
	if got, want := sum.Sum64(), uint64(0x14d28d09406d9aa3); got != want {
		t.Fatalf("got %#x, want %#x", got, want)
	}
}

func TestUnusablePointsAreRefused(t *testing.T) {
	t.Parallel()
	start, end := score.Point{Cosine: -1}, score.Point{Cosine: 1, Score: score.Max}
	same := score.Point{Cosine: score.Same, Score: score.Max}
	f := func(points ...score.Point) {
		t.Helper()
		if _, err := score.NewTable(points); !errors.Is(err, score.ErrPoints) {
			t.Errorf("%v: got error %v, want ErrPoints", points, err)
		}
	}
	f()
	f(end)
	f(start, same)
	f(same, end)
	f(start, end) // Same would be worth less than Max
	f(score.Point{Cosine: -1, Score: 1}, same, end)
	f(start, same, score.Point{Cosine: 1, Score: 9998})
	f(start, score.Point{Cosine: .5, Score: 10000}, end)
	f(start, score.Point{Cosine: -2, Score: 1}, same, end)
	f(start, score.Point{Cosine: math.NaN(), Score: 5}, same, end)
	f(start, score.Point{Cosine: .5, Score: 7000}, score.Point{Cosine: .4, Score: 8000}, same, end)
	f(start, score.Point{Cosine: .5, Score: 7000}, score.Point{Cosine: .6, Score: 6999}, same, end)
	f(start, score.Point{Cosine: .5}, score.Point{Cosine: .500001, Score: 9000}, same, end)
	f(make([]score.Point, 1000)...)
}

func FuzzNewTable(f *testing.F) {
	f.Add(0.0, 100, .3, 7000)
	f.Add(-.5, 1, .9989, 9998)
	f.Fuzz(func(t *testing.T, c0 float64, s1 int, c1 float64, s2 int) {
		tab, err := score.NewTable([]score.Point{
			{Cosine: -1},
			{Cosine: c0},
			{Cosine: (c0 + c1) / 2, Score: s1},
			{Cosine: c1, Score: s2},
			{Cosine: score.Same, Score: score.Max},
			{Cosine: 1, Score: score.Max},
		})
		if err != nil {
			return
		}
		for s := 1; s <= score.Max; s++ {
			if !(tab.Least(s) > tab.Least(s-1)) {
				t.Fatalf("Least(%d) is %v after %v", s, tab.Least(s), tab.Least(s-1))
			}
		}
		if got := tab.Score(score.Same); got != score.Max {
			t.Fatalf("Score(Same): got %d", got)
		}
	})
}

func BenchmarkScore(b *testing.B) {
	tab := table(b, curve)
	b.ReportAllocs()
	for x := float32(0); b.Loop(); x += .0137 {
		if x > 1 {
			x = 0
		}
		tab.Score(x)
	}
}
