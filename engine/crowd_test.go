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
	for name, e := range enginetest.All(t) {
		for degrees, least := range map[float64]int{0: engine.MaxFaces, 22: engine.MaxFaces, 90: 1} {
			before := e.Work()
			faces, err := e.Extract(t.Context(), asJPEG(t, turnedFrame(crowd, degrees)))
			if err != nil || len(faces) < least {
				t.Errorf("%s, %v°: %d faces, %v", name, degrees, len(faces), err)
			}
			after := e.Work()
			most := int64(engine.CandidatesMax)
			if after.Second > 0 {
				most = engine.JoinedMax + engine.MaxFaces // mirrored
			}
			if n := after.Embedder - before.Embedder; n > most {
				t.Errorf("%s, %v°: the embedder ran %d times, %d are the most", name, degrees, n, most)
			}
			if n := after.Second - before.Second; n > 2*engine.MaxFaces {
				t.Errorf("%s, %v°: the second embedder ran %d times, %d are the most", name, degrees, n, 2*engine.MaxFaces)
			}
		}
	}
}
