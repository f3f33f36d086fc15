package engine_test

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"image/png"
	"math"
	"testing"

	"golang.org/x/image/draw"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/imaging"
	"facet/engine/score"
)

// enlarged returns a JPEG of the photo with about so many pixels.
func enlarged(t testing.TB, data []byte, pixels float64) []byte {
	t.Helper()
	whole := enginetest.RGBA(t, data)
	w, h := float64(whole.Rect.Dx()), float64(whole.Rect.Dy())
	by := math.Sqrt(pixels / (w * h))
	large := image.NewRGBA(image.Rect(0, 0, int(by*w), int(by*h)))
	draw.ApproxBiLinear.Scale(large, large.Rect, whole, whole.Rect, draw.Src, nil)
	var out bytes.Buffer
	if err := jpeg.Encode(&out, large, &jpeg.Options{Quality: 90}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A PNG is never decoded at a smaller scale, so the pixels of a JPEG stored as PNG
// show what its faces would be without.
func TestSmallerDecodeKeepsFaces(t *testing.T) {
	t.Parallel()
	e := enginetest.Shared(t)
	reference := one(t, "face_recognition/obama2.jpg").Template
	for _, c := range []struct {
		photo  string
		pixels float64 // 0: as it is
	}{
		{"face_recognition/obama_partial_face.jpg", 0},
		{"face_recognition/biden.jpg", 8e6},
		{"face-api/sample1.jpg", 0},
	} {
		data := enginetest.Photo(t, c.photo)
		if c.pixels > 0 {
			data = enlarged(t, data, c.pixels)
		}
		var stored bytes.Buffer
		if err := (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&stored, enginetest.RGBA(t, data)); err != nil {
			t.Fatal(err)
		}
		before := e.Work().Decoded
		got, want := extract(t, data), extract(t, stored.Bytes())
		if after := e.Work().Decoded; imaging.JPEGDecoder() != standardDecoder && after == before {
			t.Errorf("%s: nothing was decoded", c.photo)
		}
		if len(got) != len(want) {
			t.Errorf("%s at %v pixels: %d faces, of whole pixels %d", c.photo, c.pixels, len(got), len(want))
			continue
		}
		for i := range got {
			sameFace(t, c.photo, got[i], want[i])
			a, b := e.Compare(got[i].Template, reference), e.Compare(want[i].Template, reference)
			if d := a - b; d < -60 || d > 60 {
				t.Errorf("%s, face %d: score %d, of whole pixels %d", c.photo, i, a, b)
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
	if imaging.JPEGDecoder() == standardDecoder {
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
	f(enlarged(t, enginetest.Photo(t, "face_recognition/obama.jpg"), 8e6), [4]int64{0, 0, 1, 0})
	f(enginetest.Photo(t, "face-api/sample5.jpg"), [4]int64{0, 1, 0, 0})
	f(enginetest.Photo(t, "scikit-image/astronaut.png"), [4]int64{1, 0, 0, 0})
}

const standardDecoder = "Go standard library"
