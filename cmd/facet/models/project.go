package models

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"text/tabwriter"

	"facet/cmd/facet/photos"
	"facet/engine"
	"facet/engine/accuracy"
	"facet/engine/models"
	"facet/engine/score"
	"facet/internal/svd"
)

// Projecting says on what to fit a projection (models.Joined).
type Projecting struct {
	Source
	// Images is a folder with a folder of photographs for each person.
	Images string
	// Dataset describes the photographs in words.
	Dataset string
	// Write is a manifest to write the projection's hash, the points and the spectrum into, and
	// the projection beside it; "" for none.
	Write string
	// Out gets the result. Progress, if it is a terminal, gets the progress.
	Out      io.Writer
	Progress *os.File
}

// projectedRates are the false match rates at which a fitted projection is tested.
var projectedRates = []float64{1e-3, 1e-4, 1e-5}

// Project fits the projection of a pack with two embedders to photographs of persons: the
// principal axes of both embedders' values, about zero, so that the cosines of templates are
// nearly those of the values. It tests projection and calibration on persons that were not fitted.
// Then it calibrates the pack with the projection, as Calibrate does.
func (p Projecting) Project(ctx context.Context) error {
	folder, err := photos.Read(ctx, p.Images)
	if err != nil {
		return err
	}
	if len(folder.Persons) < personsMin {
		return fmt.Errorf("%d persons are too few to fit a projection: it needs %d", len(folder.Persons), personsMin)
	}
	dir, err := Choose(p.Pack, p.Identity)
	if err != nil {
		return err
	}
	pack, err := Read(dir)
	if err != nil {
		return err
	}
	if pack.Manifest.Joined == nil {
		return fmt.Errorf("pack %s has one embedder, and so no projection", pack.Manifest.Title())
	}
	e, err := p.OpenWhole(dir)
	if err != nil {
		return err
	}
	defer e.Close()
	x, err := photos.Extract(ctx, e, folder.Photos, photos.Choice{Middle: true}, p.Progress)
	if err != nil {
		return err
	}
	return p.project(ctx, x, len(folder.Persons), pack.Manifest.Joined.Projection)
}

// project fits the projection to the templates x of the given number of persons.
func (p Projecting) project(ctx context.Context, x *photos.Extracted, persons int, size models.Projection) error {
	f := newFolds(x, persons)
	values, kept, err := f.fit(size, none, none)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "%d values projected to %d, which have %.1f %% of the squared norm; fitted on %d photographs of %d persons\n\n",
		size.Cols, size.Rows, 100*kept, len(x.Samples)-x.Failed(), persons)
	tested, err := f.test(ctx, size)
	if err != nil {
		return err
	}
	if err := p.print(tested); err != nil {
		return err
	}
	if p.Write != "" {
		if err := p.write(size.Encode(values)); err != nil {
			return err
		}
	}
	fmt.Fprintln(p.Out)
	c := Calibration{Dataset: p.Dataset, Write: p.Write, Out: p.Out}
	measured, err := c.calibrate(ctx, f.projected(size, values), persons)
	if err != nil {
		return err
	}
	return c.save(measured)
}

func (p Projecting) print(t *tested) error {
	fmt.Fprintf(p.Out, "on persons that were not fitted, %d folds: EER %v; %d mated pairs, %d non-mated ones, %d of them within a fold\n",
		Folds, t.all.EER, t.all.MatedPairs, t.all.NonMatedPairs, t.withinPairs)
	tabs := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tabs, "FMR at most\tscore\tFMR [95 %]\tFNMR [95 %]\twithin folds\tFNMR")
	for _, at := range t.all.Targets {
		within := t.within.ThresholdFor(at.Target)
		fmt.Fprintf(tabs, "%.0e\t%d\t%s\t%v\t%d\t%s\n", at.Target, at.Threshold, rate(at.FMR), at.FNMR, within, accuracy.Format(t.within.FNMR[within]))
	}
	return tabs.Flush()
}

// projected returns the photographs with the templates that the projection makes.
func (f *folded) projected(size models.Projection, values []float32) *photos.Extracted {
	out := *f.Extracted
	out.Templates = make([]engine.Template, len(f.Templates))
	for i, t := range f.Templates {
		if t != nil {
			out.Templates[i] = unit(size.Apply(values, t))
		}
	}
	return &out
}

// write writes the projection and its hash.
func (p Projecting) write(file []byte) error {
	manifest, err := readBounded(p.Write)
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	text, err := models.RefitProjection(manifest, file)
	if err != nil {
		return err
	}
	m, err := models.Parse(text)
	if err != nil {
		return err
	}
	f, _ := m.File(models.RoleProjection)
	name := filepath.Join(filepath.Dir(p.Write), f.Name)
	for _, out := range []struct {
		name string
		data []byte
	}{{name, file}, {p.Write, text}} {
		next := out.name + ".new"
		if err := os.WriteFile(next, out.data, 0o644); err != nil {
			return fmt.Errorf("write projection: %w", err)
		}
		if err := os.Rename(next, out.name); err != nil {
			return fmt.Errorf("write projection: %w", err)
		}
	}
	_, err = fmt.Fprintf(p.Out, "\nwritten to %s and %s; the pack's templates are now those of another model\n", f.Name, filepath.Base(p.Write))
	return err
}

// folded has templates of persons in folds.
type folded struct {
	*photos.Extracted
	of      []int              // fold of each sample
	moments [Folds][][]float64 // sum of the outer products of each fold's templates
	count   [Folds]int
}

const none = -1 // no fold

func newFolds(x *photos.Extracted, persons int) *folded {
	f := &folded{Extracted: x, of: make([]int, len(x.Samples))}
	part := foldsOf(persons)
	for i, s := range x.Samples {
		f.of[i] = part[s.Person]
		if s.Acquired {
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
func (f *folded) fit(size models.Projection, but, butToo int) (values []float32, kept float64, err error) {
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

// foldFit is a fit of projection and scores on all folds but two, and the templates of these two.
type foldFit struct {
	table     *score.Table
	templates []engine.Template
}

// fitted fits projection and scores on all folds but two.
func (f *folded) fitted(size models.Projection, but, butToo int) (*foldFit, error) {
	values, _, err := f.fit(size, but, butToo)
	if err != nil {
		return nil, err
	}
	var samples []accuracy.Sample
	var templates []engine.Template
	out := &foldFit{templates: make([]engine.Template, len(f.Samples))}
	for i, s := range f.Samples {
		if !s.Acquired {
			continue
		}
		t := unit(size.Apply(values, f.Templates[i]))
		if f.of[i] == but || f.of[i] == butToo {
			out.templates[i] = t
		} else {
			samples, templates = append(samples, s), append(templates, t)
		}
	}
	scores, err := fitOn(samples, templates)
	if err != nil {
		return nil, err
	}
	out.table, err = scores.table()
	return out, err
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

// tested has the rates of fits on persons that were not fitted.
type tested struct {
	// all are all pairs: a fit on the folds of neither person decides.
	all *accuracy.Verification
	// within are the pairs within a fold, which a fit on the four others decides.
	within      *accuracy.Curve
	withinPairs int64 // non-mated
}

// test compares all photographs by fits on other persons.
func (f *folded) test(ctx context.Context, size models.Projection) (*tested, error) {
	var fits [Folds][Folds]*foldFit
	for a := range Folds {
		for b := range a + 1 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			fit, err := f.fitted(size, a, b)
			if err != nil {
				return nil, err
			}
			fits[a][b], fits[b][a] = fit, fit
		}
	}
	compare := func(a, b int) int {
		fit := fits[f.of[a]][f.of[b]]
		return fit.table.Score(score.Dot(fit.templates[a], fit.templates[b]))
	}
	evidence, err := accuracy.CompareAll(ctx, f.Samples, compare)
	if err != nil {
		return nil, fmt.Errorf("test the fit: %w", err)
	}
	out := &tested{all: evidence.Verify(accuracy.Ask{FMR: projectedRates})}
	out.within, out.withinPairs, err = f.within(ctx, compare)
	return out, err
}

// within compares the photographs of each fold.
func (f *folded) within(ctx context.Context, compare accuracy.Compare) (c *accuracy.Curve, nonMated int64, err error) {
	var mated, others accuracy.Histogram
	for fold := range Folds {
		var places []int
		var samples []accuracy.Sample
		for i, s := range f.Samples {
			if f.of[i] == fold {
				places, samples = append(places, i), append(samples, s)
			}
		}
		evidence, err := accuracy.CompareAll(ctx, samples, func(a, b int) int { return compare(places[a], places[b]) })
		if err != nil {
			return nil, 0, fmt.Errorf("test the fit: %w", err)
		}
		for at := range mated {
			mated[at] += evidence.Mated[at]
			others[at] += evidence.NonMated[at]
		}
	}
	return accuracy.CurveOf(&mated, &others), others.Total(), nil
}
