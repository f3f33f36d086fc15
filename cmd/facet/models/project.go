package models

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"facet/cmd/facet/photos"
	"facet/engine/accuracy"
	"facet/engine/models"
)

// projectedRates are the false match rates at which a fitted projection is tested.
var projectedRates = []float64{1e-3, 1e-4, 1e-5}

// Project fits the projection of a pack with two embedders to photographs of persons: the
// principal axes of both embedders' values, about zero, so that the cosines of templates are
// nearly those of the values. It tests projection and calibration on persons that were not fitted.
// Then it calibrates the pack with the projection, as Calibrate does.
func (c Calibration) Project(ctx context.Context) error {
	folder, err := c.folder(ctx)
	if err != nil {
		return err
	}
	pack, err := c.Read()
	if err != nil {
		return err
	}
	if pack.Manifest.Joined == nil {
		return fmt.Errorf("pack %s has one embedder, and so no projection", pack.Manifest.Title())
	}
	e, size, err := c.OpenToFit()
	if err != nil {
		return err
	}
	defer e.Close()
	x, err := photos.Extract(ctx, e, folder.Photos, photos.Choice{Middle: true}, c.Progress)
	if err != nil {
		return err
	}
	return c.project(ctx, x, len(folder.Persons), *size)
}

// project fits the projection to the templates x of the given number of persons.
func (c Calibration) project(ctx context.Context, x *photos.Extracted, persons int, size models.Projection) error {
	f := newFolds(x, persons, &size)
	values, kept, err := f.fit(none, none)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%d values projected to %d, which have %.1f %% of the squared norm; fitted on %d photographs of %d persons\n\n",
		size.Cols, size.Rows, 100*kept, len(x.Samples)-x.Failed(), persons)
	tested, err := f.test(ctx)
	if err != nil {
		return err
	}
	if err := tested.print(c.Out); err != nil {
		return err
	}
	if c.Write != "" {
		if err := c.write(size.Encode(values)); err != nil {
			return err
		}
	}
	fmt.Fprintln(c.Out)
	measured, err := c.calibrate(ctx, f.projected(values), persons)
	if err != nil {
		return err
	}
	return c.save(measured)
}

func (t *tested) print(out io.Writer) error {
	fmt.Fprintf(out, "on persons that were not fitted, %d folds: EER %v; %d mated pairs, %d non-mated ones, %d of them within a fold\n",
		Folds, t.all.EER, t.all.MatedPairs, t.all.NonMatedPairs, t.withinPairs)
	tabs := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tabs, "FMR at most\tscore\tFMR [95 %]\tFNMR [95 %]\twithin folds\tFNMR")
	for _, at := range t.all.Targets {
		within := t.within.ThresholdFor(at.Target)
		fmt.Fprintf(tabs, "%.0e\t%d\t%s\t%v\t%d\t%s\n", at.Target, at.Threshold, rate(at.FMR), at.FNMR, within, accuracy.Format(t.within.FNMR[within]))
	}
	return tabs.Flush()
}

// write writes the projection and its hash.
func (c Calibration) write(file []byte) error {
	manifest, err := readBounded(c.Write)
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
	name := filepath.Join(filepath.Dir(c.Write), f.Name)
	for _, out := range []struct {
		name string
		data []byte
	}{{name, file}, {c.Write, text}} {
		next := out.name + ".new"
		if err := os.WriteFile(next, out.data, 0o644); err != nil {
			return fmt.Errorf("write projection: %w", err)
		}
		if err := os.Rename(next, out.name); err != nil {
			return fmt.Errorf("write projection: %w", err)
		}
	}
	_, err = fmt.Fprintf(c.Out, "\nwritten to %s and %s; the pack's templates are now those of another model\n", f.Name, filepath.Base(c.Write))
	return err
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
func (f *folded) test(ctx context.Context) (*tested, error) {
	compare, err := f.compare(ctx)
	if err != nil {
		return nil, err
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
