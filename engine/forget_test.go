package engine_test

import (
	"slices"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
)

func TestWorkerForgetsImage(t *testing.T) {
	f := func(e *engine.Engine, most int) {
		t.Helper()
		if _, err := e.Extract(t.Context(), enginetest.Photo(t, "scikit-image/astronaut.png")); err != nil {
			t.Fatal(err)
		}
		pixels, values := e.Kept()
		if n := len(slices.Concat(pixels...)); n < 3*512*512 || len(values) != most {
			t.Errorf("the worker keeps memory for %d bytes of pixels and %d lists, want %d lists", n, len(values), most)
		}
		for i, pix := range pixels {
			if slices.ContainsFunc(pix, func(v uint8) bool { return v != 0 }) {
				t.Errorf("image %d of the worker has pixels", i)
			}
		}
		for i, list := range values {
			if slices.ContainsFunc(list, func(v float32) bool { return v != 0 }) {
				t.Errorf("list %d of the worker has values", i)
			}
		}
	}
	f(single(t), 7)  // the inputs and outputs of three networks, and the crop's luma
	f(joined(t), 10) // of four, and the values of both embedders
}
