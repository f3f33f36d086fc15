package heif

import (
	"bytes"
	"errors"
)

var (
	errCrop = errors.New("it is cropped to parts of pixels, or to more than there is")
	errGrid = errors.New("its parts do not cover it")
)

// crop is one side of a clean aperture (clap; ISO/IEC 14496-12, 12.1.4.1): the part of
// a picture that is shown. It has length pixels, and its centre is halves half pixels
// off the picture's centre.
type crop struct {
	length, halves int64
}

// readCrop reads a clean aperture of whole pixels.
func readCrop(body []byte) (across, down crop, err error) {
	r := reader{b: body}
	var v [4]int64
	for i, signed := range [4]bool{false, false, true, true} {
		n, d := int64(r.uint(4)), int64(r.uint(4))
		if signed {
			n = 2 * int64(int32(n))
		}
		if r.bad || d == 0 || n%d != 0 {
			return crop{}, crop{}, errCrop
		}
		v[i] = n / d
	}
	return crop{v[0], v[2]}, crop{v[1], v[3]}, nil
}

// inside reports whether the crop is whole pixels within a side of the given length.
func (c crop) inside(side int64) bool {
	left := side - c.length + c.halves // in half pixels
	return c.length > 0 && left >= 0 && left%2 == 0 && left/2+c.length <= side
}

// checkGrid returns an error unless the parts of a grid cover it (ISO/IEC 23008-12, 6.6.2.3.2).
func (m *meta) checkGrid(grid *item) error {
	r := reader{b: bytes.Join(grid.data, nil)}
	r.uint(1) // version
	size := 2
	if r.uint(1)&1 != 0 {
		size = 4
	}
	rows, columns := int64(r.uint(1))+1, int64(r.uint(1))+1
	width, height := int64(r.uint(size)), int64(r.uint(size))
	announced, err := m.find(grid, "ispe")
	if err != nil {
		return err
	}
	if r.bad || announced.width != width || announced.height != height || int64(len(grid.parts)) != rows*columns {
		return errGrid
	}
	for _, part := range grid.parts {
		tile, err := m.size(m.items[part])
		if err != nil {
			return err
		}
		if int64(tile.Width)*columns < width || int64(tile.Height)*rows < height {
			return errGrid
		}
	}
	return nil
}
