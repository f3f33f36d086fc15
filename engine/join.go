package engine

import (
	"context"
	"fmt"

	"facet/engine/imaging"
	"facet/engine/models"
	"facet/internal/stale"
)

// joiner makes the templates of a pack with two embedders (models.Joined) in one worker.
type joiner struct {
	stage      // of the second embedder
	manifest   *models.Joined
	projection []float32 // row after row
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
	if err := j.embed(w, s); err != nil {
		return err
	}
	stale.Fill(j.values)
	first := len(s.template)
	for i, v := range s.template {
		j.values[i] = j.manifest.Weights[0] * v
	}
	second := j.values[first:]
	if _, err := normalise(second, j.run.Output(0)); err != nil {
		return fmt.Errorf("second embedder: %w", err)
	}
	for i, v := range second {
		second[i] = j.manifest.Weights[1] * v
	}
	clear(s.template)
	s.template = make(Template, j.manifest.Projection.Rows)
	for r := range s.template {
		var sum float64
		for c, p := range j.projection[r*len(j.values):][:len(j.values)] {
			sum += float64(p) * float64(j.values[c]) // exact products: fusing changes nothing
		}
		s.template[r] = float32(sum)
	}
	if _, err := normalise(s.template, s.template); err != nil {
		return fmt.Errorf("projection: %w", err)
	}
	return nil
}

// embed runs the second embedder on the face whose crop the first one has.
func (j *joiner) embed(w *worker, s *sighting) error {
	if j.shares {
		return j.inferCrop()
	}
	toImage, _, err := s.alignTo(&j.manifest.Embedder.Points)
	if err != nil {
		return err
	}
	return j.infer(&w.pyramid, toImage, imaging.Replicate)
}
