package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"facet/cmd/facet/photos"
	"facet/engine"
	"facet/engine/accuracy"
	"facet/engine/models"
	"facet/engine/score"
)

// anchors are the scores with a fixed false match rate.
var anchors = []struct {
	score int
	fmr   float64
}{{4000, 1e-2}, {5000, 1e-3}, {6000, 1e-4}, {7000, 1e-5}, {8000, 1e-6}}

const (
	stated7000 = 1e-5
	splitSeed  = 2382
	// personsMin is the least number of persons for a fit.
	personsMin = 100
	// manifestBytesMax is the most bytes of a manifest.
	manifestBytesMax = 1 << 20
)

// Calibration says what to fit.
type Calibration struct {
	Source
	// Images is a folder with a folder of photographs for each person.
	Images string
	// Dataset describes the photographs in words.
	Dataset string
	// Write is a manifest to write the fits into, and the projection beside it; "" for none.
	Write string
	// Out gets the result. Progress, if it is a terminal, gets the progress.
	Out      io.Writer
	Progress *os.File
}

// fit is one fit of the anchors' cosines.
type fit struct {
	cosines []float64
	tail    accuracy.Tail
	pairs   int64
	persons int
}

// Calibrate fits the map from cosines to scores on the photographs of one half of
// the persons, and reports its false match rates on those of the other half. It
// does the same with the halves exchanged, and then fits the map on all
// photographs. It fits evidence, least norm and quality to some of them and to
// spoilt copies.
func (c Calibration) Calibrate(ctx context.Context) error {
	folder, err := c.folder(ctx)
	if err != nil {
		return err
	}
	e, err := c.open(unfit)
	if err != nil {
		return err
	}
	defer e.Close()
	x, err := photos.Extract(ctx, e, folder.Photos, photos.Choice{Middle: true}, c.Progress)
	if err != nil {
		return err
	}
	measured, err := c.calibrate(ctx, x, len(folder.Persons))
	if err != nil {
		return err
	}
	s, err := measure(ctx, e, folder.Photos, x, c.Progress)
	if err != nil {
		return err
	}
	if err := c.faces(s, measured); err != nil {
		return err
	}
	return c.save(measured)
}

// folder lists the photographs.
func (c Calibration) folder(ctx context.Context) (*photos.Folder, error) {
	folder, err := photos.Read(ctx, c.Images)
	if err == nil && len(folder.Persons) < personsMin {
		err = fmt.Errorf("%d persons are too few for a fit: it needs %d", len(folder.Persons), personsMin)
	}
	return folder, err
}

// unfit takes away what an earlier fit put into the manifest and what finds faces, so that a fit
// depends on the models and the photographs alone.
func unfit(m *models.Manifest) { m.Detector.MinNorm, m.OwnEvidence = 0, nil }

// calibrate fits the map to the templates x of the given number of persons.
func (c Calibration) calibrate(ctx context.Context, x *photos.Extracted, persons int) (*models.Fit, error) {
	all, err := fitOn(x.Samples, x.Templates)
	if err != nil {
		return nil, err
	}
	subjects, err := fitSubjects(x.Samples, x.Templates, all)
	if err != nil {
		return nil, err
	}
	held, rule, err := crossTest(ctx, x, persons)
	if err != nil {
		return nil, err
	}
	if err := c.print(all, held); err != nil {
		return nil, err
	}
	if err := rule.print(c.Out); err != nil {
		return nil, err
	}
	return &models.Fit{
		Calibration: &models.Calibration{
			FMR7000: stated7000, Data: c.data(x, all, held), Points: all.points(), Subjects: subjects.calibrations(rule),
		},
		Spectrum: spectrumOf(x),
	}, nil
}

// save writes the fit into the manifest, if one is named.
func (c Calibration) save(measured *models.Fit) error {
	if c.Write == "" {
		return nil
	}
	if err := write(c.Write, *measured); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.Out, "\nwritten to %s; the pack's identity has changed\n", filepath.Base(c.Write))
	return err
}

// fitOn fits the anchors on samples.
func fitOn(samples []accuracy.Sample, templates []engine.Template) (*fit, error) {
	cosines := accuracy.NonMatedCosines(samples, func(a, b int) float64 {
		return float64(score.Dot(templates[a], templates[b]))
	})
	rates := make([]float64, len(anchors))
	for i, a := range anchors {
		rates[i] = a.fmr
	}
	f := &fit{pairs: cosines.Pairs}
	var err error
	if f.cosines, f.tail, err = cosines.CosinesAt(rates); err != nil {
		return nil, fmt.Errorf("fit: %w", err)
	}
	persons := make(map[int]bool)
	for _, s := range samples {
		persons[s.Person] = persons[s.Person] || s.Acquired
	}
	for _, acquired := range persons {
		if acquired {
			f.persons++
		}
	}
	_, err = f.table()
	return f, err
}

// points returns the points for a manifest: the anchors between no likeness and
// identity.
func (f *fit) points() []models.CalibrationPoint {
	const margin = .1
	round := func(cosine float64) float64 { return math.Round(cosine*1e4) / 1e4 }
	points := []models.CalibrationPoint{{Cosine: -1}, {Cosine: round(min(0, f.cosines[0]-margin))}}
	for i, a := range anchors {
		points = append(points, models.CalibrationPoint{Cosine: round(f.cosines[i]), Score: a.score})
	}
	return append(points, models.CalibrationPoint{Cosine: models.SameImageCosine, Score: models.MaxScore},
		models.CalibrationPoint{Cosine: 1, Score: models.MaxScore})
}

func (f *fit) table() (*score.Table, error) {
	var points []score.Point
	for _, p := range f.points() {
		points = append(points, score.Point(p))
	}
	t, err := score.NewTable(points)
	if err != nil {
		return nil, fmt.Errorf("the fit makes no usable scores: %w", err)
	}
	return t, nil
}

// heldOut is a fit on one half of the persons, with its rates on the other half.
type heldOut struct {
	*fit
	*accuracy.Verification
}

// crossTest fits on either half of the persons and tests on the other. The rule's rates are of both
// halves together.
func crossTest(ctx context.Context, x *photos.Extracted, persons int) ([2]heldOut, *ruleTest, error) {
	var half [2]struct {
		samples   []accuracy.Sample
		templates []engine.Template
	}
	order := rand.New(rand.NewPCG(splitSeed, 0)).Perm(persons)
	for i, s := range x.Samples {
		h := &half[order[s.Person]%2]
		s.Person = order[s.Person] / 2
		h.samples = append(h.samples, s)
		h.templates = append(h.templates, x.Templates[i])
	}
	var ask accuracy.Ask
	for _, a := range anchors {
		ask.Thresholds = append(ask.Thresholds, a.score)
	}
	var out [2]heldOut
	rule := new(ruleTest)
	for i, from := range half {
		f, err := fitOn(from.samples, from.templates)
		if err != nil {
			return out, nil, err
		}
		table, err := f.table()
		if err != nil {
			return out, nil, err
		}
		on := half[1-i]
		subjects, err := fitSubjects(from.samples, from.templates, f)
		if err != nil {
			return out, nil, err
		}
		with, err := subjects.with(table)
		if err != nil {
			return out, nil, err
		}
		rule.test(with, on.samples, on.templates)
		evidence, err := accuracy.CompareAll(ctx, on.samples, func(a, b int) int {
			return table.Score(score.Dot(on.templates[a], on.templates[b]))
		})
		if err != nil {
			return out, nil, fmt.Errorf("test the fit: %w", err)
		}
		out[i] = heldOut{f, evidence.Verify(ask)}
	}
	return out, rule, nil
}

func (c Calibration) print(all *fit, held [2]heldOut) error {
	fmt.Fprintf(c.Out, "fitted on %d persons, %d non-mated pairs; tail from cosine %.4f on: shape %.3f, scale %.4f\n\n",
		all.persons, all.pairs, all.tail.Cosine, all.tail.Shape, all.tail.Scale)
	tabs := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tabs, "score\tFMR\tcosine\tfitted on half A\tFMR on half B [95 %]\tfitted on half B\tFMR on half A [95 %]")
	for i, a := range anchors {
		fmt.Fprintf(tabs, "%d\t%.0e\t%.4f\t%.4f\t%s\t%.4f\t%s\n", a.score, a.fmr, all.cosines[i],
			held[0].cosines[i], rate(held[0].At[i].FMR), held[1].cosines[i], rate(held[1].At[i].FMR))
	}
	return tabs.Flush()
}

func rate(r accuracy.Rate) string { return fmt.Sprintf("%v, %d pairs", r, r.Events) }

// data returns the text in the manifest that describes the data behind the points.
func (c Calibration) data(x *photos.Extracted, all *fit, held [2]heldOut) string {
	var tests []string
	for _, h := range held {
		for i, a := range anchors {
			if a.score == 7000 {
				tests = append(tests, rate(h.At[i].FMR))
			}
		}
	}
	return fmt.Sprintf("%s: %d of %d photographs with a face, %d persons, this pack and pipeline, %d non-mated pairs, each pair of persons with the same weight. "+
		"Scores 4000 to 8000 stand for false match rates of 1e-2 to 1e-6: to 1e-3 counted, beyond by a generalised Pareto distribution fitted to the most alike 1e-3 "+
		"(probability-weighted moments; shape %.3f). Tested by fits on one half of the persons: on the other half 7000 has the FMR %s (all pairs with the same weight). "+
		"Written by facet models calibrate.",
		c.name(), len(x.Samples)-x.Failed(), len(x.Samples), all.persons, all.pairs, all.tail.Shape, strings.Join(tests, " and "))
}

func (c Calibration) name() string {
	if c.Dataset == "" {
		return "photographs of persons"
	}
	return c.Dataset
}

// spectrumOf returns the share of the squared norm that each value of the templates
// has.
func spectrumOf(x *photos.Extracted) []float64 {
	var shares []float64
	n := 0
	for i, s := range x.Samples {
		if !s.Acquired {
			continue
		}
		t := x.Templates[i]
		if shares == nil {
			shares = make([]float64, len(t))
		}
		for j, v := range t {
			shares[j] += float64(v) * float64(v)
		}
		n++
	}
	for i := range shares {
		shares[i] = math.Round(shares[i]/float64(n)*1e5) / 1e5
	}
	return shares
}

// write writes the measurements into a manifest file, by rename. Every other byte
// of the file stays.
func write(file string, measured models.Fit) error {
	old, err := readBounded(file)
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	text, err := models.Refit(old, measured)
	if err != nil {
		return err
	}
	next := file + ".new"
	if err := os.WriteFile(next, text, 0o644); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return os.Rename(next, file)
}

func readBounded(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, manifestBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(data) > manifestBytesMax {
		return nil, errors.New("the file is too large for a manifest")
	}
	return data, nil
}
