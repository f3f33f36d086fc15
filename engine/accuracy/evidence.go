package accuracy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Limits of an experiment.
const (
	SamplesMax = 100_000
	// matedMax is the most mated comparisons. All are kept (8 bytes each).
	matedMax = 1 << 23
	// tailMax is the most non-mated comparisons that are kept, those with the highest scores (12
	// bytes each).
	tailMax = 1 << 21
	// spillMax is how many non-mated comparisons a goroutine collects before it hands them over.
	spillMax = 1 << 12
)

// ErrTooMany is returned for an experiment beyond the limits.
var ErrTooMany = errors.New("accuracy: too many comparisons")

// Sample is one photograph.
type Sample struct {
	// Person is the number of the person on it: 0, 1, 2, …
	Person int
	// Acquired is false when no face was found.
	Acquired bool
	// Quality is the face's quality, 0 to 1.
	Quality float32
}

// Compare returns the score, 0 to 9999, of two acquired samples, given by their indices. Several
// goroutines call it.
type Compare func(a, b int) int

// Evidence is the result of comparisons 1:1.
type Evidence struct {
	// Mated and NonMated count the comparisons.
	Mated, NonMated Histogram
	// MatedFailed and NonMatedFailed are the pairs that could not be compared, because one of their
	// photographs has no face.
	MatedFailed, NonMatedFailed int64

	persons int
	// photos is the number of acquired photographs of each person, or nil unless every pair was
	// compared.
	photos []int
	// mated are all mated comparisons, nonMated those with a score of floor or more.
	mated    []matedTrial
	nonMated []trial
	floor    int
	tailMax  int // the most of nonMated that are kept
}

type matedTrial struct {
	person  int32
	score   int16
	quality uint16 // of the worse photograph, in 1/65535
}

type trial struct {
	a, b  int32 // persons
	score int16
}

func newEvidence(samples []Sample) (*Evidence, error) {
	if len(samples) > SamplesMax {
		return nil, fmt.Errorf("%w: %d photographs, more than %d", ErrTooMany, len(samples), SamplesMax)
	}
	e := &Evidence{tailMax: tailMax}
	for i, s := range samples {
		if s.Person < 0 || s.Person >= SamplesMax {
			return nil, fmt.Errorf("compare: photograph %d is of person %d", i, s.Person)
		}
		e.persons = max(e.persons, s.Person+1)
	}
	return e, nil
}

func matedOf(a, b Sample, score int) matedTrial {
	return matedTrial{int32(a.Person), int16(score), uint16(min(max(min(a.Quality, b.Quality), 0), 1) * 65535)}
}

// sort makes results independent of the order of the trials.
func (e *Evidence) sort() {
	slices.SortFunc(e.mated, func(a, b matedTrial) int {
		return cmp.Or(cmp.Compare(a.person, b.person), cmp.Compare(a.score, b.score), cmp.Compare(a.quality, b.quality))
	})
	slices.SortFunc(e.nonMated, func(a, b trial) int {
		return cmp.Or(cmp.Compare(a.a, b.a), cmp.Compare(a.b, b.b), cmp.Compare(a.score, b.score))
	})
}

// ComparePairs compares the pairs, given by indices in samples.
func ComparePairs(ctx context.Context, samples []Sample, pairs [][2]int, compare Compare) (*Evidence, error) {
	e, err := newEvidence(samples)
	if err != nil {
		return nil, err
	}
	if len(pairs) > min(matedMax, tailMax) {
		return nil, fmt.Errorf("%w: %d pairs, more than %d", ErrTooMany, len(pairs), min(matedMax, tailMax))
	}
	for _, p := range pairs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a, b := samples[p[0]], samples[p[1]]
		mated, acquired := a.Person == b.Person, a.Acquired && b.Acquired
		switch {
		case mated && !acquired:
			e.MatedFailed++
		case !acquired:
			e.NonMatedFailed++
		case mated:
			s := compare(p[0], p[1])
			e.Mated[s]++
			e.mated = append(e.mated, matedOf(a, b, s))
		default:
			s := compare(p[0], p[1])
			e.NonMated[s]++
			e.nonMated = append(e.nonMated, trial{int32(a.Person), int32(b.Person), int16(s)})
		}
	}
	e.sort()
	return e, nil
}

// CompareAll compares every sample with every other one, on all cores. Its memory is bounded: it
// keeps the counts of scores, and only the highest-scoring non-mated comparisons.
func CompareAll(ctx context.Context, samples []Sample, compare Compare) (*Evidence, error) {
	e, err := newEvidence(samples)
	if err != nil {
		return nil, err
	}
	if err := e.compareAll(ctx, samples, compare); err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	return e, nil
}

func (e *Evidence) compareAll(ctx context.Context, samples []Sample, compare Compare) error {
	e.countPhotos(samples)
	if mated, _ := pairCounts(e.photos); mated > matedMax {
		return fmt.Errorf("%w: %d mated pairs, more than %d", ErrTooMany, mated, matedMax)
	}
	var mu sync.Mutex // guards e
	var parts []*Evidence
	err := parallel(len(samples), func() func(int) error {
		part := new(Evidence)
		parts = append(parts, part)
		return func(i int) error {
			part.row(samples, i, compare)
			if len(part.nonMated) >= spillMax {
				mu.Lock()
				part.floor = e.take(part)
				mu.Unlock()
			}
			return ctx.Err()
		}
	})
	if err != nil {
		return err
	}
	for _, part := range parts {
		e.take(part)
		for s := range e.Mated {
			e.Mated[s] += part.Mated[s]
			e.NonMated[s] += part.NonMated[s]
		}
	}
	e.settle()
	e.sort()
	return nil
}

// row compares a sample with all earlier ones.
func (e *Evidence) row(samples []Sample, i int, compare Compare) {
	a := samples[i]
	if !a.Acquired {
		return
	}
	for j, b := range samples[:i] {
		if !b.Acquired {
			continue
		}
		s := compare(i, j)
		if a.Person == b.Person {
			e.Mated[s]++
			e.mated = append(e.mated, matedOf(a, b, s))
			continue
		}
		e.NonMated[s]++
		if s >= e.floor {
			e.nonMated = append(e.nonMated, trial{int32(a.Person), int32(b.Person), int16(s)})
		}
	}
}

// take moves the trials of part to e, and returns the new floor.
func (e *Evidence) take(part *Evidence) int {
	e.mated = append(e.mated, part.mated...)
	e.nonMated = append(e.nonMated, part.nonMated...)
	part.mated, part.nonMated = part.mated[:0], part.nonMated[:0]
	if len(e.nonMated) > e.tailMax {
		var kept Histogram
		for _, t := range e.nonMated {
			kept[t.score]++
		}
		e.raise(tailFloor(&kept, e.tailMax/2))
	}
	return e.floor
}

// settle makes the floor depend on all scores alone, not on their order. It is never below an
// earlier floor, which came from a part of the scores.
func (e *Evidence) settle() {
	if e.NonMated.Total() > int64(e.tailMax) {
		e.raise(tailFloor(&e.NonMated, e.tailMax/2))
	}
}

// tailFloor returns the lowest floor that leaves at most the given number of comparisons.
func tailFloor(h *Histogram, most int) int {
	n := h.Total()
	floor := 0
	for n > int64(most) {
		n -= h[floor]
		floor++
	}
	return floor
}

func (e *Evidence) raise(floor int) {
	e.floor = max(e.floor, floor)
	e.nonMated = slices.DeleteFunc(e.nonMated, func(t trial) bool { return int(t.score) < e.floor })
}

// countPhotos counts the pairs that can't be compared, and the photographs of each person.
func (e *Evidence) countPhotos(samples []Sample) {
	e.photos = make([]int, e.persons)
	all := make([]int, e.persons)
	for _, s := range samples {
		all[s.Person]++
		if s.Acquired {
			e.photos[s.Person]++
		}
	}
	mated, others := pairCounts(all)
	acquired, acquiredOthers := pairCounts(e.photos)
	e.MatedFailed, e.NonMatedFailed = mated-acquired, others-acquiredOthers
}

// pairCounts returns the number of pairs of photographs that show one person, and of those that
// show two. photos has the number of photographs of each person.
func pairCounts(photos []int) (mated, nonMated int64) {
	var n, squares int64
	for _, p := range photos {
		mated += int64(p) * int64(p-1) / 2
		n += int64(p)
		squares += int64(p) * int64(p)
	}
	return mated, (n*n - squares) / 2
}
