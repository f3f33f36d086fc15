package search

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"

	"facet/engine/score"
	"facet/scripts/bench/cluster"
)

// Real is a gallery of templates of faces, and probes of persons who are in it and who are not.
type Real struct {
	Dim                int
	Rows, Mated, Other []float32
	Table              *score.Table
	Points             []score.Point // of Table
	Spectrum           []float64
}

// MakeReal makes a gallery of so many rows, and so many probes of each kind, from a folder of face
// images; empty means set-up's photos. dir keeps the templates of the images.
func MakeReal(ctx context.Context, files cluster.Files, folder, dir string, rows, probes int) (*Real, error) {
	if folder == "" {
		folder = filepath.Join(files.Assets, "photos")
	}
	f, err := readFaces(ctx, options{files: files, faces: folder, dir: dir})
	if err != nil {
		return nil, err
	}
	s, err := f.real(counts{rows, probes})
	if err != nil {
		return nil, err
	}
	r := &Real{s.dim, s.rows, s.mated, s.other, f.table, f.points, f.spectrum}
	r.pad(f, probes)
	return r, nil
}

// pad makes further probes as real makes further rows, up to n of each kind.
func (r *Real) pad(f *faces, n int) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same templates in each run
	var images [][]float32
	for _, of := range f.persons {
		images = append(images, of...)
	}
	noise := f.noise(images)
	for i := 0; len(r.Mated) < n*r.Dim; i += len(r.Rows)/r.Dim/n + 1 {
		at := i % (len(r.Rows) / r.Dim)
		r.Mated = append(r.Mated, turned(random, r.Rows[at*r.Dim:][:r.Dim], noise)...)
	}
	for len(r.Other) < n*r.Dim {
		r.Other = append(r.Other, narrow(noise(random))...)
	}
}

// Write writes the rows to a file.
func (r *Real) Write(file string) error { return os.WriteFile(file, bytesOf(r.Rows), 0o600) }
