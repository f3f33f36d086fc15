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

// Identification has the rates of searches 1:N in one experiment. Persons are enrolled with some of
// their photographs (Enrol), and galleries are drawn among the persons. Every other photograph of an
// enrolled person is searched (mated). Every photograph is also searched with its own person left
// out (non-mated).
type Identification struct {
	Persons int `json:"persons"`
	// Photos is the number of photographs that are enrolled.
	Photos int `json:"photographsEnrolled"`
	// NotEnrolled is the share of persons of whom no photograph has a face (FTE).
	NotEnrolled Rate   `json:"fte"`
	Sizes       []Size `json:"galleries"`
}

// Size has the rates of galleries of one size.
type Size struct {
	// N is the number of persons, Draws the number of galleries drawn.
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
	score      PersonScore
	persons    int
	references []int  // the enrolled persons, ascending
	place      []int  // of a person in references, or −1
	enrolled   []bool // by sample
	sizes      []int
	thresholds []int
	draws      [][]int // permutations of references

	mu      sync.Mutex // guards tallies
	tallies []tally    // by person
}

// PersonScore returns the score, 0 to 9999, of an acquired sample, given by its index, with an
// enrolled person. Several goroutines call it.
type PersonScore func(probe, person int) int

// Enrol returns the samples with which each person is enrolled: the first acquired ones, at most
// photos, and one fewer than the person has, so that one is left to search with. A person with one
// acquired sample is enrolled with it.
func Enrol(samples []Sample, photos int) [][]int {
	var acquired [][]int
	for i, s := range samples {
		for len(acquired) <= s.Person {
			acquired = append(acquired, nil)
		}
		if s.Acquired {
			acquired[s.Person] = append(acquired[s.Person], i)
		}
	}
	for p, of := range acquired {
		acquired[p] = of[:min(len(of), max(1, min(photos, len(of)-1)))]
	}
	return acquired
}

// Best returns a score with the best of the samples with which a person is enrolled.
func (compare Compare) Best(enrolled [][]int) PersonScore {
	return func(probe, person int) int {
		best := -1
		for _, i := range enrolled[person] {
			best = max(best, compare(probe, i))
		}
		return best
	}
}

// Identify searches galleries of each of the sizes. Persons are enrolled with samples as Enrol
// returns them. A size of 0, or above the number of persons, means all.
func Identify(ctx context.Context, samples []Sample, enrolled [][]int, score PersonScore, sizes, thresholds []int) (*Identification, error) {
	if len(samples) > SamplesMax || len(sizes) > sizesMax || len(thresholds) > thresholdsMax {
		return nil, fmt.Errorf("%w: %d photographs, %d sizes, %d thresholds", ErrTooMany, len(samples), len(sizes), len(thresholds))
	}
	d := &identifier{samples: samples, score: score, thresholds: thresholds}
	if err := d.enrol(enrolled); err != nil {
		return nil, err
	}
	out := &Identification{Persons: d.persons}
	for _, own := range enrolled {
		out.Photos += len(own)
	}
	out.NotEnrolled = Share(int64(d.persons-len(d.references)), int64(d.persons))
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

func (d *identifier) enrol(samples [][]int) error {
	for i, s := range d.samples {
		if s.Person < 0 || s.Person >= SamplesMax {
			return fmt.Errorf("identify: photograph %d is of person %d", i, s.Person)
		}
		d.persons = max(d.persons, s.Person+1)
	}
	d.enrolled = make([]bool, len(d.samples))
	d.place = make([]int, d.persons)
	for person := range d.place {
		d.place[person] = -1
		if person >= len(samples) || len(samples[person]) == 0 {
			continue
		}
		d.place[person] = len(d.references)
		d.references = append(d.references, person)
		for _, i := range samples[person] {
			d.enrolled[i] = true
		}
	}
	return nil
}

func (d *identifier) searchAll(ctx context.Context) error {
	d.tallies = make([]tally, d.persons)
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
	own := d.place[person]
	mate := -1 // no score if the photograph is enrolled
	for r, other := range d.references {
		if r != own || !d.enrolled[probe] {
			scores[r] = d.score(probe, other)
		}
	}
	if own >= 0 && !d.enrolled[probe] {
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
