package accuracy

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Intervals come from resampling persons with replacement (the subset bootstrap of Bolle, Ratha and
// Pankanti, "Error analysis of pattern recognition systems", CVIU 93, 2004). A person that is drawn
// w times counts its mated comparisons w times, and a pair of persons its non-mated comparisons
// w·v times. A person is not compared with a copy of itself.
//
// The 95 % interval is the middle 95 % of the resampled rates, and at least Wilson's, which assumes
// independent comparisons. Resampling alone would call a rate without any event certain.

const (
	// Resamples is the number of resamples for an interval.
	Resamples = 500
	seed      = 19795
)

// drawn returns how often a resample has each person.
func drawn(resample, persons int) []int64 {
	r := rand.New(rand.NewPCG(seed, uint64(resample)))
	w := make([]int64, persons)
	for range persons {
		w[r.IntN(persons)]++
	}
	return w
}

// resamples calls each once for every resample, numbered 0 to Resamples−1, on all cores. each writes
// only to memory of its resample.
func resamples(each func(resample int)) {
	_ = parallel(Resamples, func() func(int) error { // each returns no error
		return func(i int) error {
			each(i)
			return nil
		}
	})
}

// parallel calls each(i) for i from 0 to n−1, on all cores, until one fails. Every goroutine gets an
// each of its own from worker.
func parallel(n int, worker func() (each func(i int) error)) error {
	var next atomic.Int64
	var workers errgroup.Group
	for range runtime.GOMAXPROCS(0) {
		each := worker()
		workers.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := each(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return workers.Wait()
}

// resampled has the rates of one resample of an Evidence.
type resampled struct {
	Curve
	// The means over persons and over pairs of persons. The latter is 0 unless every pair was
	// compared.
	personFNMR, personFMR [Thresholds]float64
	floor                 int // FMR is unknown below this threshold
}

func (e *Evidence) resample(n int) *resampled {
	w := drawn(n, e.persons)
	var mated, nonMated Histogram
	out := &resampled{floor: e.floor}
	var persons float64
	for _, run := range e.runs() {
		weight := w[run[0].person]
		persons += float64(weight)
		for _, t := range run {
			mated[t.score] += weight
			out.personFNMR[t.score+1] += float64(weight) / float64(len(run))
		}
	}
	// The comparisons of two persons follow each other, and of most pairs one is not drawn.
	last, both, weight := trial{a: -1}, int64(0), 0.
	for _, t := range e.nonMated {
		if t.a != last.a || t.b != last.b {
			last, both = t, w[t.a]*w[t.b]
			if both > 0 && e.photos != nil {
				weight = float64(both) * e.weight(t)
			}
		}
		if both == 0 {
			continue
		}
		nonMated[t.score] += both
		out.personFMR[t.score] += weight
	}
	out.Curve = *CurveOf(&mated, &nonMated)
	if e.photos != nil {
		// The total includes comparisons below the floor.
		total, pairs := e.drawnPairs(w)
		share := float64(nonMated.Total()) / float64(max(total, 1))
		for t := range out.FMR {
			out.FMR[t] *= share
		}
		for t := Thresholds - 2; t >= 0; t-- {
			out.personFMR[t] += out.personFMR[t+1]
		}
		for t := range out.personFMR {
			out.personFMR[t] /= float64(max(pairs, 1))
		}
	}
	for t := 1; t < Thresholds; t++ {
		out.personFNMR[t] += out.personFNMR[t-1]
	}
	for t := range out.personFNMR {
		out.personFNMR[t] /= max(persons, 1)
	}
	return out
}

// drawnPairs returns the number of non-mated comparisons and of pairs of persons in a draw.
func (e *Evidence) drawnPairs(w []int64) (comparisons, persons int64) {
	photos, there := make([]int, e.persons), make([]int, e.persons)
	for p, n := range e.photos {
		photos[p] = int(w[p]) * n
		if n > 0 {
			there[p] = int(w[p])
		}
	}
	_, comparisons = pairCounts(photos)
	_, persons = pairCounts(there)
	return comparisons, persons
}

// runs returns the mated trials of each person.
func (e *Evidence) runs() [][]matedTrial {
	var runs [][]matedTrial
	for from := 0; from < len(e.mated); {
		to := from + 1
		for to < len(e.mated) && e.mated[to].person == e.mated[from].person {
			to++
		}
		runs = append(runs, e.mated[from:to])
		from = to
	}
	return runs
}
