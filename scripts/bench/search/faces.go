package search

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"facet/engine"
	"facet/engine/models"
	"facet/engine/score"
)

const (
	imageBytesMax = 32 << 20
	imagesMax     = 100_000
	// copyShare is the cosine of two copies of one original. A copy and its original
	// have a cosine of √copyShare.
	copyShare = .3
	// The noise of a copy is a sum of noiseFaces faces with random signs. With fewer
	// than originalsMin faces to choose from, the noise is random numbers with the
	// pack's spectrum, and random templates make up that number of originals. Otherwise
	// copies of a few originals would all be alike.
	noiseFaces, originalsMin = 32, 1000
	// One in heldPersons persons is left out of the gallery, for non-mated probes.
	heldPersons = 5
)

// faces are the templates of a folder of images, with one sub-folder or file for each
// person.
type faces struct {
	dim     int
	persons [][][]float32
	table   *score.Table
	points  []score.Point // of table
	basis   string        // file of the model's basis, empty if it has none
	cols    int           // of the basis
	// spectrum is the spectrum of the pack.
	spectrum []float64
}

// readFaces extracts the largest face of each image. It keeps the templates in the
// cache.
func readFaces(ctx context.Context, o options) (*faces, error) {
	e, err := o.files.Engine(1)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	f := &faces{dim: e.Dim(), table: e.Table(), spectrum: e.Spectrum()}
	for _, p := range e.Pack().Manifest.Calibration.Points {
		f.points = append(f.points, score.Point(p))
	}
	if b := e.Pack().Manifest.Embedder.Basis; b != nil {
		i := slices.IndexFunc(e.Pack().Manifest.Files, func(f models.File) bool { return f.Role == models.RoleBasis })
		f.basis, f.cols = filepath.Join(o.files.Pack(), e.Pack().Manifest.Files[i].Name), b.Cols
	}
	images, err := imagesIn(o.faces)
	if err != nil {
		return nil, err
	}
	names := fnv.New64a()
	for _, name := range images {
		_, _ = names.Write([]byte(name)) // of a hash: no error
	}
	cache := filepath.Join(o.dir, fmt.Sprintf("faces-%x.f32", names.Sum64()))
	templates, err := readFloats(cache)
	if err != nil || len(templates) != len(images)*f.dim {
		if templates, err = extract(ctx, e, images); err != nil {
			return nil, err
		}
		if err := os.WriteFile(cache, bytesOf(templates), 0o600); err != nil {
			return nil, err
		}
	}
	f.persons = byPerson(images, templates, f.dim)
	return f, nil
}

// imagesIn returns the images below a folder, in order.
func imagesIn(folder string) (images []string, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch strings.ToLower(filepath.Ext(path)) {
		case ".jpg", ".jpeg", ".png":
			images = append(images, path)
		}
		if len(images) > imagesMax {
			return fmt.Errorf("more than %d images", imagesMax)
		}
		return err
	})
	if err == nil && len(images) == 0 {
		err = errors.New("no images")
	}
	if err != nil {
		return nil, fmt.Errorf("images in %s: %w", folder, err)
	}
	return images, nil
}

// extract returns one template for each image, zeros for an image without a face.
func extract(ctx context.Context, e *engine.Engine, images []string) ([]float32, error) {
	templates := make([]float32, len(images)*e.Dim())
	for i, name := range images {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if info.Size() > imageBytesMax {
			continue
		}
		image, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		found, err := e.Extract(ctx, image)
		if err != nil && !errors.Is(err, engine.ErrImage) {
			return nil, fmt.Errorf("extract %s: %w", name, err)
		}
		if len(found) > 0 {
			copy(templates[i*e.Dim():], found[0].Template)
		}
	}
	return templates, nil
}

func byPerson(images []string, templates []float32, dim int) (persons [][][]float32) {
	last := ""
	for i, name := range images {
		t := templates[i*dim : (i+1)*dim]
		if score.Dot(t, t) < .5 {
			continue
		}
		if folder := filepath.Dir(name); folder != last || persons == nil {
			persons, last = append(persons, nil), folder
		}
		persons[len(persons)-1] = append(persons[len(persons)-1], t)
	}
	return persons
}

// real returns a set of templates of faces. The mated probes are other images of
// persons in the gallery; the non-mated probes are images of persons who are not. To
// reach the number of rows, it adds copies of real templates, turned towards noise that
// looks like faces.
func (f *faces) real(n counts) (*set, error) {
	s := &set{name: "real", dim: f.dim, spectrum: f.spectrum, least: scores, table: func() (*score.Table, error) { return f.table, nil }}
	var gallery [][]float32
	for i, images := range f.persons {
		switch {
		case i%heldPersons == 0:
			s.other = append(s.other, images[0]...)
		case len(images) > 1:
			s.mated = append(s.mated, images[0]...)
			gallery = append(gallery, images[1:]...)
		default:
			gallery = append(gallery, images...)
		}
	}
	if len(s.mated) == 0 || len(s.other) == 0 {
		return nil, fmt.Errorf("%d persons with faces, of whom none has two images or none is held out: too few", len(f.persons))
	}
	s.mated, s.other = s.mated[:min(len(s.mated), n.probes*f.dim)], s.other[:min(len(s.other), n.probes*f.dim)]
	r := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the same templates in each run
	noise := f.noise(gallery)
	originals := slices.Clone(gallery)
	for len(originals) < originalsMin {
		originals = append(originals, narrow(noise(r)))
	}
	s.rows = make([]float32, 0, n.rows*f.dim)
	for i := range n.rows {
		t := originals[i%len(originals)]
		if i >= len(originals) {
			t = turned(r, t, noise)
		}
		s.rows = append(s.rows, t...)
	}
	return s, nil
}

// noise returns a function that makes unit vectors distributed as faces are: mixtures
// of faces, or random vectors if there are few faces.
func (f *faces) noise(gallery [][]float32) func(*rand.Rand) []float64 {
	if len(gallery) < originalsMin && f.spectrum != nil {
		weights := make([]float64, f.dim)
		for i, share := range f.spectrum {
			weights[i] = math.Sqrt(share)
		}
		return func(r *rand.Rand) []float64 { return gauss(r, weights) }
	}
	return func(r *rand.Rand) []float64 {
		v := make([]float64, f.dim)
		for range noiseFaces {
			sign := float64(1 - 2*r.IntN(2))
			for i, x := range gallery[r.IntN(len(gallery))] {
				v[i] += sign * float64(x)
			}
		}
		return normalise(v)
	}
}

func turned(r *rand.Rand, t []float32, noise func(*rand.Rand) []float64) []float32 {
	original := make([]float64, len(t))
	for i, x := range t {
		original[i] = float64(x)
	}
	return narrow(mix(noise(r), original, math.Sqrt(copyShare)))
}

func narrow(v []float64) []float32 {
	t := make([]float32, len(v))
	for i, x := range v {
		t[i] = float32(x)
	}
	return t
}

// readFloats reads a file of little-endian float32.
func readFloats(name string) ([]float32, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v, nil
}
