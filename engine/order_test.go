package engine

import (
	"testing"

	"facet/engine/imaging"
	"facet/engine/models"
)

// The larger norm decides between two ways up that look alike, if the pack does not say what the
// norm means. Otherwise its evidence alone decides.
func TestNormDecidesBetweenWaysThatLookAlike(t *testing.T) {
	t.Parallel()
	s := func(norm float64) *sighting {
		return &sighting{
			box: box{left: 0, top: 0, right: 80, bottom: 100, score: .99}, eyes: 30, doubt: .3, norm: norm,
			rightEye: imaging.Point{X: 25, Y: 40}, leftEye: imaging.Point{X: 55, Y: 40},
		}
	}
	for _, scale := range []float64{1, 100} {
		var m models.Manifest
		w := &worker{evidence: m.Evidence()}
		upright, wrong := s(2.6*scale), s(1.5*scale)
		if a, b := w.sureness(upright), w.sureness(wrong); a != b {
			t.Errorf("the norm makes one surer: %v and %v", a, b)
		}
		if a, b := w.orderOf(upright, 1), w.orderOf(wrong, 1); a < b+10 {
			t.Errorf("norms %v and %v have %v and %v, want the first well above", upright.norm, wrong.norm, a, b)
		}
		m.Detector.MinNorm = 1.8
		w.evidence = m.Evidence()
		if got := w.orderOf(upright, 1.5); got != 1.5 {
			t.Errorf("with evidence of the norm the order is %v, want 1.5", got)
		}
	}
}
