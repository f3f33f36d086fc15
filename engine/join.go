package engine

import (
	"context"
	"fmt"
	"slices"

	"facet/engine/imaging"
	"facet/engine/models"
	"facet/internal/stale"
)

// joiner makes the templates of a pack with two embedders (models.Joined) in one worker.
type joiner struct {
	stage      // of the second embedder
	manifest   *models.Joined
	projection []float32 // row after row; nil leaves the values as they are
	values     []float32 // of both embedders
	// shares reports whether the second embedder reads the first one's crop.
	shares bool
}

// newJoiner returns a joiner for a worker that has its first embedder.
func newJoiner(w *worker, n *networks) (*joiner, error) {
	first, j := &w.manifest.Embedder, w.manifest.Joined
	run, err := n.second.NewRunner()
	if err != nil {
		return nil, err
	}
	in := j.Embedder.Input
	out := &joiner{
		stage:    stage{run: run, input: in, crop: w.embedder.crop},
		manifest: j, projection: n.projection, values: make([]float32, j.Projection.Cols),
		shares: j.Embedder.Points == first.Points && in.Width == first.Input.Width && in.Height == first.Input.Height,
	}
	if !out.shares {
		out.crop = imaging.NewImage(in.Width, in.Height)
	}
	return out, nil
}

// joinAll joins the templates of the sightings that an extraction returns. The other boxes that were
// measured, in all orientations, need no second embedder.
func (w *worker) joinAll(ctx context.Context, seen []*sighting) error {
	for _, s := range seen {
		if err := w.join(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// join replaces the sighting's template, the first embedder's unit vector, by that of both
// embedders. In a pack with one embedder it changes nothing.
func (w *worker) join(ctx context.Context, s *sighting) error {
	j := w.joiner
	if j == nil {
		return nil
	}
	if err := w.pause(ctx); err != nil {
		return err
	}
	stale.Fill(j.values)
	first, second := j.values[:len(s.template)], j.values[len(s.template):]
	for i, v := range s.template {
		first[i] = float32(float64(v) * s.norm)
	}
	if err := j.read(w, s, first); err != nil {
		return err
	}
	copy(second, j.run.Output(0))
	if j.manifest.Mirrored {
		if err := j.addMirrored(second); err != nil {
			return err
		}
	}
	for i, half := range [][]float32{first, second} {
		if _, err := normalise(half, half); err != nil {
			return err
		}
		for k := range half {
			half[k] *= j.manifest.Weights[i]
		}
	}
	clear(s.template)
	if j.projection == nil {
		s.template = slices.Clone(j.values)
	} else {
		s.template = j.manifest.Projection.Apply(j.projection, j.values)
	}
	if _, err := normalise(s.template, s.template); err != nil {
		return fmt.Errorf("projection: %w", err)
	}
	return nil
}

// read runs the second embedder on the sighting, and the first one on its mirrored crop if the pack
// wants that. It adds the first one's output to first.
func (j *joiner) read(w *worker, s *sighting, first []float32) error {
	if j.manifest.Mirrored || j.shares {
		toImage, _, err := w.align(s)
		if err != nil {
			return err
		}
		if err := w.embedder.sample(&w.pyramid, toImage, imaging.Replicate); err != nil {
			return err
		}
	}
	if j.manifest.Mirrored {
		w.embedder.load()
		if err := w.embedder.addMirrored(first); err != nil {
			return err
		}
	}
	if j.shares {
		return j.inferCrop()
	}
	toImage, _, err := s.alignTo(&j.manifest.Embedder.Points)
	if err != nil {
		return err
	}
	return j.infer(&w.pyramid, toImage, imaging.Replicate)
}

// addMirrored adds the model's output for its mirrored input to out.
func (s *stage) addMirrored(out []float32) error {
	for row := range slices.Chunk(s.run.Input(), s.input.Width) {
		slices.Reverse(row)
	}
	if err := s.run.Run(); err != nil {
		return err
	}
	for i, v := range s.run.Output(0) {
		out[i] += v
	}
	return nil
}
