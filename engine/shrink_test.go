package engine_test

import (
	"context"
	"image"
	"math"
	"testing"

	"golang.org/x/image/draw"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/imaging"
	"facet/engine/score"
)

// enlarged returns the photo with about so many pixels.
func enlarged(t testing.TB, data []byte, pixels float64) *image.RGBA {
	t.Helper()
	whole := enginetest.RGBA(t, data)
	w, h := float64(whole.Rect.Dx()), float64(whole.Rect.Dy())
	by := math.Sqrt(pixels / (w * h))
	large := image.NewRGBA(image.Rect(0, 0, int(by*w), int(by*h)))
	draw.ApproxBiLinear.Scale(large, large.Rect, whole, whole.Rect, draw.Src, nil)
	return large
}

// A PNG is never decoded at a smaller scale, so the pixels of a JPEG stored as PNG
// show what its faces would be without.
func TestSmallerDecodeKeepsFaces(t *testing.T) {
	t.Parallel()
	e := enginetest.Shared(t)
	reference := one(t, "face_recognition/obama2.jpg").Template
	for _, name := range []string{"face_recognition/biden.jpg", "face-api/sample1.jpg"} {
		got, want := photo(t, name), extract(t, asPNG(t, pixels(t, name)))
		if len(got) != len(want) {
			t.Errorf("%s: %d faces, of whole pixels %d", name, len(got), len(want))
			continue
		}
		for i := range got {
			sameFace(t, name, got[i], want[i])
			a, b := e.Compare(got[i].Template, reference), e.Compare(want[i].Template, reference)
			if d := a - b; d < -60 || d > 60 {
				t.Errorf("%s, face %d: score %d, of whole pixels %d", name, i, a, b)
			}
		}
	}
}

// sameFace checks that a face is the wanted one but for rounding.
func sameFace(t *testing.T, name string, got, want engine.Face) {
	t.Helper()
	if cos := score.Dot(got.Template, want.Template); cos < .998 {
		t.Errorf("%s: the templates' cosine is %.4f, want .998 or more", name, cos)
	}
	a, b := got.Attributes, want.Attributes
	side := float64(b.Face.Right - b.Face.Left)
	for what, d := range map[string]float64{
		"quality":   float64(a.Quality-b.Quality) / .02,
		"score":     float64(a.Score-b.Score) / .02,
		"left edge": float64(a.Face.Left-b.Face.Left) / (.02 * side),
		"top edge":  float64(a.Face.Top-b.Face.Top) / (.02 * side),
		"left eye":  float64(a.LeftEye.X-b.LeftEye.X) / (.02 * side),
	} {
		if math.Abs(d) > 1 {
			t.Errorf("%s: the %s differs by %.2f times what it may", name, what, d)
		}
	}
}

// JPEG is decoded as small as the models need, and larger where a face is small.
func TestJPEGIsDecodedSmall(t *testing.T) {
	e := single(t)
	if imaging.JPEGDecoder() == "Go standard library" {
		t.Fatal("libjpeg-turbo is missing: run make setup in the repository's root first")
	}
	f := func(data []byte, want [4]int64) {
		t.Helper()
		before := e.Work().Decoded
		if _, err := e.ExtractLarge(context.Background(), data, .3); err != nil {
			t.Fatal(err)
		}
		got := e.Work().Decoded
		for i := range got {
			got[i] -= before[i]
		}
		if got != want {
			t.Errorf("decoded %v times at 1, ½, ¼ and ⅛, want %v", got, want)
		}
	}
	f(enginetest.Photo(t, "face_recognition/obama.jpg"), [4]int64{0, 1, 0, 0})
	f(enginetest.Photo(t, "face_recognition/biden.jpg"), [4]int64{0, 1, 1, 0})
	f(asJPEG(t, enlarged(t, enginetest.Photo(t, "face_recognition/obama.jpg"), 4e6)), [4]int64{0, 0, 1, 0})
	f(enginetest.Photo(t, "scikit-image/astronaut.png"), [4]int64{1, 0, 0, 0})
}
