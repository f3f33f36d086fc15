package models

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"text/tabwriter"

	"facet/engine"
	"facet/engine/accuracy"
	"facet/engine/models"
	"facet/engine/score"
)

// The template of a subject with several photographs is their mean. Means of more photographs are
// more like everybody, so each number of photographs has points of its own: those with which the
// mean alone has the false match rates of a single comparison. The rule of a search, the larger of
// the mean's and the best photograph's score, then has a higher rate, nearly all of it that of the
// best photograph. The rate of the rule is measured on persons that were not fitted.
const (
	// subjectDraws is how many random choices of photographs each person is enrolled with.
	subjectDraws = 3
	// heldPhotos is the least number of photographs of the persons whose FNMR is measured: as many as
	// are enrolled at most, and one to compare with. So all numbers of photographs are measured on
	// the same persons and comparisons.
	heldPhotos = score.PhotosMax + 1
)

// subjectFit has the fits of the means of PhotosMin, …, PhotosMax photographs. One is nil if there
// are too few persons with so many.
type subjectFit [score.Kinds]*fit

// acquired returns the indices of the acquired samples of each person with at least so many, in order
// of persons.
func acquired(samples []accuracy.Sample, least int) (list [][]int) {
	of := map[int][]int{}
	var order []int
	for i, s := range samples {
		if !s.Acquired {
			continue
		}
		if of[s.Person] == nil {
			order = append(order, s.Person)
		}
		of[s.Person] = append(of[s.Person], i)
	}
	slices.Sort(order)
	for _, person := range order {
		if len(of[person]) >= least {
			list = append(list, of[person])
		}
	}
	return list
}

// draws calls each with the photographs, in a random order, of each person with at least so many,
// subjectDraws times. The orders are the same in every run.
func draws(samples []accuracy.Sample, least int, each func(photos []int)) {
	r := rand.New(rand.NewPCG(splitSeed, uint64(least)))
	for range subjectDraws {
		for _, photos := range acquired(samples, least) {
			r.Shuffle(len(photos), func(i, j int) { photos[i], photos[j] = photos[j], photos[i] })
			each(photos)
		}
	}
}

func meanOf(templates []engine.Template, photos []int) []float32 {
	var mean score.Mean
	for _, i := range photos {
		mean.Add(templates[i])
	}
	return mean.Unit()
}

// fitSubjects fits the points of means. The points of more photographs are nowhere laxer than those of
// fewer, or than one, the fit of single photographs: few persons have many photographs, and a tail of
// few persons may seem to end early.
func fitSubjects(samples []accuracy.Sample, templates []engine.Template, one *fit) (out subjectFit, err error) {
	rates := make([]float64, len(anchors))
	for i, a := range anchors {
		rates[i] = a.fmr
	}
	of := photosOf(samples)
	for kind := range out {
		photos := score.PhotosMin + kind
		cosines, persons := new(accuracy.Cosines), map[int]bool{}
		draws(samples, photos, func(own []int) {
			person := samples[own[0]].Person
			persons[person] = true
			mean := meanOf(templates, own[:photos])
			for i, s := range samples {
				if s.Acquired && s.Person != person {
					cosines.Add(float64(score.Dot(mean, templates[i])), 1/float64(of[s.Person]))
				}
			}
		})
		f := &fit{pairs: cosines.Pairs, persons: len(persons)}
		if f.cosines, f.tail, err = cosines.CosinesAt(rates); err == nil {
			f.noLaxer(one)
			_, err = f.table()
		}
		if errors.Is(err, accuracy.ErrTail) {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("fit the means of %d photographs: %w", photos, err)
		}
		out[kind], one = f, f
	}
	return out, nil
}

// noLaxer raises the cosines of f to those of other where they are lower.
func (f *fit) noLaxer(other *fit) {
	for i, cosine := range other.cosines {
		f.cosines[i] = max(f.cosines[i], cosine)
	}
}

// photosOf returns how many photographs of each person were acquired.
func photosOf(samples []accuracy.Sample) map[int]int {
	of := map[int]int{}
	for _, s := range samples {
		if s.Acquired {
			of[s.Person]++
		}
	}
	return of
}

// with returns a table with the points of the means.
func (f subjectFit) with(table *score.Table) (*score.Table, error) {
	var means score.Means
	for kind, of := range f {
		if of == nil {
			continue
		}
		t, err := of.table()
		if err != nil {
			return nil, err
		}
		means[kind] = t
	}
	return table.With(means), nil
}

// ruleTest has the rates of the rule, and of the best photograph alone, by the number of photographs
// less 1.
type ruleTest struct {
	rule, best [score.PhotosMax]accuracy.Weights
}

// test adds the comparisons of samples that were not fitted.
func (r *ruleTest) test(table *score.Table, samples []accuracy.Sample, templates []engine.Template) {
	of := photosOf(samples)
	for n := 1; n <= score.PhotosMax; n++ {
		draws(samples, n, func(own []int) { r.add(table, n, own[:n], nil, samples, templates, of) })
	}
	draws(samples, heldPhotos, func(own []int) {
		for n := 1; n <= score.PhotosMax; n++ {
			r.add(table, n, own[:n], own[score.PhotosMax:], samples, templates, of)
		}
	})
}

// add compares n enrolled photographs of a person with the person's probes, or without probes with
// all photographs of others.
func (r *ruleTest) add(table *score.Table, n int, enrolled, probes []int, samples []accuracy.Sample, templates []engine.Template, of map[int]int) {
	person, mean := samples[enrolled[0]].Person, meanOf(templates, enrolled)
	compare := func(i int, mated bool, weight float64) {
		points := 0
		for _, e := range enrolled {
			points = max(points, table.Score(score.Dot(templates[e], templates[i])))
		}
		r.best[n-1].Add(points, mated, weight)
		if n >= score.PhotosMin {
			points = max(points, table.OfMean(score.Kind(n)).Score(score.Dot(mean, templates[i])))
		}
		r.rule[n-1].Add(points, mated, weight)
	}
	for _, i := range probes {
		compare(i, true, 1/float64(len(probes)))
	}
	if probes != nil {
		return
	}
	for i, s := range samples {
		if s.Acquired && s.Person != person {
			compare(i, false, 1/float64(of[s.Person]))
		}
	}
}

// calibrations returns the points for a manifest, with the measured rates of the rule at 7000.
func (f subjectFit) calibrations(measured *ruleTest) (list []models.SubjectCalibration) {
	for kind, of := range f {
		if of == nil {
			continue
		}
		photos := score.PhotosMin + kind
		rate := measured.rule[photos-1].FMR(score7000)
		list = append(list, models.SubjectCalibration{Photos: photos, FMR7000: twoDigits(max(rate, stated7000)), Points: of.points()})
	}
	return list
}

// twoDigits rounds a rate to two significant digits.
func twoDigits(rate float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(rate, 'e', 1, 64), 64) // reads what it wrote
	return rounded
}

// print prints the rates of the rule beside those of the best photograph.
func (r *ruleTest) print(w io.Writer) error {
	fmt.Fprintf(w, "\nseveral photographs of a person: the larger of the best photograph's and the mean's score, on the halves that were not fitted, %d draws\n\n", subjectDraws)
	tabs := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(tabs, "photographs\tcomparisons")
	for _, a := range anchors {
		fmt.Fprintf(tabs, "\tFMR at %d (best alone)", a.score)
	}
	fmt.Fprintln(tabs)
	for i := range r.rule {
		fmt.Fprintf(tabs, "%d\t%d", i+1, r.rule[i].NonMated)
		for _, a := range anchors {
			fmt.Fprintf(tabs, "\t%.1e (%.1e)", r.rule[i].FMR(a.score), r.best[i].FMR(a.score))
		}
		fmt.Fprintln(tabs)
	}
	if err := tabs.Flush(); err != nil {
		return err
	}
	if r.rule[0].Mated == 0 {
		_, err := fmt.Fprintf(w, "\nno person has %d photographs: FNMR was not measured\n", heldPhotos)
		return err
	}
	fmt.Fprintf(w, "\nFNMR of %d comparisons at equal measured FMR, with its threshold (best alone)\n\n", r.rule[0].Mated)
	fmt.Fprint(tabs, "photographs")
	for _, a := range anchors[1:4] {
		fmt.Fprintf(tabs, "\tat FMR %.0e", a.fmr)
	}
	fmt.Fprintln(tabs)
	for i := range r.rule {
		fmt.Fprint(tabs, i+1)
		for _, a := range anchors[1:4] {
			rule, best := r.rule[i].ThresholdFor(a.fmr), r.best[i].ThresholdFor(a.fmr)
			fmt.Fprintf(tabs, "\t%.4f at %d (%.4f at %d)", r.rule[i].FNMR(rule), rule, r.best[i].FNMR(best), best)
		}
		fmt.Fprintln(tabs)
	}
	return tabs.Flush()
}
