package imaging

import "facet/internal/stale"

// Image is 8-bit RGB: Pix has three bytes a pixel, row after row, without padding.
type Image struct {
	Width, Height int
	Pix           []uint8
}

// NewImage returns a black image.
func NewImage(width, height int) *Image {
	return &Image{Width: width, Height: height, Pix: make([]uint8, 3*width*height)}
}

// resize makes im width × height and black. It reuses the memory, cleared, so that no earlier
// picture shows where a decoder leaves pixels out.
func (im *Image) resize(width, height int) {
	im.Clear()
	im.Width, im.Height = width, height
	if n := 3 * width * height; cap(im.Pix) >= n {
		im.Pix = im.Pix[:n]
		clear(im.Pix)
	} else {
		im.Pix = make([]uint8, n)
	}
	stale.Picture(im.Pix, width, height, 3)
}

// Clear overwrites the pixels of im with zeros and leaves an image without pixels, which keeps
// the memory.
func (im *Image) Clear() {
	clear(im.Pix)
	im.Width, im.Height, im.Pix = 0, 0, im.Pix[:0]
}

// halveInto makes dst a half of im in both directions. Each pixel is the rounded mean of four. An
// odd last row or column is dropped; the other pixels keep their places.
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
