package engine

import (
	"errors"
	"math"

	"facet/engine/imaging"
)

// A face's likeness is the logistic function of what speaks for it: the
// detector's log odds, the embedding's norm, which is small for what the embedder
// was not trained on, and the agreement of the landmarks' two passes. The
// detector alone is not enough: it gives a cat .92 and galaxies up to .99. The
// weights part the finds on photographs of faces from those on others.
const (
	oddsMax       = 7.6 // of a score of .9995
	normWeight    = 2.7
	normUsual     = 1.39 // in multiples of the pack's least norm
	doubtWeight   = 3
	evidenceEven  = 4.1 // half a likeness
	evidenceSlope = 1.8
	likenessLeast = .5 // below, the find is no face
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
	s.likeness = s.judge(float64(w.manifest.Detector.MinNorm))
	if s.likeness < likenessLeast {
		return nil, errNoFace
	}
	seen := lookOf(w.embedder.crop, w.luma)
	s.features = [len(measured)]float64{
		s.norm, s.box.score, seen.sharpness, seen.directional, seen.contrast, seen.brightness,
		math.Log(max(s.eyes, 1)), s.frontal,
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
	if !(s.norm > 1e-6) {
		return errors.New("embedding has no direction")
	}
	s.template = make(Template, len(out))
	for i, v := range out {
		s.template[i] = float32(float64(v) / s.norm)
	}
	return nil
}

// judge returns the likeness to a face, 0 to 1; 0 below the pack's least norm.
func (s *sighting) judge(leastNorm float64) float64 {
	if s.norm < leastNorm {
		return 0
	}
	evidence := min(oddsMax, math.Log(s.box.score/max(1-s.box.score, 1e-9))) - doubtWeight*s.doubt
	if leastNorm > 0 {
		evidence += normWeight * (s.norm/leastNorm - normUsual)
	}
	return 1 / (1 + math.Exp(-evidenceSlope*(evidence-evidenceEven)))
}
