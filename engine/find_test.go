package engine_test

import (
	"image"
	"math"
	"slices"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
)

// turnedFrame returns src turned clockwise about its middle by degrees, in a
// frame that holds all of it.
func turnedFrame(src *image.RGBA, degrees float64) *image.RGBA {
	w, h := float64(src.Rect.Dx()), float64(src.Rect.Dy())
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	tw := math.Round(math.Abs(cos)*w + math.Abs(sin)*h)
	th := math.Round(math.Abs(sin)*w + math.Abs(cos)*h)
	return redrawn(src, int(tw), int(th), func(x, y float64) (float64, float64) {
		dx, dy := x-tw/2, y-th/2
		return cos*dx + sin*dy + w/2, -sin*dx + cos*dy + h/2
	})
}

// placed returns where a point of src lies in turnedFrame(src, degrees).
func placed(p engine.Point, src, turned *image.RGBA, degrees float64) (x, y float64) {
	dx, dy := float64(p.X)-float64(src.Rect.Dx())/2, float64(p.Y)-float64(src.Rect.Dy())/2
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	return cos*dx - sin*dy + float64(turned.Rect.Dx())/2, sin*dx + cos*dy + float64(turned.Rect.Dy())/2
}

// sameAngle reports whether two angles in degrees differ by at most within.
func sameAngle(a, b, within float64) bool {
	return math.Abs(math.Remainder(a-b, 360)) <= within
}

func TestTurnedPhotosMatchUprightOnes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		photo []byte
		turns []float64
	}{
		"two men":    {enginetest.Behind(t), []float64{180, -45}},
		"partial":    {enginetest.Photo(t, "face_recognition/obama_partial_face.jpg"), []float64{90}},
		"biden.jpg":  {enginetest.Photo(t, "face_recognition/biden.jpg"), []float64{-150}},
		"obama3.jpg": {enginetest.Photo(t, "face_recognition/obama3.jpg"), []float64{-20}},
	} {
		im := halved(enginetest.RGBA(t, c.photo))
		before := extract(t, asJPEG(t, im))
		for _, degrees := range c.turns {
			turned := turnedFrame(im, degrees)
			after := extract(t, asJPEG(t, turned))
			if len(after) != len(before) {
				t.Errorf("%s turned by %v: %d faces, upright %d", name, degrees, len(after), len(before))
				continue
			}
			for _, f := range before {
				checkTurned(t, name, f, after, im, turned, degrees)
			}
		}
	}
}

// checkTurned finds the face f of src among those of the turned image and
// compares the two.
func checkTurned(t *testing.T, name string, f engine.Face, after []engine.Face, src, turned *image.RGBA, degrees float64) {
	t.Helper()
	e := enginetest.Shared(t)
	same := slices.MaxFunc(after, func(a, b engine.Face) int {
		return e.Compare(a.Template, f.Template) - e.Compare(b.Template, f.Template)
	})
	if got := e.Compare(same.Template, f.Template); got < 9000 {
		t.Errorf("%s turned by %v: score %d with the upright face, want 9000 or more", name, degrees, got)
		return
	}
	a, b := f.Attributes, same.Attributes
	side := float64(a.Face.Right - a.Face.Left)
	points := []struct{ from, to engine.Point }{{a.RightEye, b.RightEye}, {a.LeftEye, b.LeftEye}}
	if math.Mod(degrees, 90) == 0 { // else the sides of the boxes are other lines
		points = append(points, struct{ from, to engine.Point }{middleOf(a.Head), middleOf(b.Head)})
	}
	for _, p := range points {
		x, y := placed(p.from, src, turned, degrees)
		if math.Hypot(x-float64(p.to.X), y-float64(p.to.Y)) > .05*side {
			t.Errorf("%s turned by %v: a point at %v, want %.0f, %.0f", name, degrees, p.to, x, y)
		}
	}
	// A clockwise turn lowers the image-right eye, so that the roll falls.
	if want := float64(a.Roll) - degrees; !sameAngle(float64(b.Roll), want, 4) {
		t.Errorf("%s turned by %v: roll %.1f, want %.1f", name, degrees, b.Roll, want)
	}
	if !sameAngle(float64(b.Pan), float64(a.Pan), 5) || !sameAngle(float64(b.Tilt), float64(a.Tilt), 5) {
		t.Errorf("%s turned by %v: pan %.1f, tilt %.1f; upright %.1f, %.1f", name, degrees, b.Pan, b.Tilt, a.Pan, a.Tilt)
	}
}

func middleOf(r engine.Rect) engine.Point {
	return engine.Point{X: (r.Left + r.Right) / 2, Y: (r.Top + r.Bottom) / 2}
}
