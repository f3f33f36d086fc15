package heif

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
)

// planes is the layout of a picture in the module's memory.
type planes struct {
	answers
	ratio            image.YCbCrSubsampleRatio
	stride, cStride  int // in samples
	chromaRows, size int
	bits             int64 // of a sample; above 8 it has two bytes
}

// planes returns the layout of a picture whose samples have so many bits in the decoder.
func (a answers) planes(bits int64) (planes, error) {
	if a.width < 1 || a.height < 1 || a.width > sideMax || a.height > sideMax {
		return planes{}, errors.New("its size is impossible")
	}
	p := planes{answers: a, bits: 8}
	width, height := int(a.width), int(a.height)
	if a.space == spaceGrey || a.space == spaceYCbCr && a.chroma == chroma444 {
		p.bits = bits // libheif converts to 8 bits only where it converts anyway
	}
	switch a.space {
	case spaceGrey:
		p.stride = p.samples(width)
	case spaceRGB:
		p.stride = 4 * p.samples(width)
	case spaceYCbCr:
		p.stride, p.cStride, p.chromaRows = p.samples(width), p.samples(width), height
		switch a.chroma {
		case chroma420:
			p.ratio = image.YCbCrSubsampleRatio420
			p.cStride, p.chromaRows = p.samples((width+1)/2), (height+1)/2
		case chroma422:
			p.ratio = image.YCbCrSubsampleRatio422
			p.cStride = p.samples((width + 1) / 2)
		case chroma444:
			p.ratio = image.YCbCrSubsampleRatio444
		default:
			return planes{}, fmt.Errorf("its chroma format (%d) is not read", a.chroma)
		}
	default:
		return planes{}, fmt.Errorf("its colours (%d) are not read", a.space)
	}
	p.size = (p.stride*height + 2*p.cStride*p.chromaRows) * p.sampleBytes()
	return p, nil
}

func (p planes) sampleBytes() int {
	if p.bits > 8 {
		return 2
	}
	return 1
}

// samples returns how many samples libheif keeps for a row of n.
func (p planes) samples(n int) int {
	align := planeAlign / p.sampleBytes()
	return (max(n, planeLeast) + align - 1) &^ (align - 1)
}

// narrow keeps the upper 8 bits of each sample, in place. The module is little-endian.
func (p planes) narrow(pix []byte) []byte {
	if p.bits <= 8 {
		return pix
	}
	for i := range len(pix) / 2 {
		pix[i] = byte(binary.LittleEndian.Uint16(pix[2*i:]) >> (p.bits - 8))
	}
	return pix[:len(pix)/2]
}

// image returns the picture over its memory.
func (p planes) image(pix []byte) image.Image {
	pix = p.narrow(pix)
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
