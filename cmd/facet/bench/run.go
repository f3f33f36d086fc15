package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	packs "facet/cmd/facet/models"
	"facet/cmd/facet/photos"
	"facet/engine"
	"facet/engine/accuracy"
	"facet/engine/imaging"
	"facet/engine/models"
	"facet/engine/score"
)

// PairsAll is given instead of the name of a list, for every pair of the folder's
// photographs.
const PairsAll = "all"

const listBytesMax = 64 << 20

// The thresholds, false match rates and gallery sizes of every report.
var (
	thresholds = []int{4000, 5000, 6000, 7000, 8000}
	targets    = []float64{1e-2, 1e-3, 1e-4, 1e-5, 1e-6}
	sizes      = []int{10, 100, 1000, 10_000, 0}
)

// stated is the score to which a pack's stated false match rate belongs.
const stated = 7000

// Config says what to measure.
type Config struct {
	Source packs.Source
	// Images is a folder with a folder of photographs for each person.
	Images string
	// Pairs is the file with a list of pairs, or PairsAll.
	Pairs string
	// Dataset describes the photographs in words. If it starts with LFW, a report
	// adds what is known of that data set.
	Dataset string
	// QualityMin is the least quality, 0 to 1, of an acquired photograph.
	QualityMin float64
	// CrossFit takes scores that were fitted on other persons than the compared ones
	// (models.CrossFitted) instead of the pack's.
	CrossFit bool
	// Groups is a CSV file with the groups of persons to measure apart, or "".
	Groups string
	// Photos is the number of photographs with which a person is enrolled (accuracy.Enrol). 0 is 1.
	Photos int
	// Wanted asks for advice on thresholds.
	Wanted Wanted
	// Faces says which face of several is taken: FacesMiddle, FacesRefuse or FacesDominant.
	Faces string
	// JSON, Plot (.svg) and Report (.md) are files to write, "" for none.
	JSON, Plot, Report string
	// Out gets the tables. Progress may be nil; if it is a terminal, it gets a line
	// with the progress.
	Out      io.Writer
	Progress *os.File
}

// The values of Config.Faces: the face nearest to the middle, and the rules of the service.
const (
	FacesMiddle   = photos.FacesMiddle
	FacesRefuse   = photos.FacesRefuse
	FacesDominant = photos.FacesDominant
)

func (c Config) choice() photos.Choice {
	choice, _ := photos.ChoiceOf(c.Faces) // checked with the flags
	choice.QualityMin = c.QualityMin
	return choice
}

// Document contains the measurements. It is the content of the JSON file.
type Document struct {
	Pack           Pack                     `json:"pack"`
	Data           Data                     `json:"data"`
	List           *List                    `json:"pairs,omitempty"`
	All            *accuracy.Verification   `json:"allPairs,omitempty"`
	Groups         []*accuracy.ByGroup      `json:"groups,omitempty"`
	Identification *accuracy.Identification `json:"identification,omitempty"`
	// Subjects is Identification in galleries with subjectTemplates. It is there if persons are
	// enrolled with several photographs.
	Subjects *accuracy.Identification `json:"identificationSubjectTemplates,omitempty"`
	// Advice is there if it was asked for.
	Advice *Advice `json:"advice,omitempty"`
	// EndToEnd is measured by the rules of the service only.
	EndToEnd *EndToEnd `json:"endToEnd,omitempty"`

	list, all *accuracy.Curve // for plots
}

// Pack names the measured models.
type Pack struct {
	Name    string  `json:"name"`
	Version string  `json:"version"`
	ID      string  `json:"id"`
	Dim     int     `json:"dim"`
	FMR7000 float64 `json:"statedFMR7000"`
	// JPEG names the decoder of JPEG images.
	JPEG string `json:"jpegDecoder"`

	manifest *models.Manifest
}

// Data describes the photographs that were measured.
type Data struct {
	Name    string `json:"name"`
	Persons int    `json:"persons"`
	Photos  int    `json:"photographs"`
	// FTA is the share of photographs that were not acquired. Faceless, Unreadable,
	// Poor and Several count them by reason.
	FTA        accuracy.Rate `json:"fta"`
	Faceless   int           `json:"withoutFace"`
	Unreadable int           `json:"noImage"`
	Poor       int           `json:"belowQualityMin"`
	Several    int           `json:"severalFaces"`
	// Chosen counts the photographs of several faces one of which was taken, and Aside those on
	// which another face than the taken one is nearer to the middle.
	Chosen     int     `json:"chosenOfSeveral"`
	Aside      int     `json:"notTheMiddleOne"`
	Faces      string  `json:"faces"`
	QualityMin float64 `json:"qualityMin"`
	// CrossFit is true if the scores are those of models.CrossFitted.
	CrossFit bool `json:"crossFit,omitzero"`
}

// List contains the result of a list of pairs.
type List struct {
	*accuracy.Verification
	Folds *accuracy.Folds `json:"folds,omitempty"`
}

// Accuracy measures verification, and for a report identification too.
func Accuracy(ctx context.Context, cfg Config) error {
	doc := new(Document)
	m, e, err := open(ctx, cfg, doc)
	if err != nil {
		return err
	}
	defer e.Close()
	if cfg.Pairs != PairsAll {
		if err := m.list(ctx, doc); err != nil {
			return err
		}
	}
	if cfg.Pairs == PairsAll || cfg.Report != "" {
		if err := m.all(ctx, doc); err != nil {
			return err
		}
	}
	if err := m.groups(ctx, cfg.Groups, doc); err != nil {
		return err
	}
	if cfg.Report != "" {
		if err := m.identify(ctx, cfg, doc); err != nil {
			return err
		}
	}
	return write(cfg, doc)
}

// Identify measures identification in galleries of all sizes that the folder allows.
func Identify(ctx context.Context, cfg Config) error {
	doc := new(Document)
	cfg.Pairs = PairsAll
	m, e, err := open(ctx, cfg, doc)
	if err != nil {
		return err
	}
	defer e.Close()
	// The expectation for N photographs follows from the result for one.
	if err := m.all(ctx, doc); err != nil {
		return err
	}
	if err := m.identify(ctx, cfg, doc); err != nil {
		return err
	}
	return write(cfg, doc)
}

// measured contains the data from which rates are computed.
type measured struct {
	persons   []string
	samples   []accuracy.Sample
	templates []engine.Template
	table     *score.Table
	compare   accuracy.Compare
	pairs     []accuracy.Pair // of the list, and their places in samples
	places    [][2]int
}

// open reads the folder and the list of pairs, extracts the faces, and sets doc's
// descriptions of pack and data. The caller closes the engine.
func open(ctx context.Context, cfg Config, doc *Document) (*measured, *engine.Engine, error) {
	f, err := photos.Read(ctx, cfg.Images)
	if err != nil {
		return nil, nil, err
	}
	m := new(measured)
	if cfg.Pairs != PairsAll {
		if m.pairs, err = readList(cfg.Pairs); err != nil {
			return nil, nil, err
		}
		if m.places, err = f.Resolve(m.pairs); err != nil {
			return nil, nil, err
		}
		if cfg.Report == "" && cfg.Groups == "" && !cfg.CrossFit {
			f.Keep(m.places)
		}
	}
	e, pack, size, err := cfg.open()
	if err != nil {
		return nil, nil, err
	}
	x, err := photos.Extract(ctx, e, f.Photos, cfg.choice(), cfg.Progress)
	if err != nil {
		e.Close()
		return nil, nil, err
	}
	m.persons, m.samples, m.templates, m.table = f.Persons, x.Samples, x.Templates, e.Table()
	m.compare = func(a, b int) int { return e.Compare(x.Templates[a], x.Templates[b]) }
	if cfg.CrossFit {
		if m.compare, err = packs.CrossFitted(ctx, x, len(f.Persons), size); err != nil {
			e.Close()
			return nil, nil, err
		}
	}
	manifest := pack.Manifest
	doc.Pack = Pack{
		Name: manifest.Title(), Version: manifest.Version, ID: pack.ID, Dim: manifest.Dim(),
		FMR7000: manifest.Calibration.FMR7000, JPEG: imaging.JPEGDecoder(), manifest: manifest,
	}
	doc.Data = Data{
		Name: cfg.Dataset, Persons: len(f.Persons), Photos: len(f.Photos),
		FTA:      accuracy.Share(int64(x.Failed()), int64(len(f.Photos))),
		Faceless: x.Faceless, Unreadable: x.Unreadable, Poor: x.Poor, Several: x.Several, Chosen: x.Chosen, Aside: x.Aside, Faces: cfg.Faces, QualityMin: cfg.QualityMin, CrossFit: cfg.CrossFit,
	}
	in := accuracy.Wilson(doc.Data.FTA.Events, doc.Data.FTA.Trials)
	doc.Data.FTA.Interval = &in
	return m, e, nil
}

// open opens the engine, to be fitted anew with CrossFit, and reads the pack's manifest.
func (c Config) open() (e *engine.Engine, pack *models.Pack, size *models.Projection, err error) {
	if pack, err = c.Source.Read(); err != nil {
		return nil, nil, nil, err
	}
	if c.CrossFit {
		e, size, err = c.Source.OpenToFit()
		return e, pack, size, err
	}
	e, err = c.Source.Open()
	return e, pack, nil, err
}

func readList(file string) ([]accuracy.Pair, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read list of pairs: %w", err)
	}
	defer f.Close()
	pairs, err := accuracy.ReadPairs(io.LimitReader(f, listBytesMax))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Base(file), err)
	}
	return pairs, nil
}

// ask leaves out false match rates for which there are too few pairs.
func ask(nonMated int64) accuracy.Ask {
	a := accuracy.Ask{Thresholds: thresholds, Discard: stated}
	for _, t := range targets {
		if t*float64(nonMated) >= accuracy.EventsMin {
			a.FMR = append(a.FMR, t)
		}
	}
	return a
}

func (m *measured) list(ctx context.Context, doc *Document) error {
	evidence, err := accuracy.ComparePairs(ctx, m.samples, m.places, m.compare)
	if err != nil {
		return fmt.Errorf("compare the list's pairs: %w", err)
	}
	doc.list = evidence.Curve()
	doc.List = &List{Verification: evidence.Verify(ask(evidence.NonMated.Total()))}
	decisions := make([]accuracy.Decision, len(m.pairs))
	for i, p := range m.pairs {
		d := accuracy.Decision{Fold: p.Fold, Mated: p.Mated(), Score: -1}
		if a, b := m.places[i][0], m.places[i][1]; m.samples[a].Acquired && m.samples[b].Acquired {
			d.Score = m.compare(a, b)
		}
		decisions[i] = d
	}
	doc.List.Folds = accuracy.CrossValidate(decisions)
	return nil
}

func (m *measured) all(ctx context.Context, doc *Document) error {
	evidence, err := accuracy.CompareAll(ctx, m.samples, m.compare)
	if err != nil {
		return fmt.Errorf("compare all photographs: %w", err)
	}
	doc.all = evidence.Curve()
	doc.All = evidence.Verify(ask(evidence.NonMated.Total()))
	return nil
}

func (m *measured) identify(ctx context.Context, cfg Config, doc *Document) error {
	enrolled := accuracy.Enrol(m.samples, cfg.Photos)
	best := m.compare.Best(enrolled)
	id, err := accuracy.Identify(ctx, m.samples, enrolled, best, sizes, thresholds)
	if err == nil && cfg.Photos > 1 {
		doc.Subjects, err = accuracy.Identify(ctx, m.samples, enrolled, m.subjects(enrolled, best), sizes, thresholds)
	}
	if err != nil {
		return fmt.Errorf("search galleries: %w", err)
	}
	doc.Identification = id
	if cfg.Wanted.Searches > 0 {
		if doc.Advice, err = m.advise(ctx, cfg, doc); err != nil {
			return err
		}
	}
	if doc.Data.Faces != FacesMiddle {
		doc.EndToEnd = m.endToEnd()
	}
	return nil
}

// write prints the tables and writes the files.
func write(cfg Config, doc *Document) error {
	if err := doc.print(cfg.Out); err != nil {
		return err
	}
	var errs []error
	if cfg.JSON != "" {
		text, err := json.MarshalIndent(doc, "", "  ")
		if err == nil {
			err = os.WriteFile(cfg.JSON, append(text, '\n'), 0o644)
		}
		errs = append(errs, wrap("write JSON", err))
	}
	if cfg.Plot != "" {
		errs = append(errs, wrap("write plot", plotDET(doc, cfg.Plot)))
	}
	if cfg.Report != "" {
		errs = append(errs, wrap("write report", report(cfg.Report, doc)))
	}
	return errors.Join(errs...)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
