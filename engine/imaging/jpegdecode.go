package imaging

import (
	"context"
	"errors"
	"strings"
	"sync"

	"facet/engine/imaging/turbo"
	"facet/internal/stale"
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

// inkRow turns Adobe's inverted CMYK, in which 255 is no ink, to RGB.
func inkRow(row, ink []uint8) {
	for ; len(row) >= 3 && len(ink) >= 4; row, ink = row[3:], ink[4:] {
		k := uint(ink[3])
		row[0] = uint8((uint(ink[0])*k + 127) / 255)
		row[1] = uint8((uint(ink[1])*k + 127) / 255)
		row[2] = uint8((uint(ink[2])*k + 127) / 255)
	}
}

// run decodes, and refuses damage as the standard library does: libjpeg would
// fill what it can't read with grey. The one warning that is no damage is about
// bytes that a camera left between the last pixel and the end of the file.
func (j *jpegImage) run(pix []uint8, t turbo.Target, data []byte) error {
	file := data
	if j.odd {
		file = j.head.repaired(data)
	}
	err := j.library.Decode(pix, t, file)
	var warned *turbo.WarningError
	if !errors.As(err, &warned) || !strings.Contains(warned.Text, "extraneous bytes before marker") {
		return err
	}
	if err := j.head.checkScans(data); err != nil { // the file has an end
		return err
	}
	return j.library.DecodeAll(pix, t, file)
}

// buffers holds *[]uint8, pixels on their way to an image: to be turned, or to
// become RGB.
var buffers sync.Pool

// bufferMax bounds what is kept of them.
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

func giveBuffer(b *[]uint8) {
	if cap(*b) <= bufferMax {
		buffers.Put(b)
	}
}
