package heif

import (
	"errors"
	"fmt"
	"image"
)

// planes is the layout of a picture in the module's memory.
type planes struct {
	answers
	ratio            image.YCbCrSubsampleRatio
	stride, cStride  int
	chromaRows, size int
}

// planes returns the layout of a picture.
func (a answers) planes() (planes, error) {
	if a.width < 1 || a.height < 1 || a.width > sideMax || a.height > sideMax {
		return planes{}, errors.New("its size is impossible")
	}
	p := planes{answers: a}
	width, height := int(a.width), int(a.height)
	switch a.space {
	case spaceGrey:
		p.stride = stride(width)
	case spaceRGB:
		p.stride = 4 * stride(width)
	case spaceYCbCr:
		p.stride, p.cStride, p.chromaRows = stride(width), stride(width), height
		switch a.chroma {
		case chroma420:
			p.ratio = image.YCbCrSubsampleRatio420
			p.cStride, p.chromaRows = stride((width+1)/2), (height+1)/2
		case chroma422:
			p.ratio = image.YCbCrSubsampleRatio422
			p.cStride = stride((width + 1) / 2)
		case chroma444:
			p.ratio = image.YCbCrSubsampleRatio444
		default:
			return planes{}, fmt.Errorf("its chroma format (%d) is not read", a.chroma)
		}
	default:
		return planes{}, fmt.Errorf("its colours (%d) are not read", a.space)
	}
	p.size = p.stride*height + 2*p.cStride*p.chromaRows
	return p, nil
}

// stride returns how many samples libheif keeps for a row of n.
func stride(n int) int { return (max(n, planeLeast) + planeAlign - 1) &^ (planeAlign - 1) }

// image returns the picture over its memory.
func (p planes) image(pix []byte) image.Image {
	r := image.Rect(0, 0, int(p.width), int(p.height))
	switch {
	case p.space == spaceGrey:
		return &image.Gray{Pix: pix, Stride: p.stride, Rect: r}
	case p.space == spaceRGB && p.premultiplied == 1:
		return &image.RGBA{Pix: pix, Stride: p.stride, Rect: r}
	case p.space == spaceRGB:
		return &image.NRGBA{Pix: pix, Stride: p.stride, Rect: r}
	}
	luma, chroma := p.stride*r.Dy(), p.cStride*p.chromaRows
	return &image.YCbCr{
		Y: pix[:luma], Cb: pix[luma : luma+chroma], Cr: pix[luma+chroma:],
		YStride: p.stride, CStride: p.cStride, SubsampleRatio: p.ratio, Rect: r,
	}
}
