package score_test

import (
	"math"
	"slices"
	"testing"

	"facet/engine/score"
)

func TestMeanHasUnitNorm(t *testing.T) {
	t.Parallel()
	var mean score.Mean
	mean.Add([]float32{1, 0, 0})
	mean.Add([]float32{0, 1, 0})
	if got, want := mean.Unit(), float32(math.Sqrt(.5)); mean.Len() != 2 || mean.Dim() != 3 || !slices.Equal(got, []float32{want, want, 0}) {
		t.Errorf("%d templates: %v, want twice %v and 0", mean.Len(), got, want)
	}
	mean.Clear()
	mean.Add([]float32{1})
	mean.Add([]float32{-1})
	if got := mean.Unit(); !slices.Equal(got, []float32{0}) {
		t.Errorf("templates that cancel each other out: %v, want zeros", got)
	}
}

func TestKindWithoutTableHasOrdinaryOne(t *testing.T) {
	t.Parallel()
	other := table(t, []score.Point{{Cosine: -1}, {Cosine: .3, Score: 7000}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max}})
	with := table(t, curve).With(score.Means{1: other})
	for photos, want := range map[int]int{2: 7000, 3: other.Score(.478), 4: 7000, 9: 7000} {
		if got := with.OfMean(score.Kind(photos)).Score(.478); got != want {
			t.Errorf("the mean of %d photos has the score %d, want %d", photos, got, want)
		}
	}
	if got := with.Score(.478); got != 7000 {
		t.Errorf("a single comparison has the score %d", got)
	}
}
