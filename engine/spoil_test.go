package engine_test

import (
	"image"
	colour "image/color" //nolint:misspell // the standard library spells it so
	"math"
	"math/rand/v2"

	"facet/engine"
)

// cut moves the face so that a share of its area lies outside, on any side.
func cut(share float64) func(*image.RGBA, *engine.Attributes, *rand.Rand) *image.RGBA {
	return func(im *image.RGBA, a *engine.Attributes, r *rand.Rand) *image.RGBA {
		side := share * float64(a.Face.Right-a.Face.Left)
		left, top, right, bottom := 0, 0, im.Rect.Dx(), im.Rect.Dy()
		switch r.IntN(4) {
		case 0:
			left = int(float64(a.Face.Left) + side)
		case 1:
			right = int(float64(a.Face.Right) - side)
		case 2:
			top = int(float64(a.Face.Top) + side)
		default:
			bottom = int(float64(a.Face.Bottom) - side)
		}
		return redrawn(im, right-left, bottom-top, func(x, y float64) (float64, float64) {
			return float64(left) + x, float64(top) + y
		})
	}
}

func turnedOver(im *image.RGBA, _ *engine.Attributes, _ *rand.Rand) *image.RGBA {
	w, h := im.Rect.Dx(), im.Rect.Dy()
	return redrawn(im, w, h, func(x, y float64) (float64, float64) { return float64(w) - 1 - x, float64(h) - 1 - y })
}

// meanOf returns the mean of the green values of the face.
func meanOf(im *image.RGBA, a *engine.Attributes) float64 {
	var sum, n float64
	for y := int(a.Face.Top); y < int(a.Face.Bottom); y++ {
		for x := int(a.Face.Left); x < int(a.Face.Right); x++ {
			sum += float64(im.RGBAAt(x, y).G)
			n++
		}
	}
	return sum / n
}

// darkened returns the image so dark that the face has a mean of 10 to 24 of 255, with a sensor's noise.
func darkened(im *image.RGBA, a *engine.Attributes, r *rand.Rand) *image.RGBA {
	want, gamma, noise := 10+14*r.Float64(), 1+r.Float64(), 2+3*r.Float64()
	gain := want / math.Pow(meanOf(im, a)/255, gamma)
	out := image.NewRGBA(im.Rect)
	for i := 0; i < len(im.Pix); i += 4 {
		e := noise * r.NormFloat64()
		for k := range 3 {
			out.Pix[i+k] = uint8(max(0, min(255, math.Round(gain*math.Pow(float64(im.Pix[i+k])/255, gamma)+e))))
		}
		out.Pix[i+3] = 255
	}
	return out
}

// movedBy blurs along a line whose length is a share of the eye distance, in any direction.
func movedBy(share float64) func(*image.RGBA, *engine.Attributes, *rand.Rand) *image.RGBA {
	return func(im *image.RGBA, a *engine.Attributes, r *rand.Rand) *image.RGBA {
		const steps = 33
		n := share * math.Hypot(float64(a.LeftEye.X-a.RightEye.X), float64(a.LeftEye.Y-a.RightEye.Y))
		sin, cos := math.Sincos(r.Float64() * math.Pi)
		out := image.NewRGBA(im.Rect)
		for y := range im.Rect.Dy() {
			for x := range im.Rect.Dx() {
				var sum [3]float64
				for i := range steps {
					t := (float64(i)/(steps-1) - .5) * n
					for k, v := range between(im, float64(x)+t*cos, float64(y)+t*sin) {
						sum[k] += v / steps
					}
				}
				out.SetRGBA(x, y, colour.RGBA{uint8(sum[0] + .5), uint8(sum[1] + .5), uint8(sum[2] + .5), 255})
			}
		}
		return out
	}
}

// between returns the colour between four pixels.
func between(im *image.RGBA, x, y float64) (c [3]float64) {
	x0, y0 := math.Floor(x), math.Floor(y)
	for _, d := range [...][2]float64{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
		weight := (1 - math.Abs(x-x0-d[0])) * (1 - math.Abs(y-y0-d[1]))
		px := im.RGBAAt(min(max(int(x0+d[0]), 0), im.Rect.Dx()-1), min(max(int(y0+d[1]), 0), im.Rect.Dy()-1))
		c[0], c[1], c[2] = c[0]+weight*float64(px.R), c[1]+weight*float64(px.G), c[2]+weight*float64(px.B)
	}
	return c
}

// painted covers a part of the face: at returns the grey value at a place, in eye distances right and
// down of the middle between the eyes as seen on an upright face, or false.
func painted(im *image.RGBA, a *engine.Attributes, r *rand.Rand, at func(x, y float64) (float64, bool)) *image.RGBA {
	ex, ey := float64(a.LeftEye.X-a.RightEye.X), float64(a.LeftEye.Y-a.RightEye.Y)
	eyes := math.Hypot(ex, ey)
	mx, my := float64(a.LeftEye.X+a.RightEye.X)/2, float64(a.LeftEye.Y+a.RightEye.Y)/2
	out := image.NewRGBA(im.Rect)
	copy(out.Pix, im.Pix)
	for y := range im.Rect.Dy() {
		for x := range im.Rect.Dx() {
			dx, dy := (float64(x)-mx)/eyes, (float64(y)-my)/eyes
			if v, ok := at((dx*ex+dy*ey)/eyes, (dy*ex-dx*ey)/eyes); ok {
				g := uint8(max(0, min(255, v+2*r.NormFloat64())))
				out.SetRGBA(x, y, colour.RGBA{g, g, g, 255})
			}
		}
	}
	return out
}

// plainCover paints a rectangle, nearly black, grey, as bright as the skin or nearly white.
func plainCover(left, top, right, bottom float64) func(*image.RGBA, *engine.Attributes, *rand.Rand) *image.RGBA {
	return func(im *image.RGBA, a *engine.Attributes, r *rand.Rand) *image.RGBA {
		v := []float64{25, 128, meanOf(im, a), 210}[r.IntN(4)]
		return painted(im, a, r, func(x, y float64) (float64, bool) {
			return v, x > left && x < right && y > top && y < bottom
		})
	}
}

// masked paints a mask with folds over nose and mouth.
func masked(im *image.RGBA, a *engine.Attributes, r *rand.Rand) *image.RGBA {
	v, top, folds := 60+160*r.Float64(), .3+.2*r.Float64(), 4+4*r.Float64()
	return painted(im, a, r, func(x, y float64) (float64, bool) {
		return v * (1 - .25*x*x) * (1 + .06*math.Sin(2*math.Pi*folds*y/1.5)),
			y > top+.25*x*x && y < 1.85 && math.Abs(x) < 1.05-.35*max(0, y-1)
	})
}

// handed paints what is as bright as the skin, with the shades of fingers, over mouth and one cheek.
func handed(im *image.RGBA, a *engine.Attributes, r *rand.Rand) *image.RGBA {
	v, side := meanOf(im, a)*(.9+.25*r.Float64()), float64(1-2*r.IntN(2))
	return painted(im, a, r, func(x, y float64) (float64, bool) {
		return v * (1 + .12*math.Sin(9*(x+.3*y))), y > .35 && y < 1.8 && x*side > -.75 && x*side < 1.3
	})
}

// dimmed paints dark glasses.
func dimmed(im *image.RGBA, a *engine.Attributes, r *rand.Rand) *image.RGBA {
	v, shade := 12+40*r.Float64(), 40*r.Float64()
	wide, high := .38+.1*r.Float64(), .26+.1*r.Float64()
	return painted(im, a, r, func(x, y float64) (float64, bool) {
		lens := math.Pow(math.Abs(math.Abs(x)-.5)/wide, 2.5)+math.Pow(math.Abs(y-.05)/high, 2.5) < 1
		return v + shade*(y+.3), lens || math.Abs(x) < 1 && math.Abs(y+.12) < .04
	})
}
