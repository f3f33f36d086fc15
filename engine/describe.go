package engine

import (
	"errors"
	"math"

	"facet/engine/imaging"
)

// A face's likeness is the logistic function of the evidence for it: the
// detector's log odds, the embedding's norm, which is small for what the embedder
// was not trained on, and the agreement of the landmarks' two passes. Where that
// leaves doubt, the detector looks again, at a view in which a face of this size
// has the height it sees best, and the mean of both log odds counts: galaxies
// that had .96 to .99 then have .1 to .3, while faces keep .98 and more.
const (
	oddsMax       = 7.6 // of a score of .9995
	normWeight    = 2.7
	normUsual     = 1.39 // in multiples of the pack's least norm
	doubtWeight   = 3
	evidenceSure  = 6.5
	evidenceEven  = 2.7 // half a likeness
	evidenceSlope = 1.8
	likenessLeast = .5 // below, the find is no face

	secondLook      = 96  // pixels of the detector's input
	secondLookLeast = .01 // score of a find, and of no find
)

// sighting is all that was measured of one face.
type sighting struct {
	box    box
	points [landmarkCount]imaging.Point
	// doubt is how far the landmarks' two passes disagree, in eye distances.
	doubt float64

	rightEye, leftEye imaging.Point
	// eyes is the distance of the eyes as it were if the face looked ahead.
	eyes            float64
	roll, pan, tilt float64
	frontal         float64
	norm            float64 // of the embedding
	template        Template
	features        [len(measured)]float64
	odds            float64 // logarithm, of being a face as the detector has it
	likeness        float64
}

// describe measures the face in a box; errNoFace if it turns out to be none.
func (w *worker) describe(b box) (*sighting, error) {
	s := &sighting{box: b}
	if err := w.locate(s); err != nil {
		return nil, err
	}
	toImage, eyes, err := w.align(s)
	if err != nil {
		return nil, err
	}
	s.eyes = eyes
	if err := w.embed(s, toImage); err != nil {
		return nil, err
	}
	s.turn()
	if err := w.judge(s); err != nil {
		return nil, err
	}
	if s.likeness < likenessLeast {
		return nil, errNoFace
	}
	seen := lookOf(w.embedder.crop, w.luma, &w.regions)
	s.features = [len(measured)]float64{
		s.norm, logistic(s.odds), seen.sharpness, seen.directional, seen.contrast, seen.brightness,
		math.Log(max(s.eyes, 1)), s.frontal,
		seen.isotropy, seen.fineness, seen.smear, seen.unevenness, seen.clipped, s.doubt,
	}
	return s, nil
}

// embed makes the template of the face that toImage cuts out.
func (w *worker) embed(s *sighting, toImage imaging.Affine) error {
	if err := w.embedder.infer(&w.pyramid, toImage, imaging.Replicate); err != nil {
		return err
	}
	out := w.embedder.run.Output(0)
	var sum float64
	for _, v := range out {
		sum += float64(v) * float64(v)
	}
	s.norm = math.Sqrt(sum)
	if !(s.norm > 1e-6 && s.norm < math.MaxFloat32) { // nor is it NaN: then each number is finite
		return errors.New("embedding has no direction")
	}
	s.template = make(Template, len(out))
	for i, v := range out {
		s.template[i] = float32(float64(v) / s.norm)
	}
	return nil
}

// judge sets the sighting's odds and its likeness to a face, 0 below the pack's
// least norm.
func (w *worker) judge(s *sighting) error {
	least := float64(w.manifest.Detector.MinNorm)
	if s.norm < least {
		return nil
	}
	rest := -doubtWeight * s.doubt
	if least > 0 {
		rest += normWeight * (s.norm/least - normUsual)
	}
	s.odds = logOdds(s.box.score)
	if s.odds+rest < evidenceSure {
		again, err := w.lookAgain(s.box)
		if err != nil {
			return err
		}
		s.odds = (s.odds + logOdds(again)) / 2
	}
	s.likeness = logistic(evidenceSlope * (s.odds + rest - evidenceEven))
	return nil
}

// lookAgain returns the detector's score of the box in a view of its own.
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

func logOdds(p float64) float64 {
	return max(-oddsMax, min(oddsMax, math.Log(p/max(1-p, 1e-9))))
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
