package models

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"facet/cmd/facet/photos"
	"facet/engine"
	"facet/engine/accuracy"
	"facet/engine/models"
	"facet/engine/score"
	"facet/internal/svd"
)

// Folds is the number of parts into which CrossFitted divides persons.
const Folds = 5

// CrossFitted returns scores that were fitted on other persons than the compared ones: the persons
// are divided at random into Folds parts, and the score of two photographs comes from a fit to the
// parts in which neither person is. A size is that of a projection to fit in the same way
// (Source.OpenToFit).
func CrossFitted(ctx context.Context, x *photos.Extracted, persons int, size *models.Projection) (accuracy.Compare, error) {
	if persons < personsMin {
		return nil, fmt.Errorf("%d persons are too few to fit scores on parts of them: it needs %d", persons, personsMin)
	}
	return newFolds(x, persons, size).compare(ctx)
}

// foldsOf returns the part of each person.
func foldsOf(persons int) []int {
	fold := make([]int, persons)
	for i, p := range rand.New(rand.NewPCG(splitSeed, Folds)).Perm(persons) {
		fold[p] = i % Folds
	}
	return fold
}

// folded has templates of persons in folds.
type folded struct {
	*photos.Extracted
	size    *models.Projection // nil to leave the templates as they are
	of      []int              // fold of each sample
	moments [Folds][][]float64 // sum of the outer products of each fold's templates
	count   [Folds]int
}

const none = -1 // no fold

func newFolds(x *photos.Extracted, persons int, size *models.Projection) *folded {
	f := &folded{Extracted: x, size: size, of: make([]int, len(x.Samples))}
	part := foldsOf(persons)
	for i, s := range x.Samples {
		f.of[i] = part[s.Person]
		if s.Acquired && size != nil {
			f.add(f.of[i], x.Templates[i])
		}
	}
	return f
}

func (f *folded) add(fold int, t engine.Template) {
	if f.moments[fold] == nil {
		f.moments[fold] = square(len(t))
	}
	f.count[fold]++
	for r, a := range t {
		row := f.moments[fold][r][:r+1]
		for c := range row {
			row[c] += float64(a) * float64(t[c])
		}
	}
}

func square(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}

// fit returns a projection that is fitted on all folds but two, row after row, and the share of
// the squared norm that it keeps.
func (f *folded) fit(but, butToo int) (values []float32, kept float64, err error) {
	size := f.size
	sum := square(size.Cols)
	n := 0
	for fold, m := range f.moments {
		if fold == but || fold == butToo || m == nil {
			continue
		}
		n += f.count[fold]
		for r := range sum {
			for c := range r + 1 {
				sum[r][c] += m[r][c]
				sum[c][r] = sum[r][c]
			}
		}
	}
	axes, lengths, err := svd.Left(sum)
	if err != nil || len(axes) < size.Rows {
		return nil, 0, fmt.Errorf("fit a projection to %d photographs: they have %d independent directions, %d are needed (%w)", n, len(axes), size.Rows, err)
	}
	for i, axis := range axes[:size.Rows] {
		kept += lengths[i] / float64(n)
		for _, v := range axis {
			values = append(values, float32(v))
		}
	}
	return values, kept, nil
}

// projected returns the photographs with the templates that a projection makes.
func (f *folded) projected(values []float32) *photos.Extracted {
	out := *f.Extracted
	out.Templates = make([]engine.Template, len(f.Templates))
	for i, t := range f.Templates {
		if t != nil {
			out.Templates[i] = unit(f.size.Apply(values, t))
		}
	}
	return &out
}

func unit(t engine.Template) engine.Template {
	var sum float64
	for _, v := range t {
		sum += float64(v) * float64(v)
	}
	for i, v := range t {
		t[i] = float32(float64(v) / math.Sqrt(sum))
	}
	return t
}

// foldFit is a fit of projection and scores on all folds but two, and the templates of these two.
type foldFit struct {
	table     *score.Table
	templates []engine.Template
}

// fitted fits projection and scores on all folds but two.
func (f *folded) fitted(but, butToo int) (*foldFit, error) {
	x := f.Extracted
	if f.size != nil {
		values, _, err := f.fit(but, butToo)
		if err != nil {
			return nil, err
		}
		x = f.projected(values)
	}
	var samples []accuracy.Sample
	var templates []engine.Template
	out := &foldFit{templates: make([]engine.Template, len(x.Samples))}
	for i, s := range x.Samples {
		if f.of[i] == but || f.of[i] == butToo {
			out.templates[i] = x.Templates[i]
		} else {
			samples, templates = append(samples, s), append(templates, x.Templates[i])
		}
	}
	scores, err := fitOn(samples, templates)
	if err != nil {
		return nil, err
	}
	out.table, err = scores.table()
	return out, err
}

// compare fits scores on the folds of neither person, for each two folds.
func (f *folded) compare(ctx context.Context) (accuracy.Compare, error) {
	var fits [Folds][Folds]*foldFit
	for a := range Folds {
		for b := range a + 1 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			fit, err := f.fitted(a, b)
			if err != nil {
				return nil, err
			}
			fits[a][b], fits[b][a] = fit, fit
		}
	}
	return func(a, b int) int {
		fit := fits[f.of[a]][f.of[b]]
		return fit.table.Score(score.Dot(fit.templates[a], fit.templates[b]))
	}, nil
}
