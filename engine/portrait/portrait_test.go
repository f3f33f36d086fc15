package portrait

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"testing"

	"facet/engine"
	"facet/internal/must"
)

// at returns a sure face of quality .8 whose area has this middle and side.
func at(x, y, side float32) engine.Face {
	return engine.Face{Attributes: engine.Attributes{
		Face:  engine.Rect{Left: x - side/2, Top: y - side/2, Right: x + side/2, Bottom: y + side/2},
		Score: .99, Quality: .8,
	}}
}

// like returns f with another quality.
func like(f engine.Face, quality float32) engine.Face { f.Attributes.Quality = quality; return f }

// vague returns f as a face of which the detector is not sure.
func vague(f engine.Face) engine.Face { f.Attributes.Score = .89; return f }

// cut returns f cut at the right border of a frame of 1000 pixels.
func cut(f engine.Face) engine.Face { f.Attributes.Face.Right = 1000; return f }

// frameFile is an image of 1000 × 800 pixels.
func frameFile(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, png.Encode(&out, image.NewGray(image.Rect(0, 0, 1000, 800))))
	return out.Bytes()
}

const none = -1

func TestSecondFaceCountsIfSureAndLarge(t *testing.T) {
	t.Parallel()
	f := func(want int, faces ...engine.Face) {
		t.Helper()
		taken, err := Refuse.Take(nil, faces)
		check(t, want, faces, taken, err)
	}
	middle := at(500, 400, 100)
	f(0, middle)
	f(0, vague(middle)) // the largest always counts
	f(0, middle, at(800, 400, 34))
	f(none, middle, at(800, 400, 35))
	f(0, middle, vague(at(800, 400, 99)))
	f(none, middle, vague(at(800, 400, 99)), at(200, 400, 60))
}

func check(t *testing.T, want int, faces []engine.Face, got Taken, err error) {
	t.Helper()
	switch {
	case want == none && !errors.Is(err, ErrSeveral):
		t.Errorf("took %+v, %v, want none of several", got.Attributes.Face, err)
	case want != none && (err != nil || got.Attributes != faces[want].Attributes):
		t.Errorf("took %+v, %v, want %+v", got.Attributes.Face, err, faces[want].Attributes.Face)
	}
}

func TestDominantTakesClearFacesOnly(t *testing.T) {
	t.Parallel()
	file := frameFile(t)
	f := func(want int, faces ...engine.Face) {
		t.Helper()
		for range 2 { // the order of equally large faces does not matter
			taken, err := Dominant.Take(file, faces)
			check(t, want, faces, taken, err)
			if want != none && len(taken.Ignored) != len(faces)-1 {
				t.Errorf("%d of %d faces are ignored", len(taken.Ignored), len(faces))
			}
			if len(faces) != 2 || side(faces[0].Attributes.Face) != side(faces[1].Attributes.Face) {
				return
			}
			faces[0], faces[1] = faces[1], faces[0]
			if want != none {
				want = 1 - want
			}
		}
	}
	one := at(500, 400, 200)
	f(0, one)
	// On the middle line: smaller, cut or poor faces do not matter.
	f(0, one, at(800, 400, 159))
	f(none, one, at(800, 400, 161))
	f(0, at(595, 400, 200), at(800, 100, 100), at(200, 100, 150))
	f(none, at(605, 400, 200), at(800, 100, 150)) // off the line
	f(0, one, cut(at(950, 400, 200)))
	f(1, cut(at(920, 400, 210)), one)
	f(none, cut(at(920, 400, 230)), one)
	f(0, one, like(at(800, 400, 200), .4))
	f(none, one, like(at(800, 400, 200), .41))
	f(none, like(at(800, 400, 201), .1), one) // poor, but larger
	f(none, one, at(200, 400, 150), at(800, 400, 190))
	// Elsewhere the face must be twice as large, and nearer to the line.
	f(0, at(350, 400, 200), at(900, 400, 100))
	f(none, at(350, 400, 200), at(900, 400, 102))
	f(none, at(350, 400, 200), at(600, 400, 100))
	f(none, at(350, 400, 200), cut(at(950, 400, 190)))
	// Alike ones: side by side, three in a row, one before another.
	f(none, at(300, 400, 200), at(700, 400, 200))
	f(none, at(300, 400, 200), like(at(700, 400, 200), .1))
	f(none, at(500, 400, 200), at(200, 400, 190), at(800, 400, 190))
	// The largest is a cut face or none: nothing is clear.
	f(none, cut(at(900, 400, 400)), at(400, 400, 200))
	f(none, vague(at(500, 400, 200)), at(800, 400, 90))
	// A vague face may be the one meant: a passer-by is not taken because somebody else counts.
	f(none, at(200, 400, 200), vague(at(500, 400, 190)), at(60, 400, 100))
	f(0, at(500, 400, 200), vague(at(800, 400, 150)), at(60, 400, 100))
	top := at(500, 190, 400)
	f(0, at(500, 210, 400), at(900, 400, 150))
	f(none, top, at(900, 400, 150))
}

func TestDominantFollowsTheFacesRoll(t *testing.T) {
	t.Parallel()
	file := frameFile(t)
	f := func(want int, roll float32, faces ...engine.Face) {
		t.Helper()
		for i := range faces {
			faces[i].Attributes.Roll = roll
		}
		taken, err := Dominant.Take(file, faces)
		check(t, want, faces, taken, err)
	}
	// High on the middle line of the upright image, and at its left end.
	f(0, 0, at(500, 150, 200), at(800, 150, 150))
	f(0, 90, at(200, 400, 200), at(200, 700, 150))
	f(0, -90, at(200, 400, 200), at(200, 700, 150))
	f(none, 90, at(500, 150, 200), at(500, 700, 150))
	f(none, 0, at(200, 400, 200), at(200, 700, 150))
	// A head that is held aslant does not bring a passer-by onto the line.
	f(none, 30, at(400, 190, 150), at(500, 150, 115))
	f(0, 20, at(500, 150, 200), at(800, 150, 150))
	f(0, 180, at(500, 650, 200), at(800, 650, 150))
}

func TestDominantNeedsAnImageForSeveralFaces(t *testing.T) {
	t.Parallel()
	if _, err := Dominant.Take(nil, []engine.Face{at(500, 400, 200)}); err != nil {
		t.Errorf("one face: %v", err)
	}
	if _, err := Dominant.Take([]byte("none"), []engine.Face{at(500, 400, 200), at(800, 400, 100)}); !errors.Is(err, engine.ErrImage) {
		t.Errorf("no image: %v", err)
	}
}
