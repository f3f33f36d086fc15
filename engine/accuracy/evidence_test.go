package accuracy

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"facet/internal/must"
)

// crowd makes up persons with one to four photographs, one in eight without a
// face, and scores that depend on the pair alone.
func crowd(seed uint64, persons int) ([]Sample, Compare) {
	r := rand.New(rand.NewPCG(seed, 1))
	var samples []Sample
	for p := range persons {
		for range 1 + r.IntN(4) {
			samples = append(samples, Sample{Person: p, Acquired: r.IntN(8) > 0, Quality: r.Float32()})
		}
	}
	r.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
	return samples, func(a, b int) int {
		r := rand.New(rand.NewPCG(seed+uint64(min(a, b)), uint64(max(a, b))))
		mean := 2000.
		if samples[a].Person == samples[b].Person {
			mean = 6000
		}
		return int(min(max(mean+1500*r.NormFloat64(), 0), 9999))
	}
}

func allPairs(n int) [][2]int {
	var pairs [][2]int
	for i := range n {
		for j := range i {
			pairs = append(pairs, [2]int{i, j})
		}
	}
	return pairs
}

// rates is what two ways to the same evidence must agree on.
var asked = Ask{Thresholds: []int{3000, 4000, 5000, 6000}, FMR: []float64{.1, .01}, Discard: 5000}

func TestAllPairsEqualsListedPairs(t *testing.T) {
	t.Parallel()
	samples, compare := crowd(1, 60)
	all, err := CompareAll(t.Context(), samples, compare)
	must.Do(t, err)
	list, err := ComparePairs(t.Context(), samples, allPairs(len(samples)), compare)
	must.Do(t, err)
	got, want := all.Verify(asked), list.Verify(asked)
	for i := range got.At {
		if got.At[i].FMRPerson == nil {
			t.Fatal("no mean over persons")
		}
		got.At[i].FMRPerson = nil // a list does not know it
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("−list +all\n%s", diff)
	}
	if got.MatedFailed == 0 || got.NonMatedFailed == 0 {
		t.Error("no pair failed, nothing was shown")
	}
}

func TestBoundedTailKeepsRatesAboveFloor(t *testing.T) {
	t.Parallel()
	samples, compare := crowd(3, 150)
	whole, err := CompareAll(t.Context(), samples, compare)
	must.Do(t, err)
	bounded, err := newEvidence(samples)
	must.Do(t, err)
	bounded.tailMax = 4000
	must.Do(t, bounded.compareAll(t.Context(), samples, compare))
	if n := len(bounded.nonMated); n > bounded.tailMax/2 || n < bounded.tailMax/4 || int64(n) != bounded.NonMated.AtLeast(bounded.floor) {
		t.Errorf("%d comparisons kept from %d on, want those of at most %d", n, bounded.floor, bounded.tailMax/2)
	}
	ask := Ask{Thresholds: []int{bounded.floor, 6000, 7000}, FMR: []float64{1e-3}}
	want, got := whole.Verify(ask), bounded.Verify(ask)
	if got.EER.Interval != nil {
		t.Errorf("EER has the interval %v, though it lies below the floor", got.EER.Interval)
	}
	want.EER.Interval = nil
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("−whole +bounded\n%s", diff)
	}
	below := bounded.Verify(Ask{Thresholds: []int{bounded.floor - 1}}).At[0]
	if below.FMR.Interval != nil || below.FMRPerson != nil || below.FalsePersonPairs != 0 {
		t.Errorf("below the floor: %+v, want no interval and no means", below)
	}
	if want := whole.Verify(Ask{Thresholds: []int{bounded.floor - 1}}).At[0].FMR.Value; below.FMR.Value != want {
		t.Errorf("below the floor FMR is %v, want %v", below.FMR.Value, want)
	}
}

func TestRatesCountedByHand(t *testing.T) {
	t.Parallel()
	// Two persons with two photographs, one with one, and one without a face.
	samples := []Sample{
		{0, true, .9}, {0, true, .2}, {1, true, .8}, {1, true, .7}, {2, true, .5}, {0, false, 0},
	}
	table := map[[2]int]int{
		{0, 1}: 6999, {2, 3}: 7000, // mated
		{0, 2}: 7000, {0, 3}: 100, {1, 2}: 7500, {1, 3}: 0, {0, 4}: 50, {1, 4}: 60, {2, 4}: 70, {3, 4}: 7001,
	}
	e, err := CompareAll(t.Context(), samples, func(a, b int) int { return table[[2]int{min(a, b), max(a, b)}] })
	must.Do(t, err)
	v := e.Verify(Ask{Thresholds: []int{7000}, FMR: []float64{.25, .125}, Discard: 7000})
	if v.MatedPairs != 2 || v.MatedFailed != 2 || v.NonMatedPairs != 8 || v.NonMatedFailed != 3 {
		t.Errorf("pairs: %+v", v)
	}
	a := v.At[0]
	for what, pair := range map[string][2]float64{
		"FMR": {a.FMR.Value, 3. / 8}, "FNMR": {a.FNMR.Value, 1. / 2},
		"GFAR": {a.GFAR.Value, 3. / 11}, "GFRR": {a.GFRR.Value, 3. / 4},
		"FNMR mean over persons": {a.FNMRPerson.Value, 1. / 2},
		// Persons 0 and 1: 2 of 4; 0 and 2: none; 1 and 2: 1 of 2.
		"FMR mean over pairs of persons": {a.FMRPerson.Value, (2./4 + 0 + 1./2) / 3},
		"pairs of persons":               {float64(a.FalsePersonPairs), 2},
		"threshold for FMR ≤ .25":        {float64(v.Targets[0].Threshold), 7001},
		"FNMR there":                     {v.Targets[0].FNMR.Value, 1},
		"threshold for FMR ≤ .125":       {float64(v.Targets[1].Threshold), 7002},
		// The rejected pair has the quality .2: it goes first.
		"discarded":        {v.Discard[1].Share, .5},
		"FNMR of the rest": {v.Discard[1].FNMR.Value, 0},
	} {
		near(t, what, pair[0], pair[1], 1e-9)
	}
	near(t, "lowest quality kept", v.Discard[1].Quality, .7, 1e-4)
}

func TestDiscardTreatsEqualQualitiesAlike(t *testing.T) {
	t.Parallel()
	e := &Evidence{}
	for i := range 40 {
		// Thirty pairs of quality .5, every third rejected; ten of .9, none rejected.
		m := matedTrial{score: 8000, quality: 65535 / 2}
		if i >= 30 {
			m.quality = 65535 * 9 / 10
		} else if i%3 == 0 {
			m.score = 10
		}
		e.mated = append(e.mated, m)
	}
	got := e.discard(7000)
	if len(got) != 2 || got[0].Share != 0 || got[1].Share != .75 {
		t.Fatalf("curve is %+v, want points at 0 and .75", got)
	}
	near(t, "FNMR of all", got[0].FNMR.Value, .25, 1e-12)
	near(t, "FNMR of the good", got[1].FNMR.Value, 0, 1e-12)
	if none := new(Evidence).discard(7000); len(none) != 0 {
		t.Errorf("curve without mated pairs is %+v", none)
	}
}

// TestResampleRepeatsPersons writes a resample out: a person
// drawn w times brings its pairs w times, two persons theirs w·v times.
func TestResampleRepeatsPersons(t *testing.T) {
	t.Parallel()
	samples, compare := crowd(9, 40)
	e, err := CompareAll(t.Context(), samples, compare)
	must.Do(t, err)
	for n := range 20 {
		w := drawn(n, e.persons)
		mated, nonMated := new(Histogram), new(Histogram)
		for i, a := range samples {
			for j, b := range samples[:i] {
				switch {
				case !a.Acquired || !b.Acquired:
				case a.Person == b.Person:
					mated[compare(i, j)] += w[a.Person]
				default:
					nonMated[compare(i, j)] += w[a.Person] * w[b.Person]
				}
			}
		}
		want, got := CurveOf(mated, nonMated), e.resample(n)
		for threshold := range Thresholds {
			if math.Abs(got.FMR[threshold]-want.FMR[threshold]) > 1e-12 || math.Abs(got.FNMR[threshold]-want.FNMR[threshold]) > 1e-12 {
				t.Fatalf("resample %d at %d: got %v and %v, want %v and %v", n, threshold,
					got.FMR[threshold], got.FNMR[threshold], want.FMR[threshold], want.FNMR[threshold])
			}
		}
	}
}

func TestIntervalsContainTheirValue(t *testing.T) {
	t.Parallel()
	samples, compare := crowd(4, 40)
	var first *Verification
	for range 2 {
		e, err := CompareAll(t.Context(), samples, compare)
		must.Do(t, err)
		v := e.Verify(asked)
		for _, a := range v.At {
			for _, r := range []Rate{a.FMR, a.FNMR, a.FNMRPerson, *a.FMRPerson} {
				if r.Interval == nil || r.Interval.Low > r.Value || r.Interval.High < r.Value || r.Interval.High > 1 {
					t.Errorf("at %d: %v is not in its interval", a.Threshold, r)
				}
			}
		}
		if first == nil {
			first = v
		} else if diff := cmp.Diff(first, v); diff != "" {
			t.Errorf("the same comparisons gave other intervals:\n%s", diff)
		}
	}
}

func TestManyPhotosOfOnePersonWidenInterval(t *testing.T) {
	t.Parallel()
	// 100 persons with a mated pair each, 20 rejected; then one person with the
	// same 20 rejections in one go.
	width := func(persons func(pair int) int32) float64 {
		e := &Evidence{persons: 100}
		for i := range 100 {
			m := matedTrial{person: persons(i), score: 9000}
			if i < 20 {
				m.score = 10
			}
			e.mated = append(e.mated, m)
			e.Mated[m.score]++
		}
		e.sort()
		in := e.Verify(Ask{Thresholds: []int{7000}}).At[0].FNMR.Interval
		return in.High - in.Low
	}
	alone, together := width(func(i int) int32 { return int32(i) }), width(func(i int) int32 { return int32(max(i, 19)) })
	w := Wilson(20, 100)
	if alone < w.High-w.Low || alone > 1.3*(w.High-w.Low) {
		t.Errorf("independent pairs: %v wide, Wilson's interval %v", alone, w.High-w.Low)
	}
	if together < 2*alone {
		t.Errorf("one person's rejections: %v wide, independent ones %v: want twice that", together, alone)
	}
}

func TestExperimentsAreBounded(t *testing.T) {
	t.Parallel()
	none := func(int, int) int { return 0 }
	f := func(err error) {
		t.Helper()
		if !errors.Is(err, ErrTooMany) {
			t.Errorf("error is %v, want ErrTooMany", err)
		}
	}
	many := make([]Sample, SamplesMax+1)
	_, err := CompareAll(t.Context(), many, none)
	f(err)
	_, err = Identify(t.Context(), many, nil, nil, nil, nil)
	f(err)
	one := make([]Sample, 5000) // 12 million mated pairs
	for i := range one {
		one[i].Acquired = true
	}
	_, err = CompareAll(t.Context(), one, none)
	f(err)
	_, err = ComparePairs(t.Context(), one, make([][2]int, tailMax+1), none)
	f(err)
	if _, err := CompareAll(t.Context(), []Sample{{Person: -1}}, none); err == nil {
		t.Error("person −1 is no error")
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	samples, compare := crowd(1, 10)
	if _, err := CompareAll(stopped, samples, compare); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped comparison: %v", err)
	}
	if _, err := Identify(stopped, samples, Enrol(samples, 1), compare.Best(Enrol(samples, 1)), []int{0}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped search: %v", err)
	}
}
