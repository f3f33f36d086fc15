package engine_test

import (
	"image"
	"path/filepath"
	"testing"

	"golang.org/x/image/draw"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/models"
)

// An image may show more faces, and things like faces, than anybody waits for. The largest are
// measured, whatever the orientation.
func TestCrowdsCostNoMoreThanTheirBound(t *testing.T) {
	t.Parallel()
	const rows, side = 10, 70
	photo := pixels(t, enginetest.Obama[0])
	head := image.Rect(348, 78, 648, 378)
	crowd := image.NewRGBA(image.Rect(0, 0, rows*side, rows*side))
	for i := range rows * rows {
		at := image.Pt(i%rows*side, i/rows*side)
		draw.ApproxBiLinear.Scale(crowd, image.Rectangle{at, at.Add(image.Pt(side, side))}, photo, head, draw.Src, nil)
	}
	for name, degrees := range map[string]float64{models.FolderMobile: 90, models.AccuratePack: 22} { // one embedder, and two
		e := enginetest.At(t, filepath.Join(enginetest.Assets(t), "packs", name))
		least := engine.MaxFaces
		if degrees == 90 {
			least = 1
		}
		faces, err := e.Extract(t.Context(), asJPEG(t, turnedFrame(crowd, degrees)))
		if err != nil || len(faces) < least {
			t.Errorf("%s, %v°: %d faces, %v", name, degrees, len(faces), err)
		}
		ran, most := e.Work(), int64(engine.CandidatesMax)
		if ran.Second > 0 {
			most = engine.JoinedMax + engine.MaxFaces // mirrored
		}
		if ran.Embedder-1 > most { // all networks run once when an engine starts
			t.Errorf("%s, %v°: the embedder ran %d times, %d are the most", name, degrees, ran.Embedder-1, most)
		}
		if ran.Second-1 > 2*engine.MaxFaces {
			t.Errorf("%s, %v°: the second embedder ran %d times, %d are the most", name, degrees, ran.Second-1, 2*engine.MaxFaces)
		}
	}
}
