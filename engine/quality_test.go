package engine_test

import (
	"image"
	colour "image/color" //nolint:misspell // the standard library spells it so
	"math"
	"math/rand/v2"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/imaging"
	"facet/internal/must"
)

// portrait is the head and shoulders of a portrait, small enough to be changed
// pixel by pixel.
func portrait(tb testing.TB) *image.RGBA {
	src := pixels(tb, "face_recognition/obama.jpg")
	return redrawn(src, 300, 360, func(x, y float64) (float64, float64) { return 250 + 1.6*x, 1.6 * y })
}

// smeared returns im with every pixel the mean of those at the steps.
func smeared(im *image.RGBA, steps []image.Point) *image.RGBA {
	out := image.NewRGBA(im.Rect)
	for y := range im.Rect.Dy() {
		for x := range im.Rect.Dx() {
			var sum [3]int
			for _, s := range steps {
				p := image.Pt(min(max(x+s.X, 0), im.Rect.Dx()-1), min(max(y+s.Y, 0), im.Rect.Dy()-1))
				c := im.RGBAAt(p.X, p.Y)
				sum[0], sum[1], sum[2] = sum[0]+int(c.R), sum[1]+int(c.G), sum[2]+int(c.B)
			}
			n := len(steps)
			out.SetRGBA(x, y, colour.RGBA{uint8(sum[0] / n), uint8(sum[1] / n), uint8(sum[2] / n), 255})
		}
	}
	return out
}

// line are steps along a line of n pixels, square those of a square of n × n.
func line(n int, dx, dy float64) (steps []image.Point) {
	for i := range n {
		at := float64(i - n/2)
		steps = append(steps, image.Pt(int(math.Round(at*dx)), int(math.Round(at*dy))))
	}
	return steps
}

func square(n int) (steps []image.Point) {
	for y := range n {
		for x := range n {
			steps = append(steps, image.Pt(x-n/2, y-n/2))
		}
	}
	return steps
}

// only returns the face of an image of one person; false if none was found.
func only(t *testing.T, im image.Image) (engine.Face, bool) {
	t.Helper()
	faces := extract(t, asPNG(t, im))
	if len(faces) == 0 {
		return engine.Face{}, false
	}
	return faces[0], true
}

// shaded returns im with every value v replaced by k·v + plus.
func shaded(im *image.RGBA, k, plus float64) *image.RGBA {
	out := image.NewRGBA(im.Rect)
	for i, v := range im.Pix {
		out.Pix[i] = uint8(max(0, min(255, k*float64(v)+plus)))
		if i%4 == 3 {
			out.Pix[i] = 255
		}
	}
	return out
}

// narrowed returns im as if the head looked aside: one half of the face squeezed
// towards the nose, the other widened.
func narrowed(im *image.RGBA, middle float64) *image.RGBA {
	return redrawn(im, im.Rect.Dx(), im.Rect.Dy(), func(x, y float64) (float64, float64) {
		if x < middle {
			return middle - 3*(middle-x), y
		}
		return x, y
	})
}

func TestSharpFrontalPhotoHasBestQuality(t *testing.T) {
	t.Parallel()
	im, good := closeUp(t, "face_recognition/obama.jpg")
	a, r := &good.Attributes, rand.New(rand.NewPCG(1, 2))
	if a.Quality < .9 {
		t.Fatalf("quality %.2f, want .9 or more", a.Quality)
	}
	f := func(name string, most float32, spoilt *image.RGBA) {
		t.Helper()
		if bad, ok := only(t, spoilt); ok && bad.Attributes.Quality >= most {
			t.Errorf("%s: quality %.3f, want less than %v", name, bad.Attributes.Quality, most)
		}
	}
	f("far out of focus", qualityMin, smeared(smeared(im, square(17)), square(13)))
	f("moved upwards", qualityMin, smeared(im, line(25, 0, 1)))
	f("moved sideways", a.Quality-.25, smeared(im, line(25, 1, 0)))
	f("twelve times fewer pixels", qualityMin, redrawn(im, 25, 30, func(x, y float64) (float64, float64) {
		return 12 * x, 12 * y
	}))
	f("dark", a.Quality, shaded(im, .12, 0))
	f("too bright", a.Quality, shaded(im, 2, 40))
	f("masked", a.Quality, plainCover(-1.1, .45, 1.1, 2)(im, a, r))
	f("in dark glasses", a.Quality, plainCover(-.95, -.3, .95, .3)(im, a, r))
	f("half covered", a.Quality, plainCover(-2, -2, 0, 2.5)(im, a, r))
	f("turned aside", a.Quality, narrowed(im, float64(a.LeftEye.X+a.RightEye.X)/2))
}

// closeUp returns head and shoulders of a portrait, 300 pixels wide, and its face.
func closeUp(t *testing.T, name string) (*image.RGBA, engine.Face) {
	t.Helper()
	r := one(t, name).Attributes.Face
	scale := float64(r.Right-r.Left) / 126 // pixels of the photo for one
	x, y := float64(r.Left+r.Right)/2-150*scale, float64(r.Top+r.Bottom)/2-180*scale
	var p imaging.Pyramid
	whole, err := imaging.Decode(enginetest.Photo(t, name))
	must.Do(t, err)
	p.Reset(whole)
	crop := imaging.NewImage(300, 360)
	p.Sample(crop, imaging.Affine{A: scale, C: x, E: scale, F: y}, imaging.Replicate)
	im := image.NewRGBA(image.Rect(0, 0, crop.Width, crop.Height))
	for i := range crop.Width * crop.Height {
		copy(im.Pix[4*i:], crop.Pix[3*i:3*i+3])
		im.Pix[4*i+3] = 255
	}
	face, ok := only(t, im)
	if !ok {
		t.Fatalf("%s: no face in the close-up", name)
	}
	return im, face
}

func TestFaceThatFillsImageIsFound(t *testing.T) {
	t.Parallel()
	src := pixels(t, "face_recognition/obama.jpg")
	whole := one(t, "face_recognition/obama.jpg")
	a := whole.Attributes.Face
	side := float64(a.Right - a.Left)
	// From the brows to the chin, then a little more each time.
	for _, grow := range []float64{.1, .2, .4} {
		w := int(side * (1 + 2*grow))
		left, top := float64(a.Left)-grow*side, float64(a.Top)-grow*side
		tight := redrawn(src, w, w, func(x, y float64) (float64, float64) { return left + x, top + y })
		if _, ok := only(t, tight); !ok {
			t.Errorf("grown by %v: no face", grow)
		}
	}
}
