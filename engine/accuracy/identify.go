package accuracy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
)

const (
	// ListLength is the length of the candidate list for FNIR and FPIR.
	ListLength = 10
	// GalleryDraws is how many galleries are drawn of each size.
	GalleryDraws  = 10
	sizesMax      = 32
	thresholdsMax = 32
)

// Identification has the rates of searches 1:N in one experiment. The first acquired photograph of
// each person is the reference, and galleries are drawn among the persons. Every other photograph
// of an enrolled person is searched (mated). Every photograph is also searched with its own
// person's reference left out (non-mated).
type Identification struct {
	Persons int `json:"persons"`
	// NotEnrolled is the share of persons of whom no photograph has a face (FTE).
	NotEnrolled Rate   `json:"fte"`
	Sizes       []Size `json:"galleries"`
}

// Size has the rates of galleries of one size.
type Size struct {
	// N is the number of references, Draws the number of galleries drawn.
	N     int `json:"n"`
	Draws int `json:"draws"`
	// Rank1 and RankList are the shares of mated searches whose mate is first, or
	// among the first ListLength; equal scores count against the mate.
	Rank1    Rate     `json:"rank1"`
	RankList Rate     `json:"rank10"`
	At       []SizeAt `json:"atThresholds"`
}

// SizeAt has the rates of a gallery size at a threshold.
type SizeAt struct {
	Threshold int `json:"threshold"`
	// FPIR is the share of non-mated searches with a candidate at or above the threshold. FNIR is
	// the share of mated searches whose mate is below it or not among the first ListLength.
	FPIR Rate `json:"fpir"`
	FNIR Rate `json:"fnir"`
}

// tally counts the events of a person. For each size, events has those of rank 1 and rank
// ListLength, then those of FPIR and FNIR at each threshold.
type tally struct {
	events          []int32
	mated, nonMated []int32 // searches by size
	found           []int32 // photographs with a mate in one of the galleries, by size
}

type identifier struct {
	samples    []Sample
	compare    Compare
	references []int // index in samples of each enrolled person's reference, in the order of persons
	enrolled   []int // index in references by person, or −1
	sizes      []int
	thresholds []int
	draws      [][]int // permutations of references

	mu      sync.Mutex // guards tallies
	tallies []tally    // by person
}

// Identify searches galleries of each of the sizes. A size of 0, or above the number of persons,
// means all.
func Identify(ctx context.Context, samples []Sample, compare Compare, sizes, thresholds []int) (*Identification, error) {
	if len(samples) > SamplesMax || len(sizes) > sizesMax || len(thresholds) > thresholdsMax {
		return nil, fmt.Errorf("%w: %d photographs, %d sizes, %d thresholds", ErrTooMany, len(samples), len(sizes), len(thresholds))
	}
	d := &identifier{samples: samples, compare: compare, thresholds: thresholds}
	if err := d.enrol(); err != nil {
		return nil, err
	}
	out := &Identification{Persons: len(d.enrolled)}
	out.NotEnrolled = Share(int64(len(d.enrolled)-len(d.references)), int64(len(d.enrolled)))
	if len(d.references) == 0 {
		return out, nil
	}
	for _, n := range sizes {
		if n <= 0 || n > len(d.references) {
			n = len(d.references)
		}
		d.sizes = append(d.sizes, n)
	}
	slices.Sort(d.sizes)
	d.sizes = slices.Compact(d.sizes)
	r := rand.New(rand.NewPCG(seed, 0))
	for range GalleryDraws {
		d.draws = append(d.draws, r.Perm(len(d.references)))
	}
	if err := d.searchAll(ctx); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	out.Sizes = d.rates()
	return out, nil
}

func (d *identifier) enrol() error {
	for i, s := range d.samples {
		if s.Person < 0 || s.Person >= SamplesMax {
			return fmt.Errorf("identify: photograph %d is of person %d", i, s.Person)
		}
		for len(d.enrolled) <= s.Person {
			d.enrolled = append(d.enrolled, -1)
		}
		if s.Acquired && d.enrolled[s.Person] < 0 {
			d.enrolled[s.Person] = len(d.references)
			d.references = append(d.references, i)
		}
	}
	return nil
}

func (d *identifier) searchAll(ctx context.Context) error {
	d.tallies = make([]tally, len(d.enrolled))
	n := len(d.sizes)
	for p := range d.tallies {
		d.tallies[p] = tally{make([]int32, n*d.perSize()), make([]int32, n), make([]int32, n), make([]int32, n)}
	}
	return parallel(len(d.samples), func() func(int) error {
		scores := make([]int, len(d.references))
		return func(i int) error {
			if d.samples[i].Acquired {
				d.search(i, scores)
			}
			return ctx.Err()
		}
	})
}

// drawsOf returns the number of galleries of a size; all persons make only one.
func (d *identifier) drawsOf(size int) int {
	if size == len(d.references) {
		return 1
	}
	return len(d.draws)
}

// search searches with one photograph in all galleries; scores is scratch.
func (d *identifier) search(probe int, scores []int) {
	person := d.samples[probe].Person
	own := d.enrolled[person]
	mate := -1 // no score if the photograph is the reference
	for r, ref := range d.references {
		if ref != probe { // the reference's own score is never read
			scores[r] = d.compare(probe, ref)
		}
	}
	if d.references[own] != probe {
		mate = scores[own]
	}
	outcomes := make([]outcome, 0, len(d.draws)*len(d.sizes))
	for _, draw := range d.draws {
		o, from := outcome{best: -1, mate: mate}, 0
		for _, size := range d.sizes {
			for _, r := range draw[from:size] {
				if r == own {
					o.mated = mate >= 0
					continue
				}
				o.best = max(o.best, scores[r])
				if scores[r] >= mate {
					o.better++
				}
			}
			from = size
			outcomes = append(outcomes, o)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for s, size := range d.sizes {
		mated := false
		for draw := range d.drawsOf(size) {
			o := outcomes[draw*len(d.sizes)+s]
			d.count(person, s, o)
			mated = mated || o.mated
		}
		if mated {
			d.tallies[person].found[s]++
		}
	}
}

// outcome is the result of one probe in one gallery.
type outcome struct {
	best   int // highest score of another person's reference, or −1
	better int // how many other references score at least as high as the mate
	mate   int
	mated  bool // the gallery has the mate, which is another photograph
}

// perSize returns the number of events of a size.
func (d *identifier) perSize() int { return 2 + 2*len(d.thresholds) }

func (d *identifier) count(person, size int, o outcome) {
	t := &d.tallies[person]
	events := t.events[size*d.perSize():][:d.perSize()]
	one := func(event int, happened bool) {
		if happened {
			events[event]++
		}
	}
	t.nonMated[size]++
	if o.mated {
		t.mated[size]++
		one(0, o.better == 0)
		one(1, o.better < ListLength)
	}
	for i, threshold := range d.thresholds {
		one(2+2*i, o.best >= threshold)
		one(3+2*i, o.mated && (o.mate < threshold || o.better >= ListLength))
	}
}

func (d *identifier) rates() []Size {
	acquired := int64(0)
	for _, s := range d.samples {
		if s.Acquired {
			acquired++
		}
	}
	sizes := make([]Size, len(d.sizes))
	for s, n := range d.sizes {
		var found int64
		for p := range d.tallies {
			found += int64(d.tallies[p].found[s])
		}
		event := func(e int) func(t *tally) int32 {
			return func(t *tally) int32 { return t.events[s*d.perSize()+e] }
		}
		mated := func(e int) Rate {
			return d.rate(event(e), func(t *tally) int32 { return t.mated[s] }, found)
		}
		sizes[s] = Size{N: n, Draws: d.drawsOf(n), Rank1: mated(0), RankList: mated(1)}
		for i, threshold := range d.thresholds {
			sizes[s].At = append(sizes[s].At, SizeAt{
				Threshold: threshold,
				FPIR:      d.rate(event(2+2*i), func(t *tally) int32 { return t.nonMated[s] }, acquired),
				FNIR:      mated(3 + 2*i),
			})
		}
	}
	return sizes
}

// rate returns the share of events among trials over all persons. Its interval comes from
// resampling the probes' persons. photos is the number of their distinct photographs, because
// several galleries repeat the same searches. The galleries' persons are not resampled; their draws
// are averaged.
func (d *identifier) rate(events, trials func(t *tally) int32, photos int64) Rate {
	var sum, all int64
	for p := range d.tallies {
		sum += int64(events(&d.tallies[p]))
		all += int64(trials(&d.tallies[p]))
	}
	rate := Share(sum, all)
	if all == 0 {
		return rate
	}
	values := make([]float64, Resamples)
	resamples(func(n int) {
		var sum, all int64
		for p, w := range drawn(n, len(d.tallies)) {
			sum += w * int64(events(&d.tallies[p]))
			all += w * int64(trials(&d.tallies[p]))
		}
		values[n] = float64(sum) / float64(max(all, 1))
	})
	return rate.widen(values, photos)
}
