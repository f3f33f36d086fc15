package imaging

import "facet/internal/stale"

// Image is 8-bit RGB: Pix holds three bytes a pixel, row after row, no padding.
type Image struct {
	Width, Height int
	Pix           []uint8
}

// NewImage returns a black image.
func NewImage(width, height int) *Image {
	return &Image{Width: width, Height: height, Pix: make([]uint8, 3*width*height)}
}

// resize makes im width × height and black, keeping its memory where that is large
// enough: whatever a decoder leaves out is not the picture before.
func (im *Image) resize(width, height int) {
	im.Width, im.Height = width, height
	if n := 3 * width * height; cap(im.Pix) >= n {
		im.Pix = im.Pix[:n]
		clear(im.Pix)
	} else {
		im.Pix = make([]uint8, n)
	}
	stale.Picture(im.Pix, width, height, 3)
}

// halveInto makes dst the half of im in both directions, each pixel the rounded
// mean of four; an odd last row or column is dropped, which moves nothing.
func (im *Image) halveInto(dst *Image) {
	dst.resize(im.Width/2, im.Height/2)
	for y := range dst.Height {
		top := im.Pix[3*im.Width*2*y:][:6*dst.Width]
		bottom := im.Pix[3*im.Width*(2*y+1):][:6*dst.Width]
		out := dst.Pix[3*dst.Width*y:][:3*dst.Width]
		for len(out) >= 3 && len(top) >= 6 && len(bottom) >= 6 {
			out[0] = uint8((uint(top[0]) + uint(top[3]) + uint(bottom[0]) + uint(bottom[3]) + 2) / 4)
			out[1] = uint8((uint(top[1]) + uint(top[4]) + uint(bottom[1]) + uint(bottom[4]) + 2) / 4)
			out[2] = uint8((uint(top[2]) + uint(top[5]) + uint(bottom[2]) + uint(bottom[5]) + 2) / 4)
			out, top, bottom = out[3:], top[6:], bottom[6:]
		}
	}
}
