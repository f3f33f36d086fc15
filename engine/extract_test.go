package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	colour "image/color" //nolint:misspell // the standard library spells it so
	"image/draw"
	"image/jpeg"
	"image/png"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	scale "golang.org/x/image/draw"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/score"
	"facet/internal/must"
)

func extract(tb testing.TB, data []byte) []engine.Face {
	tb.Helper()
	faces, err := enginetest.Shared(tb).Extract(context.Background(), data)
	must.Do(tb, err)
	return faces
}

// photographed contains the faces of each sample photo that a test has asked for.
var photographed struct {
	sync.Mutex
	by map[string][]engine.Face
}

// photo returns the faces that the shared engine finds in a sample photo. The caller must not change
// them.
func photo(tb testing.TB, name string) []engine.Face {
	tb.Helper()
	photographed.Lock()
	defer photographed.Unlock()
	faces, ok := photographed.by[name]
	if !ok {
		faces = extract(tb, enginetest.Photo(tb, name))
		if photographed.by == nil {
			photographed.by = map[string][]engine.Face{}
		}
		photographed.by[name] = faces
	}
	return faces
}

func one(tb testing.TB, name string) engine.Face {
	tb.Helper()
	faces := photo(tb, name)
	if len(faces) != 1 {
		tb.Fatalf("%s: got %d faces, want 1", name, len(faces))
	}
	return faces[0]
}

// person is a face of a sample photo and whose it is.
type person struct {
	photo, who string
	face       engine.Face
}

// everybody are all the faces of the sample photos. The women of the group
// photos that are on two of them have one name.
func everybody(t *testing.T) []person {
	t.Helper()
	var all []person
	for _, name := range enginetest.Obama {
		all = append(all, person{name, "obama", one(t, name)})
	}
	for _, name := range enginetest.Others {
		all = append(all, person{name, name, one(t, name)})
	}
	return all
}

func TestSamplePairsSplitAt7000(t *testing.T) {
	t.Parallel()
	e := enginetest.Shared(t)
	all := everybody(t)
	for _, name := range slices.Sorted(maps.Keys(enginetest.Groups)) {
		for _, f := range photo(t, name) {
			all = append(all, person{name, "group", f})
		}
	}
	for i, a := range all {
		for _, b := range all[:i] {
			if a.who == "group" && b.who == "group" && a.photo != b.photo {
				continue // the same women may be on several of these photos
			}
			got := e.Compare(a.face.Template, b.face.Template)
			if back := e.Compare(b.face.Template, a.face.Template); back != got {
				t.Errorf("%s, %s: %d one way, %d the other", a.photo, b.photo, got, back)
			}
			if same := a.who == b.who && a.who != "group"; same != (got >= 7000) {
				t.Errorf("%s (%s), %s (%s): score %d, cosine %.3f", a.photo, a.who, b.photo, b.who, got,
					score.Dot(a.face.Template, b.face.Template))
			}
		}
		if got := e.Compare(a.face.Template, a.face.Template); got != score.Max {
			t.Errorf("%s with itself: got %d, want %d", a.photo, got, score.Max)
		}
	}
}

func TestPortraitsHaveGoodQuality(t *testing.T) {
	t.Parallel()
	for _, p := range everybody(t) {
		a := p.face.Attributes
		if a.Score < .9 {
			t.Errorf("%s: likeness %.3f, want .9 or more", p.photo, a.Score)
		}
		if a.Quality < .45 {
			t.Errorf("%s: quality %.3f, want .45 or more", p.photo, a.Quality)
		}
	}
}

func TestGroupFacesComeLargestFirst(t *testing.T) {
	t.Parallel()
	for name, want := range enginetest.Groups {
		faces := photo(t, name)
		if len(faces) != want {
			t.Errorf("%s: got %d faces, want %d", name, len(faces), want)
		}
		for i := 1; i < len(faces); i++ {
			a, b := faces[i-1].Attributes.Face, faces[i].Attributes.Face
			if b.Right-b.Left > a.Right-a.Left+1 {
				t.Errorf("%s: face %d is wider than face %d", name, i, i-1)
			}
		}
	}
}

// The search turns a picture without faces itself, so one picture turned by hand is enough.
func TestFacelessPicturesHaveNoFace(t *testing.T) {
	t.Parallel()
	check := func(name string, faces []engine.Face) {
		t.Helper()
		if len(faces) != 0 {
			t.Errorf("%s: got %d faces, the first %+v", name, len(faces), faces[0].Attributes)
		}
	}
	none := func(name string, data []byte) { t.Helper(); check(name, extract(t, data)) }
	for _, name := range enginetest.Faceless[:3] {
		check(name, photo(t, name))
	}
	cat := "scikit-image/chelsea.png"
	none(cat+" on its side", asJPEG(t, turnedFrame(pixels(t, cat), 90)))
	for _, size := range []image.Point{{16, 16}, {16, 4000}} {
		none(fmt.Sprint("blank of ", size), asPNG(t, image.NewGray(image.Rectangle{Max: size})))
	}
	r := rand.New(rand.NewPCG(1, 2))
	const grain = 16
	im := image.NewRGBA(image.Rect(0, 0, 384, 288))
	for y := 0; y < 288; y += grain {
		for x := 0; x < 384; x += grain {
			c := colour.RGBA{uint8(r.IntN(256)), uint8(r.IntN(256)), uint8(r.IntN(256)), 255}
			draw.Draw(im, image.Rect(x, y, x+grain, y+grain), image.NewUniform(c), image.Point{}, draw.Src)
		}
	}
	none("noise", asPNG(t, im))
}

func TestFacesOf32PixelsAreFound(t *testing.T) {
	t.Parallel()
	name := "scikit-image/astronaut.png"
	im := pixels(t, name)
	a := one(t, name).Attributes.Face
	shrink := float64(a.Right-a.Left) / 32
	w, h := int(float64(im.Rect.Dx())/shrink), int(float64(im.Rect.Dy())/shrink)
	small := redrawn(im, w, h, func(x, y float64) (float64, float64) { return x * shrink, y * shrink })
	// In a corner of a plain picture, where it has 3 pixels of the detector's view of the whole.
	scene := redrawn(small, 3200, 2400, func(x, y float64) (float64, float64) { return x - 3000, y - 2200 })
	for _, im := range []*image.RGBA{small, scene} {
		if faces := extract(t, asPNG(t, im)); len(faces) != 1 {
			t.Errorf("%v: got %d faces, want 1", im.Rect.Max, len(faces))
		}
	}
}

func TestAttributesAreInRange(t *testing.T) {
	t.Parallel()
	names := append(slices.Sorted(maps.Keys(enginetest.Groups)), enginetest.Obama...)
	for _, name := range append(names, enginetest.Others...) {
		c, _, err := image.DecodeConfig(bytes.NewReader(enginetest.Photo(t, name)))
		must.Do(t, err)
		for i, f := range photo(t, name) {
			checkAttributes(t, name, i, f, c)
		}
	}
}

func checkAttributes(t *testing.T, name string, i int, f engine.Face, c image.Config) {
	t.Helper()
	a := f.Attributes
	inside := func(what string, r engine.Rect) {
		if r.Left < 0 || r.Top < 0 || r.Right > float32(c.Width) || r.Bottom > float32(c.Height) || r.Left >= r.Right || r.Top >= r.Bottom {
			t.Errorf("%s, face %d: %s %+v is not in %d × %d", name, i, what, r, c.Width, c.Height)
		}
	}
	inside("face", a.Face)
	inside("head", a.Head)
	if a.Head.Left > a.Face.Left || a.Head.Top > a.Face.Top || a.Head.Right < a.Face.Right || a.Head.Bottom < a.Face.Bottom {
		t.Errorf("%s, face %d: head %+v does not hold the face %+v", name, i, a.Head, a.Face)
	}
	for _, eye := range []engine.Point{a.RightEye, a.LeftEye} {
		if eye.X < a.Face.Left || eye.X > a.Face.Right || eye.Y < a.Face.Top || eye.Y > a.Face.Bottom {
			t.Errorf("%s, face %d: eye %+v is not in the face %+v", name, i, eye, a.Face)
		}
	}
	for _, v := range []float32{a.Score, a.Frontal, a.Quality} {
		if !(v >= 0 && v <= 1) {
			t.Errorf("%s, face %d: %v is not from 0 to 1", name, i, v)
		}
	}
	if math.Abs(float64(a.Roll)) > 180 || math.Abs(float64(a.Pan)) > 90 || math.Abs(float64(a.Tilt)) > 90 {
		t.Errorf("%s, face %d: roll %v, pan %v, tilt %v", name, i, a.Roll, a.Pan, a.Tilt)
	}
	if want := math.Atan2(float64(a.RightEye.Y-a.LeftEye.Y), float64(a.LeftEye.X-a.RightEye.X)) * 180 / math.Pi; math.Abs(want-float64(a.Roll)) > 1 && a.Face.Left > 0 {
		t.Errorf("%s, face %d: roll %.1f, the eyes say %.1f", name, i, a.Roll, want)
	}
	if norm := math.Sqrt(float64(score.Dot(f.Template, f.Template))); math.Abs(norm-1) > 1e-5 || len(f.Template) != 192 {
		t.Errorf("%s, face %d: template of %d numbers and norm %v", name, i, len(f.Template), norm)
	}
}

// pixels returns a sample photo's pixels.
func pixels(tb testing.TB, name string) *image.RGBA {
	tb.Helper()
	return enginetest.RGBA(tb, enginetest.Photo(tb, name))
}

// halved returns a picture with both sides halved: there is less to search, and the faces of the
// sample photos are still larger than the models need.
func halved(im *image.RGBA) *image.RGBA {
	half := image.NewRGBA(image.Rect(0, 0, im.Rect.Dx()/2, im.Rect.Dy()/2))
	scale.ApproxBiLinear.Scale(half, half.Rect, im, im.Rect, draw.Src, nil)
	return half
}

// redrawn returns a w × h image whose pixel (x, y) is src at from(x, y), white
// outside.
func redrawn(src *image.RGBA, w, h int, from func(x, y float64) (float64, float64)) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			sx, sy := from(float64(x)+.5, float64(y)+.5)
			p := image.Pt(int(math.Floor(sx)), int(math.Floor(sy)))
			if p.In(src.Rect) {
				out.SetRGBA(x, y, src.RGBAAt(p.X, p.Y))
			} else {
				copy(out.Pix[out.PixOffset(x, y):], []byte{255, 255, 255, 255})
			}
		}
	}
	return out
}

func mirrored(src *image.RGBA) *image.RGBA {
	w, h := src.Rect.Dx(), src.Rect.Dy()
	return redrawn(src, w, h, func(x, y float64) (float64, float64) { return float64(w) - x, y })
}

func asPNG(tb testing.TB, im image.Image) []byte {
	tb.Helper()
	var out bytes.Buffer
	must.Do(tb, (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, im))
	return out.Bytes()
}

func asJPEG(tb testing.TB, im image.Image) []byte {
	tb.Helper()
	var out bytes.Buffer
	must.Do(tb, jpeg.Encode(&out, im, &jpeg.Options{Quality: 95}))
	return out.Bytes()
}

func TestMirroredImageMirrorsPanAndRoll(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"face-api/sample5.jpg"} {
		im := halved(pixels(t, name))
		w := float32(im.Rect.Dx())
		before, after := extract(t, asPNG(t, im)), extract(t, asPNG(t, mirrored(im)))
		if len(before) != len(after) {
			t.Errorf("%s: %d faces, mirrored %d", name, len(before), len(after))
			continue
		}
		for i, f := range before {
			a, b := f.Attributes, nearest(after, w-middle(f.Attributes), f.Attributes).Attributes
			near := func(what string, got, want, within float32) {
				t.Helper()
				if d := got - want; d > within || d < -within {
					t.Errorf("%s, face %d: mirrored %s is %.2f, want %.2f ± %.2f", name, i, what, got, want, within)
				}
			}
			side := a.Face.Right - a.Face.Left
			near("pan", b.Pan, -a.Pan, 5)
			near("roll", b.Roll, -a.Roll, 4)
			near("tilt", b.Tilt, a.Tilt, 5)
			near("right eye", b.RightEye.X, w-a.LeftEye.X, .05*side)
			near("left eye", b.LeftEye.Y, a.RightEye.Y, .05*side)
			near("quality", b.Quality, a.Quality, .1)
		}
	}
}

func middle(a engine.Attributes) float32 { return (a.RightEye.X + a.LeftEye.X) / 2 }

// nearest returns the face whose eyes' middle is nearest to x and a's height.
func nearest(faces []engine.Face, x float32, a engine.Attributes) engine.Face {
	return slices.MinFunc(faces, func(f, g engine.Face) int {
		far := func(f engine.Face) float64 {
			return math.Hypot(float64(middle(f.Attributes)-x), float64(f.Attributes.RightEye.Y-a.RightEye.Y))
		}
		if far(f) < far(g) {
			return -1
		}
		return 1
	})
}

func TestFacesAsideHavePan(t *testing.T) {
	t.Parallel()
	// What a person sees on sample5: the woman on the stairs' left, in the
	// second row, looks to the image's right, the one at the right edge to the left.
	faces := photo(t, "face-api/sample5.jpg")
	at := func(x, y float32) engine.Attributes {
		for _, f := range faces {
			if r := f.Attributes.Face; x > r.Left && x < r.Right && y > r.Top && y < r.Bottom {
				return f.Attributes
			}
		}
		t.Fatalf("no face at %v, %v", x, y)
		return engine.Attributes{}
	}
	if a := at(717, 545); a.Pan < 10 {
		t.Errorf("left woman: pan %.1f, want more than 10", a.Pan)
	}
	if a := at(1483, 538); a.Pan > -10 {
		t.Errorf("right woman: pan %.1f, want less than −10", a.Pan)
	}
}
