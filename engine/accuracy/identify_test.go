package accuracy

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
)

func TestSearchesCountedByHand(t *testing.T) {
	t.Parallel()
	// Three persons; 0, 1, 2 are the references, 3 and 4 further photographs of
	// persons 0 and 1, 5 one of person 2 without a face; person 3 has no face at all.
	samples := []Sample{
		{0, true, 1}, {1, true, 1}, {2, true, 1}, {0, true, 1}, {1, true, 1}, {2, false, 0}, {3, false, 0},
	}
	table := map[[2]int]int{
		{0, 1}: 10, {0, 2}: 20, {1, 2}: 7000, // references among themselves
		{0, 3}: 8000, {1, 3}: 7500, {2, 3}: 30, // found
		{0, 4}: 40, {1, 4}: 6000, {2, 4}: 6000, // equal scores: not first
	}
	compare := Compare(func(a, b int) int { return table[[2]int{min(a, b), max(a, b)}] })
	enrolled := Enrol(samples, 1)
	id, err := Identify(t.Context(), samples, enrolled, compare.Best(enrolled), []int{0, 99}, []int{6000, 7000, 8000})
	must.Do(t, err)
	if id.Persons != 4 || id.NotEnrolled.Events != 1 || len(id.Sizes) != 1 {
		t.Fatalf("got %+v, want four persons, one not enrolled, one size", id)
	}
	s := id.Sizes[0]
	if s.N != 3 || s.Draws != 1 || s.Rank1.Events != 1 || s.Rank1.Trials != 2 || s.RankList.Events != 2 {
		t.Errorf("gallery is %+v, want one of two mates first, both in the list", s)
	}
	// Best of the others for photographs 0 to 4: 20, 7000, 7000, 7500, 6000.
	for i, want := range []struct{ fpir, fnir int64 }{{4, 0}, {3, 1}, {0, 1}} {
		a := s.At[i]
		if a.FPIR.Events != want.fpir || a.FPIR.Trials != 5 || a.FNIR.Events != want.fnir || a.FNIR.Trials != 2 {
			t.Errorf("at %d: FPIR %d of %d, FNIR %d of %d, want %d of 5 and %d of 2", a.Threshold,
				a.FPIR.Events, a.FPIR.Trials, a.FNIR.Events, a.FNIR.Trials, want.fpir, want.fnir)
		}
	}
}

// TestIndependentSearchesFollowFormula compares measured
// rates with 1 − (1 − FMR)^N, for scores that are.
func TestIndependentSearchesFollowFormula(t *testing.T) {
	t.Parallel()
	samples, compare := crowd(11, 300)
	all, err := CompareAll(t.Context(), samples, compare)
	must.Do(t, err)
	enrolled := Enrol(samples, 1)
	id, err := Identify(t.Context(), samples, enrolled, compare.Best(enrolled), []int{5, 50, 0}, []int{5000, 6000})
	must.Do(t, err)
	if len(id.Sizes) != 3 {
		t.Fatalf("%d sizes, want 3", len(id.Sizes))
	}
	for _, s := range id.Sizes {
		for _, a := range s.At {
			want := 1 - math.Pow(1-CurveOf(&all.Mated, &all.NonMated).FMR[a.Threshold], float64(s.N))
			if want < a.FPIR.Interval.Low || want > a.FPIR.Interval.High {
				t.Errorf("N = %d at %d: FPIR %v, want %v", s.N, a.Threshold, a.FPIR, want)
			}
		}
	}
	if small, large := id.Sizes[0], id.Sizes[2]; small.Rank1.Value < large.Rank1.Value || small.At[0].FPIR.Value > large.At[0].FPIR.Value {
		t.Errorf("a larger gallery is easier: rank 1 %v and %v, FPIR %v and %v",
			small.Rank1, large.Rank1, small.At[0].FPIR, large.At[0].FPIR)
	}
	again, err := Identify(t.Context(), samples, enrolled, compare.Best(enrolled), []int{5, 50, 0}, []int{5000, 6000})
	must.Do(t, err)
	if diff := cmp.Diff(id, again); diff != "" {
		t.Errorf("the same searches gave other rates:\n%s", diff)
	}
}

func TestEmptyGalleryHasNoRates(t *testing.T) {
	t.Parallel()
	samples := []Sample{{Person: 0}}
	id, err := Identify(t.Context(), samples, Enrol(samples, 1), nil, []int{0}, []int{7000})
	if err != nil || len(id.Sizes) != 0 || id.NotEnrolled.Value != 1 {
		t.Errorf("got %+v, %v, want nobody enrolled and no sizes", id, err)
	}
}

func TestEnrolLeavesOnePhotoToSearchWith(t *testing.T) {
	t.Parallel()
	samples := []Sample{
		{0, false, 1}, {0, true, 1}, {0, true, 1}, {0, true, 1}, {1, true, 1}, {1, true, 1}, {2, true, 1}, {3, false, 1},
	}
	for photos, want := range map[int][][]int{1: {{1}, {4}, {6}, nil}, 2: {{1, 2}, {4}, {6}, nil}, 9: {{1, 2}, {4}, {6}, nil}} {
		got := Enrol(samples, photos)
		for p := range want {
			if len(got) != len(want) || !slices.Equal(got[p], want[p]) {
				t.Errorf("%d photographs: person %d is enrolled with %v, want %v", photos, p, got[p], want[p])
			}
		}
	}
	// The third photograph of person 0 is like the first and not like the second.
	compare := Compare(func(a, b int) int {
		if min(a, b) == 1 && max(a, b) == 3 {
			return 8000
		}
		return 10
	})
	enrolled := Enrol(samples, 2)
	id, err := Identify(t.Context(), samples, enrolled, compare.Best(enrolled), []int{0}, []int{7000})
	must.Do(t, err)
	if s := id.Sizes[0]; id.Photos != 4 || s.N != 3 || s.Rank1.Trials != 2 || s.Rank1.Events != 1 || s.At[0].FNIR.Events != 1 || s.At[0].FPIR.Events != 0 {
		t.Errorf("%+v, of %d photographs", s, id.Photos)
	}
}
