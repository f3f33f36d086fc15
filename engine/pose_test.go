package engine

import (
	"math"
	"slices"
	"testing"

	"facet/engine/imaging"
)

// seen projects the mean face, turned by pan and tilt and then rolled clockwise
// on the screen, in degrees, as a distant camera sees it.
func seen(pan, tilt, roll float64) *[landmarkCount]imaging.Point {
	const scale, atX, atY = 90, 400, 300
	sinP, cosP := math.Sincos(pan * math.Pi / 180)
	sinT, cosT := math.Sincos(tilt * math.Pi / 180)
	sinR, cosR := math.Sincos(roll * math.Pi / 180)
	var points [landmarkCount]imaging.Point
	for _, p := range meanFace {
		// Looking up moves the nose, at negative z, up: y falls with −z.
		y, z := cosT*p.y+sinT*p.z, -sinT*p.y+cosT*p.z
		// Looking to the image's right moves it right.
		x := cosP*p.x - sinP*z
		points[p.of] = imaging.Point{X: atX + scale*(cosR*x-sinR*y), Y: atY + scale*(sinR*x+cosR*y)}
	}
	return &points
}

func TestMeanFacePoseEqualsItsTurn(t *testing.T) {
	t.Parallel()
	for _, pan := range []float64{-60, -25, 0, 10, 45} {
		for _, tilt := range []float64{-30, 0, 12, 30} {
			for _, roll := range []float64{-170, -40, 0, 25, 90} {
				gotPan, gotTilt := panTilt(seen(pan, tilt, roll), roll)
				if math.Abs(gotPan-pan) > .1 || math.Abs(gotTilt-tilt) > .1 {
					t.Errorf("pan %v, tilt %v, roll %v: got pan %.2f, tilt %.2f", pan, tilt, roll, gotPan, gotTilt)
				}
			}
		}
	}
}

// mirroredPoints are the points as a mirrored image shows them: the other side's
// landmark at the mirrored place.
func mirroredPoints(t *testing.T, points *[landmarkCount]imaging.Point) *[landmarkCount]imaging.Point {
	t.Helper()
	const width = 800
	var out [landmarkCount]imaging.Point
	for _, p := range meanFace {
		other := slices.IndexFunc(meanFace[:], func(q spacePoint) bool {
			return math.Abs(q.x+p.x) < .002 && math.Abs(q.y-p.y) < .002
		})
		if other < 0 {
			t.Fatalf("landmark %d has no counterpart", p.of)
		}
		at := points[p.of]
		out[meanFace[other].of] = imaging.Point{X: width - at.X, Y: at.Y}
	}
	return &out
}

func TestPoseOfKnownHeadHasRightSigns(t *testing.T) {
	t.Parallel()
	// The eyes' line is nearer to the camera on one side, so that the reported roll,
	// which follows it, is not exactly the turn in the plane where pan and tilt meet.
	for _, c := range []struct{ pan, tilt, roll, rollWithin float64 }{
		{0, 0, 0, .1},
		{0, 0, 30, .1},
		{0, 0, -75, .1},
		{0, 0, 90, .1},
		{0, 0, -180, .1},
		{35, 0, 20, .5},
		{0, -25, -20, .5},
		{-30, 15, 0, 9},
	} {
		points := seen(c.pan, c.tilt, c.roll)
		for _, sign := range []float64{1, -1} {
			s := sighting{points: *points}
			s.turn()
			// Clockwise on the screen lowers the image-right eye: a negative roll.
			if math.Abs(math.Remainder(s.roll+sign*c.roll, 360)) > c.rollWithin {
				t.Errorf("%+v, sign %v: roll %.2f", c, sign, s.roll)
			}
			if math.Abs(s.pan-sign*c.pan) > 2 || math.Abs(s.tilt-c.tilt) > 6 {
				t.Errorf("%+v, sign %v: pan %.2f, tilt %.2f", c, sign, s.pan, s.tilt)
			}
			points = mirroredPoints(t, points)
		}
	}
}

func TestFrontalFallsWithTurnAndDoubt(t *testing.T) {
	t.Parallel()
	frontal := func(pan, tilt, doubt float64) float64 {
		s := sighting{points: *seen(pan, tilt, 0), doubt: doubt}
		s.turn()
		return s.frontal
	}
	if got := frontal(0, 0, 0); got < .99 {
		t.Errorf("straight ahead: %.3f, want 1", got)
	}
	if got := frontal(45, 0, 0); math.Abs(got-.25) > .05 {
		t.Errorf("45° aside: %.3f, want .25", got)
	}
	if got := frontal(0, 22.5, 0); math.Abs(got-.5) > .05 {
		t.Errorf("22.5° up: %.3f, want .5", got)
	}
	if got := frontal(70, 0, 0); got != 0 {
		t.Errorf("70° aside: %.3f, want 0", got)
	}
	for pan := 0.; pan < 60; pan += 5 {
		if a, b := frontal(pan, 0, 0), frontal(pan+5, 0, 0); b >= a {
			t.Errorf("pan %v: %.3f, 5° more: %.3f", pan, a, b)
		}
	}
	// A profile's landmarks are those of a frontal face, but not twice the same.
	if a, b := frontal(0, 0, .1), frontal(0, 0, .4); a < .99 || b > .5 {
		t.Errorf("with steady landmarks %.3f, with unsteady ones %.3f", a, b)
	}
}

func TestPointsOnLineHaveNoTurn(t *testing.T) {
	t.Parallel()
	var points [landmarkCount]imaging.Point
	for i := range points {
		points[i] = imaging.Point{X: float64(i)}
	}
	for _, p := range []*[landmarkCount]imaging.Point{{}, &points} {
		pan, tilt := panTilt(p, 0)
		if math.IsNaN(pan) || math.IsNaN(tilt) {
			t.Errorf("got %v, %v", pan, tilt)
		}
	}
}

func TestPlacesCoverLength(t *testing.T) {
	t.Parallel()
	for _, length := range []float64{10, 100, 101, 333, 12_000} {
		const tile = 100
		at := places(length, tile)
		if length <= tile {
			if len(at) != 1 || at[0] != length/2 {
				t.Errorf("length %v: got %v", length, at)
			}
			continue
		}
		if at[0] != tile/2 || math.Abs(at[len(at)-1]-(length-tile/2)) > 1e-6 {
			t.Errorf("length %v: from %v to %v", length, at[0], at[len(at)-1])
		}
		for i := 1; i < len(at); i++ {
			if step := at[i] - at[i-1]; step > .6*tile+1e-6 {
				t.Errorf("length %v: step %v", length, step)
			}
		}
	}
}
