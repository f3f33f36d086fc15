package imaging

import (
	"context"
	"errors"
	"strings"
	"sync"

	"facet/engine/imaging/turbo"
)

// decode uses libjpeg-turbo if it was there when the head was read. Of its fast
// choices the one is taken that is the standard library's, too, so that the two
// agree: chroma is the nearest sample, which saves 15 % of the time. The cosine
// transform is the exact one; the fast one would save another 2 to 8 %.
func (j *jpegImage) decode(ctx context.Context, im *Image, c *Config, s Shrink, data []byte) error {
	if j.library == nil {
		return plain(decodeStandardJPEG).decode(ctx, im, c, s, data)
	}
	t := turbo.Target{Width: s.side(c.Width), Height: s.side(c.Height), Pixels: turbo.RGB}
	if len(j.head.components) == 4 {
		t.Pixels = turbo.CMYK
	}
	if t.Pixels == turbo.RGB && c.orientation <= 1 {
		im.resize(t.Width, t.Height)
		return j.run(im.Pix, t, data)
	}
	buffer := takeBuffer(t.Width * t.Height * t.Pixels.Bytes())
	defer giveBuffer(buffer)
	pix := *buffer
	if err := j.run(pix, t, data); err != nil {
		return err
	}
	row := func(y int, row []uint8) { copy(row, pix[3*t.Width*y:]) }
	if t.Pixels == turbo.CMYK {
		row = func(y int, row []uint8) { inkRow(row, pix[4*t.Width*y:][:4*t.Width]) }
	}
	turn(im, row, t.Width, t.Height, c.orientation)
	return nil
}

// inkRow turns Adobe's inverted CMYK, in which 255 is no ink, to RGB.
func inkRow(row, ink []uint8) {
	for ; len(row) >= 3 && len(ink) >= 4; row, ink = row[3:], ink[4:] {
		k := uint(ink[3])
		row[0] = uint8((uint(ink[0])*k + 127) / 255)
		row[1] = uint8((uint(ink[1])*k + 127) / 255)
		row[2] = uint8((uint(ink[2])*k + 127) / 255)
	}
}

// run decodes, and refuses damage as the standard library does. libjpeg warns of
// damage and goes on; the first warning stops it here, so that a file cut short
// costs no more than its part that is there.
func (j *jpegImage) run(pix []uint8, t turbo.Target, data []byte) error {
	err := j.library.Decode(pix, t, data)
	var warned *turbo.WarningError
	if !errors.As(err, &warned) || !harmless(warned.Text) {
		return err
	}
	if err := j.head.checkScans(data); err != nil { // it ends as it should
		return err
	}
	t.Warnings = turbo.Ignore
	return j.library.Decode(pix, t, data)
}

// harmless are the warnings at which a photo is read on, as the standard library
// does: cameras and editors write such files.
func harmless(text string) bool {
	for _, part := range []string{
		"extraneous bytes before marker",
		"Unknown Adobe", // transform code
		"unknown JFIF revision number",
		"Invalid SOS parameters for sequential JPEG",
	} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// buffers are pixels on their way to an image: to be turned, or to become RGB.
var buffers sync.Pool

// bufferMax bounds what is kept of them.
const bufferMax = 4 * 12_000_000

func takeBuffer(n int) *[]uint8 {
	if b, _ := buffers.Get().(*[]uint8); b != nil && cap(*b) >= n {
		*b = (*b)[:n]
		return b
	}
	b := make([]uint8, n)
	return &b
}

func giveBuffer(b *[]uint8) {
	if cap(*b) <= bufferMax {
		buffers.Put(b)
	}
}
