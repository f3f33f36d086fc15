package enginetest

import (
	"bytes"
	"image"
	colour "image/color" //nolint:misspell // the standard library spells it so
	"image/jpeg"
	"testing"

	"golang.org/x/image/draw"

	"facet/engine/imaging"
)

// Behind returns a composed photograph: the man of Obama in the middle, and the first of Others half as
// large beside him. On that of Alike both are equally large, and on that of Aside the other one is in the
// middle, and a third as large: too small to count.
func Behind(tb testing.TB) []byte {
	tb.Helper()
	return composed(tb, 450, 720, 0.5)
}

// Alike is described at Behind.
func Alike(tb testing.TB) []byte {
	tb.Helper()
	return composed(tb, 220, 680, 1)
}

// Aside is described at Behind.
func Aside(tb testing.TB) []byte {
	tb.Helper()
	return composed(tb, 200, 460, 0.33)
}

// composed pastes two heads side by side; the sides of their face areas are 200 pixels and a share of
// that, and x are the middles.
func composed(tb testing.TB, x, otherX int, share float64) []byte {
	tb.Helper()
	canvas := image.NewRGBA(image.Rect(0, 0, 900, 700))
	draw.Draw(canvas, canvas.Rect, image.NewUniform(colour.Gray{Y: 128}), image.Point{}, draw.Src)
	paste := func(name string, face image.Rectangle, middle image.Point, side int) {
		tb.Helper()
		photo, err := jpeg.Decode(bytes.NewReader(Photo(tb, name)))
		if err != nil {
			tb.Fatal(err)
		}
		around := func(p image.Point, side int) image.Rectangle {
			return image.Rect(p.X-side, p.Y-side, p.X+side, p.Y+side)
		}
		head := around(face.Min.Add(face.Max).Div(2), face.Dx())
		draw.CatmullRom.Scale(canvas, around(middle, side), photo, head, draw.Src, nil)
	}
	paste(Others[0], image.Rect(473, 272, 695, 495), image.Pt(otherX, 320), int(200*share))
	paste(Obama[0], image.Rect(398, 158, 596, 355), image.Pt(x, 350), 200)
	var out bytes.Buffer
	if err := jpeg.Encode(&out, canvas, &jpeg.Options{Quality: 95}); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// RGBA returns the pixels of an image that the engine reads.
func RGBA(tb testing.TB, data []byte) *image.RGBA {
	tb.Helper()
	im, err := imaging.Decode(data)
	if err != nil {
		tb.Fatal(err)
	}
	out := image.NewRGBA(image.Rect(0, 0, im.Width, im.Height))
	for i := range im.Width * im.Height {
		copy(out.Pix[4*i:], im.Pix[3*i:3*i+3])
		out.Pix[4*i+3] = 255
	}
	return out
}
