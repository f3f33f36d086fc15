package models

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"math"
	"math/rand/v2"

	"golang.org/x/image/bmp"

	"facet/engine"
	"facet/engine/imaging"
)

// A copy of a photograph shows head and shoulders, copySide pixels wide, with the eyes copyEyes
// pixels apart and the face about 80 wide.
const (
	copySide = 240
	copyEyes = 43
)

// spoiling spoils a copy in one way, of a strength drawn from r.
type spoiling struct {
	name  string
	spoil func(im *imaging.Image, r *rand.Rand) *imaging.Image
}

// between draws a number evenly from lo to hi.
func between(r *rand.Rand, lo, hi float64) float64 { return lo + (hi-lo)*r.Float64() }

// spoilings are the ways in which photographs are usually bad.
var spoilings = []spoiling{
	{"out of focus", func(im *imaging.Image, r *rand.Rand) *imaging.Image {
		half := between(r, .5, 4.5)
		var steps []imaging.Point
		for y := -math.Ceil(half); y <= half; y++ {
			for x := -math.Ceil(half); x <= half; x++ {
				if math.Hypot(x, y) <= half {
					steps = append(steps, imaging.Point{X: x, Y: y})
				}
			}
		}
		return smeared(im, steps)
	}},
	{"moved", func(im *imaging.Image, r *rand.Rand) *imaging.Image {
		sin, cos := math.Sincos(between(r, 0, math.Pi))
		n := math.Round(between(r, 4, 24))
		var steps []imaging.Point
		for i := range int(n) {
			at := float64(i) - (n-1)/2
			steps = append(steps, imaging.Point{X: at * cos, Y: at * sin})
		}
		return smeared(im, steps)
	}},
	{"few pixels", func(im *imaging.Image, r *rand.Rand) *imaging.Image {
		return shrunk(im, copyEyes/between(r, 5, 30))
	}},
	{"dark", func(im *imaging.Image, r *rand.Rand) *imaging.Image { return shaded(im, between(r, .04, .4), 0, 0, r) }},
	{"too bright", func(im *imaging.Image, r *rand.Rand) *imaging.Image {
		return shaded(im, between(r, 1.3, 2.6), between(r, 0, 80), 0, r)
	}},
	{"flat", func(im *imaging.Image, r *rand.Rand) *imaging.Image {
		k := between(r, .1, .5)
		return shaded(im, k, 128*(1-k), 0, r)
	}},
	{"noisy", func(im *imaging.Image, r *rand.Rand) *imaging.Image { return shaded(im, 1, 0, between(r, 8, 60), r) }},
	{"strongly compressed", func(im *imaging.Image, r *rand.Rand) *imaging.Image {
		var text bytes.Buffer
		if err := jpeg.Encode(&text, rgba(im), &jpeg.Options{Quality: 3 + r.IntN(20)}); err != nil {
			return im
		}
		out, err := imaging.Decode(text.Bytes())
		if err != nil {
			return im
		}
		return out
	}},
	{"partly covered", covered},
	{"turned aside", func(im *imaging.Image, r *rand.Rand) *imaging.Image {
		squeeze, left := between(r, 1.5, 3.5), r.IntN(2) == 0
		middle := float64(im.Width) / 2
		return redrawn(im, func(x, y float64) (float64, float64) {
			if x < middle == left {
				return middle - squeeze*(middle-x), y
			}
			return x, y
		})
	}},
}

// copyOf cuts head and shoulders of the face out of a photograph.
func copyOf(photo *imaging.Image, face *engine.Sighting) *imaging.Image {
	var p imaging.Pyramid
	p.Reset(photo)
	out := imaging.NewImage(copySide, copySide)
	p.Sample(out, imaging.Crop(copySide, copySide, face.Middle, face.Eyes/copyEyes, 0), imaging.Replicate)
	return out
}

// shrunk returns im with n times fewer pixels in both directions.
func shrunk(im *imaging.Image, n float64) *imaging.Image {
	var p imaging.Pyramid
	p.Reset(im)
	side := max(1, int(math.Round(float64(im.Width)/n)))
	out := imaging.NewImage(side, side)
	middle := imaging.Point{X: float64(im.Width) / 2, Y: float64(im.Height) / 2}
	p.Sample(out, imaging.Crop(side, side, middle, n, 0), imaging.Replicate)
	return out
}

// at returns the colour of the pixel nearest to x, y.
func at(im *imaging.Image, x, y float64) []uint8 {
	px := min(max(int(math.Round(x)), 0), im.Width-1)
	py := min(max(int(math.Round(y)), 0), im.Height-1)
	return im.Pix[3*(py*im.Width+px):][:3]
}

// redrawn returns an image of im's size whose pixels are those of im at the places that from gives.
func redrawn(im *imaging.Image, from func(x, y float64) (float64, float64)) *imaging.Image {
	out := imaging.NewImage(im.Width, im.Height)
	for y := range out.Height {
		for x := range out.Width {
			fx, fy := from(float64(x), float64(y))
			copy(out.Pix[3*(y*out.Width+x):], at(im, fx, fy))
		}
	}
	return out
}

// smeared returns im with every pixel the mean of those at the steps.
func smeared(im *imaging.Image, steps []imaging.Point) *imaging.Image {
	out := imaging.NewImage(im.Width, im.Height)
	for y := range out.Height {
		for x := range out.Width {
			var sum [3]int
			for _, s := range steps {
				for c, v := range at(im, float64(x)+s.X, float64(y)+s.Y) {
					sum[c] += int(v)
				}
			}
			for c := range sum {
				out.Pix[3*(y*out.Width+x)+c] = uint8(sum[c] / len(steps))
			}
		}
	}
	return out
}

// shaded returns im with every value v replaced by k·v + plus, and noise of the given deviation.
func shaded(im *imaging.Image, k, plus, noise float64, r *rand.Rand) *imaging.Image {
	out := imaging.NewImage(im.Width, im.Height)
	for i, v := range im.Pix {
		w := k*float64(v) + plus
		if noise > 0 {
			w += noise * r.NormFloat64()
		}
		out.Pix[i] = uint8(max(0, min(255, math.Round(w))))
	}
	return out
}

// covered returns im with a rectangle of one colour over a part of the face: the mouth, the eyes or
// one half.
func covered(im *imaging.Image, r *rand.Rand) *imaging.Image {
	middle := float64(im.Width) / 2
	eyes := middle - .4*copyEyes // the height of the eyes; see engine.Sighting.Middle
	places := [...][4]float64{
		{-1.1, .45, 1.1, 2},
		{-.95, -.3, .95, .3},
		{-2, -2, 0, 2.5},
		{0, -2, 2, 2.5},
	}
	p := places[r.IntN(len(places))]
	colour := uint8(r.IntN(256))
	out := imaging.NewImage(im.Width, im.Height)
	copy(out.Pix, im.Pix)
	for y := range out.Height {
		for x := range out.Width {
			right, down := (float64(x)-middle)/copyEyes, (float64(y)-eyes)/copyEyes
			if right >= p[0] && right <= p[2] && down >= p[1] && down <= p[3] {
				px := out.Pix[3*(y*out.Width+x):][:3]
				px[0], px[1], px[2] = colour, colour, colour
			}
		}
	}
	return out
}

// scrambled returns im with its square blocks in another order. Eyes, nose and mouth are still
// there, but no face.
func scrambled(im *imaging.Image, r *rand.Rand) *imaging.Image {
	side := max(1, min(im.Width, im.Height)*(8+r.IntN(12))/100)
	across, down := im.Width/side, im.Height/side
	out := imaging.NewImage(im.Width, im.Height)
	copy(out.Pix, im.Pix)
	for i, j := range r.Perm(across * down) {
		to, from := (i/across*im.Width+i%across)*side, (j/across*im.Width+j%across)*side
		for y := range side {
			copy(out.Pix[3*(to+y*im.Width):][:3*side], im.Pix[3*(from+y*im.Width):][:3*side])
		}
	}
	return out
}

// rgba returns im for encoders of the standard library.
func rgba(im *imaging.Image) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, im.Width, im.Height))
	for i := range im.Width * im.Height {
		copy(out.Pix[4*i:], im.Pix[3*i:3*i+3])
		out.Pix[4*i+3] = 255
	}
	return out
}

// encoded returns the bytes of an image file of im.
func encoded(im *imaging.Image) ([]byte, error) {
	var text bytes.Buffer
	if err := bmp.Encode(&text, rgba(im)); err != nil {
		return nil, fmt.Errorf("encode a copy: %w", err)
	}
	return text.Bytes(), nil
}
