package main

import (
	"fmt"
	"image"
	colour "image/color" //nolint:misspell // the standard library spells it so
	"image/draw"
	"image/jpeg"
	_ "image/png" // astronaut.png
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	xdraw "golang.org/x/image/draw"
	"golang.org/x/image/math/f64"
)

// face is one face of a sample photo: where the pupils are, in pixels of the photo. The
// sample photos are pinned by their hashes.
type face struct {
	photo      string
	rightX, ry float64 // the person's right eye, on the left of the photo
	leftX, ly  float64
}

// crowd are the persons whose photos make most of the list. The model tells each from all
// others. Two faces of the sample photos are missing: some small copies of them are refused as covered.
var crowd = []face{
	{"face-api/sample1.jpg", 1557, 282, 1614, 336},
	{"face-api/sample1.jpg", 436, 457, 513, 458},
	{"face-api/sample1.jpg", 873, 555, 941, 518},
	{"face-api/sample2.jpg", 1487, 283, 1564, 258},
	{"face-api/sample3.jpg", 1557, 411, 1653, 403},
	{"face-api/sample4.jpg", 1006, 280, 1076, 291},
	{"face-api/sample5.jpg", 423, 993, 520, 981},
	{"face-api/sample5.jpg", 1435, 512, 1520, 496},
	{"face-api/sample5.jpg", 683, 515, 752, 517},
	{"face-api/sample5.jpg", 1152, 296, 1228, 294},
	{"face-api/sample5.jpg", 849, 195, 919, 206},
	{"face-api/sample6.jpg", 1533, 375, 1628, 396},
	{"face-api/sample6.jpg", 324, 609, 426, 597},
	{"face-api/sample6.jpg", 1228, 430, 1328, 430},
}

// The persons who have a part in the week.
var (
	// doubled is enrolled twice by mistake, from two photos. A third is searched.
	doubled      = face{"face_recognition/obama.jpg", 443, 216, 549, 214}
	doubledAgain = face{"face_recognition/obama2.jpg", 251, 371, 372, 381}
	doubledThird = face{"face_recognition/obama3.jpg", 738, 387, 860, 400}
	// erased is enrolled once.
	erased = face{"face_recognition/biden.jpg", 536, 325, 652, 350}
	// visitor comes on Thursday and expires.
	visitor = face{"scikit-image/astronaut.png", 204, 101, 247, 103}
	// firstAgain is another photo of crowd[0], which nobody enrols.
	firstAgain = face{"face-api/sample3.jpg", 1116, 321, 1209, 339}
)

// The photos without exactly one face.
const (
	faceless = "scikit-image/rocket.jpg"
	group    = "face-api/sample1.jpg"
)

// darkroom makes photos from the sample photos.
type darkroom struct {
	photos string
	read   map[string]image.Image
}

// open reads the sample photos of the faces.
func (d *darkroom) open(faces ...face) error {
	d.read = map[string]image.Image{}
	for _, f := range faces {
		if d.read[f.photo] != nil {
			continue
		}
		im, err := readImage(filepath.Join(d.photos, filepath.FromSlash(f.photo)))
		if err != nil {
			return fmt.Errorf("%w: run \"make setup\"", err)
		}
		d.read[f.photo] = im
	}
	return nil
}

func readImage(name string) (image.Image, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	im, _, err := image.Decode(file)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	return im, nil
}

// between returns a random number from low to high.
func between(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

// picture writes a picture of the face, as another camera might have taken it: size, place,
// angle, light and compression are those of the number. Every second one is mirrored.
func (d *darkroom) picture(f face, number int, name string) error {
	r := rand.New(rand.NewPCG(uint64(number), 0))
	side := math.Round(between(r, 150, 220))
	eyes := side * between(r, .19, .26) // between the pupils
	atX, atY := side*between(r, .46, .54), side*between(r, .38, .46)
	dx, dy := f.leftX-f.rightX, f.ly-f.ry
	scale := eyes / math.Hypot(dx, dy)
	sin, cos := math.Sincos(between(r, -.12, .12) - math.Atan2(dy, dx))
	mirror := float64(1 - number%2*2)
	a, b, c, e := mirror*scale*cos, -mirror*scale*sin, scale*sin, scale*cos
	midX, midY := (f.leftX+f.rightX)/2, (f.ly+f.ry)/2
	out := image.NewRGBA(image.Rect(0, 0, int(side), int(side)))
	draw.Draw(out, out.Rect, image.NewUniform(colour.Gray{Y: 128}), image.Point{}, draw.Src)
	from := d.read[f.photo]
	xdraw.BiLinear.Transform(out, f64.Aff3{a, b, atX - a*midX - b*midY, c, e, atY - c*midX - e*midY}, from, from.Bounds(), draw.Src, nil)
	light(out, between(r, .8, 1.2), between(r, -12, 12))
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := jpeg.Encode(file, out, &jpeg.Options{Quality: 70 + r.IntN(26)}); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return file.Close()
}

// light changes contrast and brightness.
func light(im *image.RGBA, contrast, more float64) {
	for i, v := range im.Pix {
		if i%4 < 3 {
			im.Pix[i] = uint8(max(0, min(255, (float64(v)-128)*contrast+128+more)))
		}
	}
}
