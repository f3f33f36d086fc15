package engine

import (
	"context"
	"errors"
	"math"

	"facet/engine/imaging"
	"facet/engine/models"
)

// A face's likeness is the logistic function of the evidence for it (models.FaceEvidence): the
// detector's log odds, the embedding's norm and the agreement of the landmarks' two passes. The
// norm is small for subjects that the embedder was not trained on. If doubt remains, the detector
// looks again, at a view in which a face of this size has the height that it detects best, and the
// mean of both log odds counts. Galaxies that had .96 to .99 then have .1 to .3, while faces keep
// .98 and more.
const (
	oddsMax       = 7.6 // of a score of .9995
	likenessLeast = .5  // the least likeness of a face

	secondLook      = 96  // height of the face in pixels of the detector's input
	secondLookLeast = .01 // least score of a detection, and the score without one
)

// sighting holds all measurements of one face.
type sighting struct {
	box    box
	points [landmarkCount]imaging.Point
	// doubt is how far the landmarks' two passes disagree, in eye distances.
	doubt float64

	rightEye, leftEye imaging.Point
	// eyes is the distance that the eyes would have if the face looked ahead.
	eyes            float64
	roll, pan, tilt float64
	frontal         float64
	norm            float64 // of the embedding
	template        Template
	features        Features
	cover           cover
	light           light
	look            look
	odds            float64 // log odds of being a face, by the detector
	likeness        float64
}

// describe measures the face in a box, up to the second embedder's half of the template (joinAll). It
// returns errNoFace if there is none.
func (w *worker) describe(ctx context.Context, b box) (*sighting, error) {
	s, err := w.measure(ctx, b)
	if err != nil {
		return nil, err
	}
	if err := w.judge(s); err != nil {
		return nil, err
	}
	if s.likeness < likenessLeast {
		return nil, errNoFace
	}
	w.featuresOf(s)
	return s, nil
}

// measure finds the landmarks of the face in a box and makes its template, or the first embedder's
// half of it. It returns errNoFace if the landmarks are those of no face.
func (w *worker) measure(ctx context.Context, b box) (*sighting, error) {
	s := &sighting{box: b}
	if err := w.locate(s); err != nil {
		return nil, err
	}
	toImage, eyes, err := w.align(s)
	if err != nil {
		return nil, err
	}
	s.eyes = eyes
	if err := w.pause(ctx); err != nil {
		return nil, err
	}
	if err := w.embed(s, toImage); err != nil {
		return nil, err
	}
	s.turn()
	return s, nil
}

// featuresOf sets the features of a sighting whose crop the embedder saw last.
func (w *worker) featuresOf(s *sighting) {
	seen := lookOf(w.embedder.crop, w.luma, &w.regions)
	s.look = seen
	s.cover = w.zones.coverOf(w.luma, w.embedder.crop.Width, s.doubt)
	s.light = w.zones.lightOf(w.luma, w.embedder.crop.Width)
	s.features = Features{
		s.norm, logistic(s.odds), seen.sharpness, seen.directional, seen.contrast, seen.brightness,
		math.Log(max(s.eyes, 1)), s.frontal,
		seen.isotropy, seen.fineness, seen.smear, seen.unevenness, seen.clipped, s.doubt,
	}
}

// embed makes the first embedder's template of the face that toImage crops.
func (w *worker) embed(s *sighting, toImage imaging.Affine) error {
	if err := w.embedder.infer(&w.pyramid, toImage, imaging.Replicate); err != nil {
		return err
	}
	out := w.embedder.run.Output(0)
	s.template = make(Template, len(out))
	var err error
	s.norm, err = normalise(s.template, out)
	return err
}

// normalise sets dst to v with unit length and returns v's length.
func normalise(dst, v []float32) (length float64, err error) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	length = math.Sqrt(sum)
	if !(length > 1e-6 && length < math.MaxFloat32) { // also rejects NaN; then each number is finite
		return 0, errors.New("embedding has no direction")
	}
	for i, x := range v {
		dst[i] = float32(float64(x) / length)
	}
	return length, nil
}

// judge sets the sighting's odds and likeness. The likeness stays 0 below the pack's least norm.
func (w *worker) judge(s *sighting) error {
	if s.norm < float64(w.manifest.Detector.MinNorm) {
		return nil
	}
	face := &w.evidence.Face
	rest := face.Rest(s.norm/w.evidence.NormUnit, s.doubt)
	s.odds = logOdds(s.box.score)
	if s.odds+rest < face.Sure {
		again, err := w.lookAgain(s.box)
		if err != nil {
			return err
		}
		s.odds = (s.odds + logOdds(again)) / 2
	}
	s.likeness = likeness(face, s.odds, rest)
	return nil
}

// lookAgain returns the detector's score of the box, centred in a view of its own.
func (w *worker) lookAgain(b box) (float64, error) {
	found, err := w.view(nil, view{centre: b.centre(), scale: b.height() / secondLook, angle: b.angle, least: secondLookLeast})
	best := secondLookLeast
	for _, f := range found {
		if f.same(b, float64(w.manifest.Detector.MaxOverlap)) {
			best = max(best, f.score)
		}
	}
	return best, err
}

// likeness returns the probability of a face by the detector's log odds and the other evidence.
func likeness(f *models.FaceEvidence, odds, rest float64) float64 {
	return logistic(f.Slope * (odds + rest - f.Even))
}

func logOdds(p float64) float64 {
	return max(-oddsMax, min(oddsMax, math.Log(p/max(1-p, 1e-9))))
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
