package engine_test

import (
	"image"
	colour "image/color" //nolint:misspell // the standard library spells it so
	"image/draw"
	"math"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/imaging"
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

// covered returns im with a rectangle of one colour.
func covered(im *image.RGBA, r image.Rectangle) *image.RGBA {
	out := image.NewRGBA(im.Rect)
	copy(out.Pix, im.Pix)
	draw.Draw(out, r, image.NewUniform(colour.RGBA{60, 90, 140, 255}), image.Point{}, draw.Src)
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

func TestSpoiltPortraitLosesQuality(t *testing.T) {
	t.Parallel()
	im := portrait(t)
	good, ok := only(t, im)
	if !ok || good.Attributes.Quality < .9 {
		t.Fatalf("portrait: found %v, quality %.2f, want .9 or more", ok, good.Attributes.Quality)
	}
	f := func(name string, most float32, spoilt *image.RGBA) {
		t.Helper()
		bad, ok := only(t, spoilt)
		if ok && bad.Attributes.Quality >= most {
			t.Errorf("%s: quality %.2f, want less than %v", name, bad.Attributes.Quality, most)
		}
	}
	const minimum = .45 // the least that a gallery may ask for
	f("far out of focus", minimum, smeared(smeared(im, square(17)), square(13)))
	f("moved upwards", minimum, smeared(im, line(25, 0, 1)))
	f("moved at a slant", minimum, smeared(im, line(25, .7, .7)))
	f("moved sideways", good.Attributes.Quality-.25, smeared(im, line(25, 1, 0)))
	f("twelve times fewer pixels", minimum, redrawn(im, 25, 30, func(x, y float64) (float64, float64) {
		return 12 * x, 12 * y
	}))
}

func TestSharpFrontalPhotoHasBestQuality(t *testing.T) {
	t.Parallel()
	im, good := closeUp(t, "face_recognition/biden.jpg")
	a := good.Attributes
	eyes := float64(a.LeftEye.X - a.RightEye.X)
	x, y := float64(a.LeftEye.X+a.RightEye.X)/2, float64(a.LeftEye.Y+a.RightEye.Y)/2
	rect := func(left, top, right, bottom float64) image.Rectangle {
		return image.Rect(int(x+left*eyes), int(y+top*eyes), int(x+right*eyes), int(y+bottom*eyes))
	}
	for name, spoilt := range map[string]*image.RGBA{
		"blurred":         smeared(im, square(15)),
		"moved sideways":  smeared(im, line(20, 1, 0)),
		"moved upwards":   smeared(im, line(20, 0, 1)),
		"dark":            shaded(im, .12, 0),
		"too bright":      shaded(im, 2, 40),
		"tiny":            redrawn(im, 30, 36, func(x, y float64) (float64, float64) { return 10 * x, 10 * y }),
		"masked":          covered(im, rect(-1.1, .45, 1.1, 2)),
		"in dark glasses": covered(im, rect(-.95, -.3, .95, .3)),
		"half covered":    covered(im, rect(-2, -2, 0, 2.5)),
		"turned aside":    narrowed(im, x),
	} {
		if bad, ok := only(t, spoilt); ok && bad.Attributes.Quality >= a.Quality {
			t.Errorf("%s: quality %.3f, the sharp one's %.3f", name, bad.Attributes.Quality, a.Quality)
		}
	}
}

// closeUp returns head and shoulders of a portrait, 300 pixels wide, and its face.
func closeUp(t *testing.T, name string) (*image.RGBA, engine.Face) {
	t.Helper()
	r := one(t, name).Attributes.Face
	scale := float64(r.Right-r.Left) / 126 // pixels of the photo for one
	x, y := float64(r.Left+r.Right)/2-150*scale, float64(r.Top+r.Bottom)/2-180*scale
	var p imaging.Pyramid
	whole, err := imaging.Decode(enginetest.Photo(t, name))
	if err != nil {
		t.Fatal(err)
	}
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

func TestQualityFallsWithBlur(t *testing.T) {
	t.Parallel()
	im := portrait(t)
	var all []float32
	for _, n := range []int{1, 5, 9, 13, 17} {
		face, ok := only(t, smeared(im, square(n)))
		if !ok {
			break
		}
		all = append(all, face.Attributes.Quality)
	}
	for i := 1; i < len(all); i++ {
		if all[i] > all[i-1]+.02 {
			t.Errorf("more blur raises the quality: %.3f", all)
		}
	}
	if n := len(all); n > 3 && all[n-1] > all[0]-.2 {
		t.Errorf("blur leaves the quality high: %.3f", all)
	}
}

func TestExtractFindsSmallFaces(t *testing.T) {
	t.Parallel()
	// A group of five in a corner of a wide empty scene: 50 pixels a face, 4 in
	// the detector's view of the whole frame.
	group := pixels(t, "face-api/sample5.jpg")
	scene := redrawn(group, 4000, 2400, func(x, y float64) (float64, float64) {
		return 2.6 * (x - 2900), 2.6 * (y - 1700)
	})
	faces := extract(t, asJPEG(t, scene))
	if len(faces) != 5 {
		t.Fatalf("got %d faces, want 5", len(faces))
	}
	for _, f := range faces {
		if a := f.Attributes.Face; a.Left < 2890 || a.Top < 1690 {
			t.Errorf("a face at %+v, outside the group", a)
		}
	}
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
