package engine

import (
	"context"
	"errors"
	"fmt"

	"facet/engine/imaging"
	"facet/engine/models"
)

// Sighting is what the engine measured of one detection, before the pack's evidence and quality
// weigh it. Fits of a pack start from sightings.
type Sighting struct {
	Template Template
	// Middle is the centre of the face area, Eyes the distance of the eyes, in pixels of the
	// upright image.
	Middle imaging.Point
	Eyes   float64
	// Norm is that of the embedding. Looks are the log odds of the detector's score, at first
	// sight and in a view of the detection's own.
	Norm  float64
	Looks [2]float64
	// Upright has the measurements for models.UprightEvidence, with Norm in units of 1.
	Upright models.Upright
	// Features are those that a quality weighs. FeatureScore is that of the first look; see
	// Judge.
	Features map[models.Feature]float64
}

// Judge returns the likeness that e gives the sighting, and sets FeatureScore to the detector's
// score as e weighs it.
func (s *Sighting) Judge(e *models.Evidence) float64 {
	rest := e.Face.Rest(s.Norm/e.NormUnit, s.Upright.Doubt)
	odds := s.Looks[0]
	if odds+rest < e.Face.Sure {
		odds = (odds + s.Looks[1]) / 2
	}
	s.Features[models.FeatureScore] = logistic(odds)
	return likeness(&e.Face, odds, rest)
}

// Sightings returns the detections in the whole frame as it looks turned clockwise by angle
// (radians), at most MaxFaces, the most certain first. It looks neither at tiles nor at another
// orientation, and leaves out nothing but boxes without landmarks. Errors are those of Extract.
func (e *Engine) Sightings(ctx context.Context, image []byte, angle float64) ([]Sighting, error) {
	var all []Sighting
	err := e.withWorker(ctx, image, func(w *worker, x *extraction, head imaging.Config) (err error) {
		all, err = w.sightings(ctx, x, head, image, angle)
		return err
	})
	return all, err
}

func (w *worker) sightings(ctx context.Context, x *extraction, head imaging.Config, data []byte, angle float64) ([]Sighting, error) {
	defer w.forget()
	w.pause = x.pause
	if err := w.pyramid.open(ctx, &x.memory, head, data, w.firstShrink(head)); err != nil {
		return nil, err
	}
	found, err := w.detect(ctx, angle)
	if err != nil {
		return nil, fmt.Errorf("find faces: %w", err)
	}
	boxes := merge(nil, found, float64(w.manifest.Detector.MaxOverlap))
	if err := w.prepare(boxes, 0); err != nil {
		return nil, fmt.Errorf("measure faces: %w", err)
	}
	var all []Sighting
	for _, b := range boxes[:min(len(boxes), MaxFaces)] {
		s, err := w.measure(ctx, b)
		if errors.Is(err, errNoFace) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("measure faces: %w", err)
		}
		again, err := w.lookAgain(b)
		if err != nil {
			return nil, fmt.Errorf("measure faces: %w", err)
		}
		s.odds = logOdds(b.score)
		w.featuresOf(s)
		if err := w.join(ctx, s); err != nil {
			return nil, fmt.Errorf("measure faces: %w", err)
		}
		out := Sighting{
			Template: s.template, Middle: s.middle(), Eyes: s.eyes, Norm: s.norm,
			Looks: [2]float64{s.odds, logOdds(again)}, Upright: w.upright(s),
			Features: make(map[models.Feature]float64, len(measured)),
		}
		out.Upright.Norm = s.norm
		for i, f := range measured {
			out.Features[f] = s.features[i]
		}
		all = append(all, out)
	}
	return all, nil
}
