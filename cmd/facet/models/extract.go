package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"facet/cmd/facet/npz"
	"facet/cmd/facet/photos"
	"facet/engine"
	"facet/engine/imaging"
	"facet/engine/models"
)

// labVersion is the version of the file that Extract writes (docs/formats/lab.md).
const labVersion = 1

// Kinds of detections that are no upright face of a photograph or a spoilt copy.
const (
	kindTurned   = "turned"
	kindShuffled = "shuffled"
)

// Extraction says what to measure for facet-lab.
type Extraction struct {
	Source
	// Images is a folder with a folder of photographs for each person.
	Images string
	// File is the file to write. It must not exist.
	File string
	// Faces is the value of --faces: which face of several is taken.
	Faces string
	// OnlyRates leaves out what only a calibration needs.
	OnlyRates bool
	// Out gets the result. Progress, if it is a terminal, gets the progress.
	Out      io.Writer
	Progress *os.File
}

// lab is the content of the file.
type lab struct {
	pack *models.Pack
	// manifest is the text of the pack's manifest, whose SHA-256 is the pack's identity.
	manifest []byte
	faces    string
	folder   *photos.Folder
	reducer  reducer
	served   []photos.Taken
	// fit and seen are nil with OnlyRates. fit has the faces that the models find without the
	// evidence of the manifest.
	fit  []photos.Taken
	seen *specimens
}

// Extract runs the pack on the photographs and writes what it measured.
func (x Extraction) Extract(ctx context.Context) error {
	if err := x.vacant(); err != nil {
		return err
	}
	folder, err := photos.Read(ctx, x.Images)
	if err != nil {
		return err
	}
	l := &lab{faces: x.Faces, folder: folder}
	if l.pack, err = x.Read(); err != nil {
		return err
	}
	if l.manifest, err = os.ReadFile(filepath.Join(l.pack.Dir(), models.ManifestName)); err != nil { // Read has bounded it
		return err
	}
	if l.reducer, err = x.reducer(l.pack); err != nil {
		return err
	}
	choice, _ := photos.ChoiceOf(x.Faces) // checked with the flags
	if err := x.run(func(*models.Manifest) {}, func(e *engine.Engine) error {
		l.served, err = photos.Extract(ctx, e, folder.Photos, choice, x.Progress)
		return err
	}); err != nil {
		return err
	}
	if !x.OnlyRates {
		if err := x.run(unfit, func(e *engine.Engine) error { return l.measure(ctx, e, x.Progress) }); err != nil {
			return err
		}
	}
	if err := x.save(l.write); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(x.File), err)
	}
	return x.print(l)
}

// vacant returns an error if the file exists, or can't be made.
func (x Extraction) vacant() error {
	_, err := os.Lstat(x.File)
	if err == nil {
		return fmt.Errorf("%s exists: name another file, or remove it first", x.File)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if info, err := os.Stat(filepath.Dir(x.File)); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no folder %s", filepath.Dir(x.File))
	}
	return nil
}

// unfit takes out of a manifest what a calibration fits, so that a fit does not depend on an earlier one.
func unfit(m *models.Manifest) { m.Detector.MinNorm, m.OwnEvidence = 0, nil }

// run calls do with an engine whose templates have the values of both embedders, if there are two.
func (x Extraction) run(change func(*models.Manifest), do func(*engine.Engine) error) error {
	e, err := x.openToFit(change)
	if err != nil {
		return err
	}
	defer e.Close()
	return do(e)
}

// measure finds the faces and the specimens of a calibration.
func (l *lab) measure(ctx context.Context, e *engine.Engine, screen *os.File) (err error) {
	if l.fit, err = photos.Extract(ctx, e, l.folder.Photos, photos.Choice{Middle: true}, screen); err != nil {
		return err
	}
	l.seen, err = measure(ctx, e, l.folder.Photos, l.fit, screen)
	return err
}

// reducer makes templates of the values of both embedders.
type reducer struct {
	size   *models.Projection // nil for a pack with one embedder
	values []float32          // nil if the pack has no usable projection
}

// reducer returns the reducer of a pack. A pack whose projection is not fitted yet has none.
func (x Extraction) reducer(pack *models.Pack) (reducer, error) {
	if pack.Manifest.Joined == nil {
		return reducer{}, nil
	}
	r := reducer{size: &pack.Manifest.Joined.Projection}
	whole, err := models.OpenToLoad(pack.Dir())
	if err == nil {
		r.values, err = whole.Projection()
	}
	if err != nil {
		_, err = fmt.Fprintf(x.Out, "the pack's projection can't be used (%v): the file has the values of both embedders only, for facet-lab calibrate --projection\n", err)
	}
	return r, err
}

// put writes templates, and with two embedders also the values of both. A photograph without a face
// has a row of zeros.
func (r reducer) put(w *npz.Writer, prefix string, templates []engine.Template, m *models.Manifest) {
	dim := m.Embedder.Dim
	if r.size != nil {
		npz.Put(w, prefix+"both", rows(templates, r.size.Cols), len(templates), r.size.Cols)
		if dim = r.size.Rows; r.values == nil {
			dim = 0
		}
		reduced := make([]engine.Template, len(templates))
		for i, t := range templates {
			if t != nil && dim > 0 {
				reduced[i] = unit(r.size.Apply(r.values, t))
			}
		}
		templates = reduced
	}
	npz.Put(w, prefix+"template", rows(templates, dim), len(templates), dim)
}

// rows returns the templates one behind the other.
func rows(templates []engine.Template, dim int) []float32 {
	out := make([]float32, len(templates)*dim)
	for i, t := range templates {
		copy(out[i*dim:][:dim], t)
	}
	return out
}

// write writes all arrays.
func (l *lab) write(out io.Writer) error {
	w := npz.New(out)
	m := l.pack.Manifest
	npz.Put(w, "version", []int32{labVersion})
	npz.Put(w, "manifest", l.manifest, len(l.manifest))
	names := make([]string, 0, len(engine.FeatureNames()))
	for _, f := range engine.FeatureNames() {
		names = append(names, string(f))
	}
	w.PutTexts("features", names)
	w.PutTexts("faces", []string{l.faces})
	w.PutTexts("decoder", []string{imaging.JPEGDecoder()})
	w.PutTexts("persons", l.folder.Persons)
	n := len(l.folder.Photos)
	persons, files := make([]int32, n), make([]string, n)
	for i, p := range l.folder.Photos {
		persons[i], files[i] = int32(p.Person), filepath.Base(p.File)
	}
	npz.Put(w, "person", persons, n)
	w.PutTexts("file", files)
	l.writeTaken(w)
	l.reducer.put(w, "", templatesOf(l.served), m)
	if l.fit != nil {
		w.PutTexts("fit_outcome", outcomes(l.fit))
		l.reducer.put(w, "fit_", templatesOf(l.fit), m)
		l.writeSeen(w)
	}
	return w.Close()
}

// templatesOf returns the templates of all faces.
func templatesOf(list []photos.Taken) []engine.Template {
	templates := make([]engine.Template, len(list))
	for i, t := range list {
		templates[i] = t.Face.Template
	}
	return templates
}

func outcomes(list []photos.Taken) []string {
	texts := make([]string, len(list))
	for i, t := range list {
		texts[i] = string(t.Outcome)
	}
	return texts
}

// writeTaken writes what the pack measured of each photograph.
func (l *lab) writeTaken(w *npz.Writer) {
	n := len(l.served)
	chosen, aside, quality := make([]bool, n), make([]bool, n), make([]float32, n)
	defects, features := make([]string, n), make([]float64, 0, n*len(engine.Features{}))
	for i := range l.served {
		t := &l.served[i]
		chosen[i], aside[i], quality[i] = t.Chosen, t.Aside, t.Face.Attributes.Quality
		features = append(features, t.Face.Features[:]...)
		var list []string
		for _, d := range t.Face.Defects {
			list = append(list, string(d))
		}
		defects[i] = strings.Join(list, ",")
	}
	w.PutTexts("outcome", outcomes(l.served))
	npz.Put(w, "chosen", chosen, n)
	npz.Put(w, "aside", aside, n)
	npz.Put(w, "quality", quality, n)
	w.PutTexts("defects", defects)
	npz.Put(w, "feature", features, n, len(engine.Features{}))
}

// writeSeen writes the detections that evidence, least norm and quality are fitted to.
func (l *lab) writeSeen(w *npz.Writer) {
	var seen []specimen
	seen = append(seen, l.seen.faces...)
	for _, s := range l.seen.turned {
		seen = append(seen, specimen{Sighting: s, kind: kindTurned, photo: -1})
	}
	for _, s := range l.seen.shuffled {
		seen = append(seen, specimen{Sighting: s, kind: kindShuffled, photo: -1})
	}
	n := len(seen)
	photo, kinds, templates := make([]int32, n), make([]string, n), make([]engine.Template, n)
	var looks, upright, features []float64
	for i, s := range seen {
		photo[i], kinds[i], templates[i] = int32(s.photo), s.kind, s.Template
		looks = append(looks, s.Looks[:]...)
		upright = append(upright, s.Upright.Doubt, s.Upright.Eyes, s.Upright.EyesBelow, s.Upright.Odds)
		for _, f := range engine.FeatureNames() {
			features = append(features, s.Features[f])
		}
	}
	npz.Put(w, "seen_photo", photo, n)
	w.PutTexts("seen_kind", kinds)
	l.reducer.put(w, "seen_", templates, l.pack.Manifest)
	npz.Put(w, "seen_looks", looks, n, 2)
	npz.Put(w, "seen_upright", upright, n, 4)
	npz.Put(w, "seen_feature", features, n, len(engine.Features{}))
}

// unit divides a template by its length.
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

// save writes the file, which only its owner may read, under another name and renames it.
func (x Extraction) save(write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(x.File), ".facet-*.part") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = x.vacant()
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), x.File)
}

// print prints what was written, and what to take care of.
func (x Extraction) print(l *lab) error {
	n := make(map[photos.Outcome]int)
	for _, t := range l.served {
		n[t.Outcome]++
	}
	fmt.Fprintf(x.Out, "%d photographs of %d persons: %d with a face, %d without one, %d no image, %d with several faces\n",
		len(l.served), len(l.folder.Persons), n[photos.Acquired], n[photos.Faceless], n[photos.Unreadable], n[photos.Several])
	if l.seen != nil {
		fmt.Fprintf(x.Out, "for calibrate: %d faces and spoilt copies, %d detections of the wrong way up, %d on shuffled copies\n",
			len(l.seen.faces), len(l.seen.turned), len(l.seen.shuffled))
	}
	_, err := fmt.Fprintf(x.Out, "written to %s\nwarning: this file contains biometric data. Whoever reads it can recognise these persons: keep it as you keep the photographs.\n", x.File)
	return err
}
