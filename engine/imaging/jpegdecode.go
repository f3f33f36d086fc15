package imaging

import (
	"context"
	"errors"
	"strings"
	"sync"

	"facet/engine/imaging/turbo"
	"facet/internal/stale"
)

// decode uses libjpeg-turbo if it was loaded when the head was read. It uses the nearest chroma
// sample, as the standard library does, so that both decode alike; this saves 15 % of the time. It
// uses the exact cosine transform; the fast one would save another 2 to 8 %.
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
	buffer := takeBuffer(t)
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

// inkRow converts Adobe's inverted CMYK, in which 255 is no ink, to RGB.
func inkRow(row, ink []uint8) {
	for ; len(row) >= 3 && len(ink) >= 4; row, ink = row[3:], ink[4:] {
		k := uint(ink[3])
		row[0] = uint8((uint(ink[0])*k + 127) / 255)
		row[1] = uint8((uint(ink[1])*k + 127) / 255)
		row[2] = uint8((uint(ink[2])*k + 127) / 255)
	}
}

// run decodes, and refuses damage as the standard library does: libjpeg would fill unreadable
// pixels with grey. One warning is no damage: bytes that a camera left between the last pixel and
// the end of the file.
func (j *jpegImage) run(pix []uint8, t turbo.Target, data []byte) error {
	file := data
	if j.odd {
		file = j.head.repaired(data)
		defer clear(file)
	}
	err := j.library.Decode(pix, t, file)
	var warned *turbo.WarningError
	if !errors.As(err, &warned) || !strings.Contains(warned.Text, "extraneous bytes before marker") {
		return err
	}
	if err := j.head.checkScans(data); err != nil { // makes sure that the file has an end
		return err
	}
	return j.library.DecodeAll(pix, t, file)
}

// buffers are *[]uint8 for pixels that are not yet turned or not yet RGB.
var buffers sync.Pool

// bufferMax is the largest buffer that is kept.
const bufferMax = 4 * 12_000_000

// takeBuffer returns zeroed memory for the pixels of t.
func takeBuffer(t turbo.Target) *[]uint8 {
	n := t.Width * t.Height * t.Pixels.Bytes()
	b, _ := buffers.Get().(*[]uint8)
	if b != nil && cap(*b) >= n {
		*b = (*b)[:n]
		clear(*b)
	} else {
		b = new(make([]uint8, n))
	}
	stale.Picture(*b, t.Width, t.Height, t.Pixels.Bytes())
	return b
}

// giveBuffer clears b and keeps it for the next image, unless it is too large.
func giveBuffer(b *[]uint8) {
	clear(*b)
	if cap(*b) <= bufferMax {
		buffers.Put(b)
	}
}
