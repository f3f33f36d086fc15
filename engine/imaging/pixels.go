package imaging

import (
	"image"
	colour "image/color" //nolint:misspell // the standard library spells it so
)

// upright makes dst the RGB of src, shrunk, with the EXIF orientation applied.
func upright(dst *Image, src image.Image, s Shrink, orientation int) {
	w, h := src.Bounds().Dx(), src.Bounds().Dy()
	turn(dst, boxRows(rowReader(src), w, h, s), s.side(w), s.side(h), orientation)
}

// turn makes dst the w × h picture that row reads, with the EXIF orientation (1 to 8) applied.
func turn(dst *Image, row func(y int, row []uint8), w, h, orientation int) {
	if orientation >= 5 { // the rows become columns
		dst.resize(h, w)
	} else {
		dst.resize(w, h)
	}
	if orientation <= 1 {
		for y := range h {
			row(y, dst.Pix[3*w*y:][:3*w])
		}
		return
	}
	line := make([]uint8, 3*w)
	for y := range h {
		row(y, line)
		at, step := place(orientation, y, w, h)
		for x := range w {
			copy(dst.Pix[at:at+3], line[3*x:3*x+3])
			at += step
		}
	}
}

// place returns where the stored row y of a w × h image goes: the offset of its first pixel in the
// turned image, and the step to the next.
//
//	1 as stored   2 mirrored      3 turned 180°    4 upside-down mirrored
//	5 transposed  6 turned right  7 anti-transposed  8 turned left
func place(orientation, y, w, h int) (at, step int) {
	switch orientation {
	case 2:
		return 3 * (w*y + w - 1), -3
	case 3:
		return 3 * (w*(h-1-y) + w - 1), -3
	case 4:
		return 3 * w * (h - 1 - y), 3
	case 5:
		return 3 * y, 3 * h
	case 6:
		return 3 * (h - 1 - y), 3 * h
	case 7:
		return 3 * (h*(w-1) + h - 1 - y), -3 * h
	case 8:
		return 3 * (h*(w-1) + y), -3 * h
	}
	return 3 * w * y, 3
}

// rowReader returns a function that writes the y-th row of src as RGB.
func rowReader(src image.Image) func(y int, row []uint8) {
	switch im := src.(type) {
	case *image.YCbCr:
		return ycbcrRows(im)
	case video:
		return im.rows()
	case *image.Gray:
		return func(y int, row []uint8) {
			for x, v := range im.Pix[y*im.Stride:][:im.Rect.Dx()] {
				row[3*x], row[3*x+1], row[3*x+2] = v, v, v
			}
		}
	case *image.RGBA: // the PNG decoder's type for opaque RGB
		return func(y int, row []uint8) {
			for x := range im.Rect.Dx() {
				px := im.Pix[y*im.Stride+4*x:][:4]
				over := 255 - px[3] // premultiplied: in a sound file no channel is above alpha
				for c := range 3 {
					row[3*x+c] = min(px[c], px[3]) + over
				}
			}
		}
	case *image.NRGBA:
		return func(y int, row []uint8) {
			for x := range im.Rect.Dx() {
				px := im.Pix[y*im.Stride+4*x:][:4]
				for c := range 3 {
					row[3*x+c] = onWhite(px[c], px[3])
				}
			}
		}
	case *image.Paletted:
		return palettedRows(im)
	}
	return anyRows(src)
}

// onWhite lays a channel value with the given alpha on white.
func onWhite(v, alpha uint8) uint8 {
	if alpha == 255 {
		return v
	}
	a := uint(alpha)
	return uint8((uint(v)*a + 255*(255-a) + 127) / 255)
}

func ycbcrRows(im *image.YCbCr) func(y int, row []uint8) {
	shift := 0
	switch im.SubsampleRatio {
	case image.YCbCrSubsampleRatio422, image.YCbCrSubsampleRatio420:
		shift = 1
	case image.YCbCrSubsampleRatio411, image.YCbCrSubsampleRatio410:
		shift = 2
	case image.YCbCrSubsampleRatio444, image.YCbCrSubsampleRatio440:
	}
	origin := im.Rect.Min
	return func(y int, row []uint8) {
		ys := im.Y[im.YOffset(origin.X, origin.Y+y):][:im.Rect.Dx()]
		c := im.COffset(origin.X, origin.Y+y)
		cb, cr := im.Cb[c:], im.Cr[c:]
		for x, v := range ys {
			row[3*x], row[3*x+1], row[3*x+2] = colour.YCbCrToRGB(v, cb[x>>shift], cr[x>>shift])
		}
	}
}

func palettedRows(im *image.Paletted) func(y int, row []uint8) {
	var rgb [256][3]uint8
	for i, c := range im.Palette[:min(len(im.Palette), len(rgb))] {
		rgb[i] = onWhite64(colour.RGBA64Model.Convert(c).(colour.RGBA64))
	}
	return func(y int, row []uint8) {
		for x, i := range im.Pix[y*im.Stride:][:im.Rect.Dx()] {
			copy(row[3*x:3*x+3], rgb[i][:])
		}
	}
}

// anyRows reads 16-bit, CMYK and all other images that decoders return.
func anyRows(src image.Image) func(y int, row []uint8) {
	origin := src.Bounds().Min
	at := func(x, y int) colour.RGBA64 { return colour.RGBA64Model.Convert(src.At(x, y)).(colour.RGBA64) }
	if direct, ok := src.(image.RGBA64Image); ok { // avoids an allocation for each pixel
		at = direct.RGBA64At
	}
	return func(y int, row []uint8) {
		for x := range src.Bounds().Dx() {
			rgb := onWhite64(at(origin.X+x, origin.Y+y))
			copy(row[3*x:3*x+3], rgb[:])
		}
	}
}

// onWhite64 lays a premultiplied colour of 16 bits a channel on white.
func onWhite64(c colour.RGBA64) [3]uint8 {
	over := 0xffff - c.A
	on := func(v uint16) uint8 { return uint8((min(v, c.A) + over) >> 8) }
	return [3]uint8{on(c.R), on(c.G), on(c.B)}
}

// wipe clears the pixels of an image of the standard library.
func wipe(src image.Image) {
	switch im := src.(type) {
	case *image.YCbCr:
		clear(im.Y)
		clear(im.Cb)
		clear(im.Cr)
	case video:
		wipe(im.YCbCr)
		clear(im.alpha)
	case *image.Gray:
		clear(im.Pix)
	case *image.Gray16:
		clear(im.Pix)
	case *image.RGBA:
		clear(im.Pix)
	case *image.RGBA64:
		clear(im.Pix)
	case *image.NRGBA:
		clear(im.Pix)
	case *image.NRGBA64:
		clear(im.Pix)
	case *image.NYCbCrA:
		wipe(&im.YCbCr)
		clear(im.A)
	case *image.CMYK:
		clear(im.Pix)
	case *image.Paletted:
		clear(im.Pix)
	}
}
