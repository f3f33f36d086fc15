package imaging

import (
	"context"
	"errors"
	"image"
)

// Standard returns c with the standard library in place of libjpeg-turbo.
func (c Config) Standard() Config {
	if j, ok := c.source.(*jpegImage); ok {
		other := *j
		other.library = nil
		c.source = &other
		several := j.head.progressive
		c.fixedBytes, c.pixelBytes = other.memory(several), 0
	}
	return c
}

// NewFolder makes the process's folder for the compiled HEIC decoder, and nothing in it.
func NewFolder() error {
	_, err := newFolder()
	return err
}

// Warm is Keep, and compiles the decoder.
func Warm(ctx context.Context) (cool func() error, err error) {
	cool, err = Keep()
	if err != nil {
		return nil, err
	}
	if err := Compile(ctx); err != nil {
		return nil, errors.Join(err, cool())
	}
	return cool, nil
}

// Cool makes the process one without a compiled HEIC decoder, until warm is called.
func Cool() (warm func()) {
	dir := warmed.Swap(nil)
	return func() { warmed.Store(dir) }
}

// LeaveBuffer makes pixels of another picture the memory that the next decode may take.
func LeaveBuffer(pix []uint8) { buffers.Put(&pix) }

// Colours decodes data and returns how many colours the image of the standard library had before
// it was wiped, and has now. ok is false for a format that is decoded in another way.
func (c Config) Colours(data []byte) (before, now int, ok bool) {
	p, ok := c.source.(plain)
	if !ok {
		return 0, 0, false
	}
	count := func(im image.Image) int {
		seen := map[[3]uint8]bool{}
		row, pix := rowReader(im), make([]uint8, 3*im.Bounds().Dx())
		for y := range im.Bounds().Dy() {
			row(y, pix)
			for x := 0; x < len(pix); x += 3 {
				seen[[3]uint8(pix[x:])] = true
			}
		}
		return len(seen)
	}
	var raw image.Image
	c.source = plain(func(data []byte) (im image.Image, err error) {
		if raw, err = p(data); err == nil {
			before = count(raw)
		}
		return raw, err
	})
	if err := c.DecodeInto(context.Background(), new(Image), data, Whole); err != nil {
		return 0, 0, false
	}
	return before, count(raw), true
}
