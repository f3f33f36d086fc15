package engine

import (
	"math"
	"testing"

	"facet/engine/models"
)

func TestYuNetCellsBecomeBoxes(t *testing.T) {
	t.Parallel()
	in := &models.Input{Width: 96, Height: 64}
	const cells, cell = 6, 4 // stride 32: the second row's second cell
	out := [3][]float32{make([]float32, cells), make([]float32, cells), make([]float32, 4*cells)}
	see := func(class, object float32, box ...float32) []detection {
		out[0][cell], out[1][cell] = class, object
		copy(out[2][4*cell:], box)
		return yunetDetections(in, 32, out, .59)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-3 }
	got := see(.9, .4, .5, .25, float32(math.Log(2)), float32(math.Log(.5))) // a score of .6
	if len(got) != 1 {
		t.Fatalf("%d boxes, want 1", len(got))
	}
	if d := got[0]; !near(d.left, 16) || !near(d.right, 80) || !near(d.top, 32) || !near(d.bottom, 48) {
		t.Errorf("the box is %+v, want 16 to 80 by 32 to 48", d)
	}
	if want := logistic(yunetOdds * math.Log(.6/.4)); !near(got[0].score, want) {
		t.Errorf("its score is %v, want %v", got[0].score, want)
	}
	if got := see(.9, .38, 0, 0, 0, 0); len(got) != 0 {
		t.Errorf("a score of .585 gives %+v", got)
	}
	if got := see(2, 5, 0, 0, 0, 0); len(got) != 1 || got[0].score > 1 {
		t.Errorf("outputs above 1 give %+v", got)
	}
	for _, side := range []float32{4, 100, math.MaxFloat32} {
		if got := see(1, 1, 0, 0, side, 0); len(got) != 0 {
			t.Errorf("a side of exp(%v) cells gives %+v", side, got)
		}
	}
}
