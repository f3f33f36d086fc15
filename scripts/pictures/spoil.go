package main

import (
	"image"
	colour "image/color" //nolint:misspell // the standard library spells it so
	"image/draw"
	"math"

	xdraw "golang.org/x/image/draw"
	"golang.org/x/image/math/f64"
)

// turn returns im turned clockwise about its middle, in a frame that holds it.
func turn(im *image.RGBA, degrees float64) *image.RGBA {
	w, h := float64(im.Rect.Dx()), float64(im.Rect.Dy())
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	tw := math.Round(math.Abs(cos)*w + math.Abs(sin)*h)
	th := math.Round(math.Abs(sin)*w + math.Abs(cos)*h)
	out := image.NewRGBA(image.Rect(0, 0, int(tw), int(th)))
	draw.Draw(out, out.Rect, image.NewUniform(paper), image.Point{}, draw.Src)
	xdraw.BiLinear.Transform(out, f64.Aff3{
		cos, -sin, tw/2 - cos*w/2 + sin*h/2,
		sin, cos, th/2 - sin*w/2 - cos*h/2,
	}, im, im.Rect, draw.Src, nil)
	return out
}

// smear returns im with every pixel the mean of wide × high about it.
func smear(im *image.RGBA, wide, high int) *image.RGBA {
	out := image.NewRGBA(im.Rect)
	last := image.Pt(im.Rect.Max.X-1, im.Rect.Max.Y-1)
	for y := range im.Rect.Dy() {
		for x := range im.Rect.Dx() {
			var sum [3]int
			for dy := -high / 2; dy <= high/2; dy++ {
				for dx := -wide / 2; dx <= wide/2; dx++ {
					c := im.RGBAAt(min(max(x+dx, 0), last.X), min(max(y+dy, 0), last.Y))
					sum[0], sum[1], sum[2] = sum[0]+int(c.R), sum[1]+int(c.G), sum[2]+int(c.B)
				}
			}
			n := (2*(wide/2) + 1) * (2*(high/2) + 1)
			out.SetRGBA(x, y, colour.RGBA{uint8(sum[0] / n), uint8(sum[1] / n), uint8(sum[2] / n), 255})
		}
	}
	return out
}

func darken(im *image.RGBA, by float64) *image.RGBA {
	out := image.NewRGBA(im.Rect)
	for i, v := range im.Pix {
		out.Pix[i] = uint8(by * float64(v))
		if i%4 == 3 {
			out.Pix[i] = v
		}
	}
	return out
}
