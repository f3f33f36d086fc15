package imaging

import "math"

const (
	levelsMax = 14 // 12,000 pixels halved to 1

	fraction = 16 // bits of a sampling position below the pixel
	weight   = 8  // bits of a bilinear weight
)

// Edge says what is outside an image.
type Edge int

// The edges.
const (
	// Replicate continues the nearest pixel of the border.
	Replicate Edge = iota
	// Grey is 127 in all channels.
	Grey
)

const grey = 127

// Pyramid is an image with its halves, quarters and so on, made when first needed. It reuses its
// memory for the next image. It is not safe for concurrent use.
type Pyramid struct {
	levels [levelsMax]Image
	n      int
	base   *Image
}

// Reset makes im the pyramid's image, which the pyramid reads until the next Reset.
func (p *Pyramid) Reset(im *Image) { p.base, p.n = im, 1 }

// Free frees the memory of the halved images.
func (p *Pyramid) Free() { *p = Pyramid{base: p.base, n: 1} }

// Clear overwrites the halved images with zeros.
func (p *Pyramid) Clear() {
	for i := range p.levels {
		p.levels[i].Clear()
	}
}

// Image returns the image of the last Reset.
func (p *Pyramid) Image() *Image { return p.base }

// level returns the image at 2⁻ⁿ of its size.
func (p *Pyramid) level(n int) *Image {
	for p.n <= n {
		p.at(p.n - 1).halveInto(&p.levels[p.n])
		p.n++
	}
	return p.at(n)
}

func (p *Pyramid) at(n int) *Image {
	if n == 0 {
		return p.base
	}
	return &p.levels[n]
}

// levelFor returns the level to read when one output pixel is scale source pixels: the coarsest
// whose pixels are not larger than an output pixel.
func (p *Pyramid) levelFor(scale float64) int {
	n := 0
	w, h := p.base.Width, p.base.Height
	for scale >= 2 && n+1 < levelsMax && w >= 4 && h >= 4 {
		scale, w, h, n = scale/2, w/2, h/2, n+1
	}
	return n
}

// Sample fills dst: its pixel at (x, y) is the image at m(x, y), interpolated bilinearly. Where m
// shrinks by two or more it reads a halved image, so that it skips no pixel.
func (p *Pyramid) Sample(dst *Image, m Affine, edge Edge) {
	n := p.levelFor(m.Scale())
	src := p.level(n)
	shrink := math.Ldexp(1, -n)
	// From centre to centre on that level: (m(x+½, y+½))·shrink − ½.
	start := m.Apply(Point{X: .5, Y: .5})
	x0, y0 := start.X*shrink-.5, start.Y*shrink-.5
	ax, ay := m.A*shrink, m.D*shrink
	bx, by := m.B*shrink, m.E*shrink
	for y := range dst.Height {
		row := dst.Pix[3*dst.Width*y:][:3*dst.Width]
		x, yy := x0+float64(bx*float64(y)), y0+float64(by*float64(y))
		sampleRow(row, src, fixed(x), fixed(yy), fixed(ax), fixed(ay), edge)
	}
}

// fixed converts to fixed point, clamped far outside every image.
func fixed(x float64) int {
	const far = 1 << 24
	if !(x > -far) {
		x = -far
	}
	return int(math.Round(math.Ldexp(min(x, far), fraction)))
}

// sampleRow fills one output row from position (x, y) of src on in steps of (dx, dy), all in fixed
// point.
func sampleRow(row []uint8, src *Image, x, y, dx, dy int, edge Edge) {
	const one = 1 << weight
	w, h, stride := src.Width, src.Height, 3*src.Width
	for ; len(row) >= 3; row, x, y = row[3:], x+dx, y+dy {
		ix, iy := x>>fraction, y>>fraction
		fx := uint(x>>(fraction-weight)) & (one - 1)
		fy := uint(y>>(fraction-weight)) & (one - 1)
		if uint(ix) >= uint(w-1) || uint(iy) >= uint(h-1) {
			if edge == Grey && (uint(ix+1) > uint(w) || uint(iy+1) > uint(h)) {
				row[0], row[1], row[2] = grey, grey, grey // all neighbours are outside
			} else {
				sampleEdge(row, src, ix, iy, fx, fy, edge)
			}
			continue
		}
		at := iy*stride + 3*ix
		a, b := src.Pix[at:at+6:at+6], src.Pix[at+stride:at+stride+6]
		w11 := fx * fy
		w10 := fy*one - w11 // lower left
		w01 := fx*one - w11 // upper right
		w00 := one*one - fx*one - fy*one + w11
		row[0] = uint8((uint(a[0])*w00 + uint(a[3])*w01 + uint(b[0])*w10 + uint(b[3])*w11 + one*one/2) >> (2 * weight))
		row[1] = uint8((uint(a[1])*w00 + uint(a[4])*w01 + uint(b[1])*w10 + uint(b[4])*w11 + one*one/2) >> (2 * weight))
		row[2] = uint8((uint(a[2])*w00 + uint(a[5])*w01 + uint(b[2])*w10 + uint(b[5])*w11 + one*one/2) >> (2 * weight))
	}
}

// sampleEdge is sampleRow for one pixel with a neighbour outside.
func sampleEdge(px []uint8, src *Image, ix, iy int, fx, fy uint, edge Edge) {
	const one = 1 << weight
	for c := range 3 {
		v := src.value(ix, iy, c, edge)*(one-fx)*(one-fy) + src.value(ix+1, iy, c, edge)*fx*(one-fy) +
			src.value(ix, iy+1, c, edge)*(one-fx)*fy + src.value(ix+1, iy+1, c, edge)*fx*fy
		px[c] = uint8((v + one*one/2) >> (2 * weight))
	}
}

func (im *Image) value(x, y, c int, edge Edge) uint {
	if edge == Grey && (uint(x) >= uint(im.Width) || uint(y) >= uint(im.Height)) {
		return grey
	}
	x, y = min(max(x, 0), im.Width-1), min(max(y, 0), im.Height-1)
	return uint(im.Pix[3*(y*im.Width+x)+c])
}
