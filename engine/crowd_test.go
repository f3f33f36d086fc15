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
	const rows, side = 8, 70
	photo := pixels(t, enginetest.Obama[0])
	head := image.Rect(348, 78, 648, 378)
	crowd := image.NewRGBA(image.Rect(0, 0, rows*side, rows*side))
	for i := range rows * rows {
		at := image.Pt(i%rows*side, i/rows*side)
		draw.ApproxBiLinear.Scale(crowd, image.Rectangle{at, at.Add(image.Pt(side, side))}, photo, head, draw.Src, nil)
	}
	if got := single(t).Candidates(); got != engine.CandidatesMax {
		t.Errorf("with one embedder %d boxes are measured, want %d", got, engine.CandidatesMax)
	}
	e := mirrors(t)
	before := e.Work()
	faces, err := e.Extract(t.Context(), asJPEG(t, turnedFrame(crowd, 22)))
	if err != nil || len(faces) < engine.MaxFaces {
		t.Errorf("%d faces, %v", len(faces), err)
	}
	// The faces that are returned are read mirrored, too.
	const most, mostSecond = engine.JoinedMax + engine.MaxFaces, 2 * engine.MaxFaces
	after := e.Work()
	if ran, second := after.Embedder-before.Embedder, after.Second-before.Second; ran > most || second > mostSecond {
		t.Errorf("the embedders ran %d and %d times, %d and %d are the most", ran, second, most, mostSecond)
	}
}
