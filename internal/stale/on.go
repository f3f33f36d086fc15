//go:build stale

package stale

import (
	"bytes"
	_ "embed"
	"image"
	"image/jpeg"
	"sync"
)

// On reports whether this build overwrites memory.
const On = true

// face.jpg is a part of the official portrait of Barack Obama (Pete Souza, 2012;
// a work of the United States government, in the public domain).
//
//go:embed face.jpg
var file []byte

// face returns the portrait, opaque.
var face = sync.OnceValue(func() *image.NRGBA {
	im, err := jpeg.Decode(bytes.NewReader(file))
	if err != nil {
		panic("bug: the embedded portrait: " + err.Error())
	}
	b := im.Bounds()
	out := image.NewNRGBA(b)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			out.Set(x, y, im.At(x, y))
		}
	}
	return out
})

// Picture overwrites pix with the face, scaled to width × height pixels of that
// many channels, row after row without padding.
func Picture(pix []uint8, width, height, channels int) {
	from := face()
	size := from.Rect.Size()
	for y := range height {
		row := from.Pix[from.Stride*(y*size.Y/height):]
		for x := range width {
			copy(pix[channels*(y*width+x):][:channels], row[4*(x*size.X/width):])
		}
	}
}

// period is the number of elements after which Fill repeats itself: it writes memory
// with each search and each read of a segment, so all but the first are copied.
const period = 1021

// Fill overwrites s with numbers from 0 to 99 that follow from the face's pixels.
func Fill[T Number](s []T) {
	pix := face().Pix
	written := min(period, len(s))
	for i := range written {
		s[i] = T(pix[i] % 100)
	}
	for written < len(s) {
		written += copy(s[written:], s[:written])
	}
}
