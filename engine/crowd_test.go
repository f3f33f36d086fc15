package engine_test

import (
	"image"
	"testing"

	"golang.org/x/image/draw"

	"facet/engine"
	"facet/engine/enginetest"
)

// An image may show more faces, and things like faces, than anybody waits for. The largest are
// measured, whatever the orientation.
func TestCrowdsCostNoMoreThanTheirBound(t *testing.T) {
	t.Parallel()
	const rows, side = 16, 100
	photo := pixels(t, enginetest.Obama[0])
	head := image.Rect(348, 78, 648, 378)
	crowd := image.NewRGBA(image.Rect(0, 0, rows*side, rows*side))
	for i := range rows * rows {
		at := image.Pt(i%rows*side, i/rows*side)
		draw.ApproxBiLinear.Scale(crowd, image.Rectangle{at, at.Add(image.Pt(side, side))}, photo, head, draw.Src, nil)
	}
	for degrees, least := range map[float64]int{0: engine.MaxFaces, 22: engine.MaxFaces, 90: 1} {
		e := enginetest.New(t, engine.Config{Workers: 1})
		before := e.Work().Embedder
		faces, err := e.Extract(t.Context(), asJPEG(t, turnedFrame(crowd, degrees)))
		if err != nil || len(faces) < least {
			t.Errorf("%v°: %d faces, %v", degrees, len(faces), err)
		}
		if n := e.Work().Embedder - before; n > engine.CandidatesMax {
			t.Errorf("%v°: %d boxes were measured, the most is %d", degrees, n, engine.CandidatesMax)
		}
	}
}
