package engine

import (
	"math"
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

func TestPanAndTiltOfTheMeanFaceAreTheTurnsItWasGiven(t *testing.T) {
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

func TestTheMeanFaceIsSymmetricAndCentred(t *testing.T) {
	t.Parallel()
	var sum spacePoint
	var mixed float64
	for _, p := range meanFace {
		sum.x, sum.y, sum.z = sum.x+p.x, sum.y+p.y, sum.z+p.z
		mixed += p.x*p.y + p.x*p.z
	}
	n := float64(len(meanFace))
	if math.Abs(sum.x/n) > .001 || math.Abs(sum.y/n) > .001 || math.Abs(sum.z/n) > .001 {
		t.Errorf("centre at %.4f, %.4f, %.4f", sum.x/n, sum.y/n, sum.z/n)
	}
	if math.Abs(mixed) > .01 {
		t.Errorf("x mixes with y and z by %.4f: pan would depend on tilt", mixed)
	}
}

func TestPointsOnALineHaveNoTurn(t *testing.T) {
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

func TestPlacesCoverTheLengthAndOverlap(t *testing.T) {
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

func TestRFBBoxesAreThoseOfTheDefaultDetector(t *testing.T) {
	t.Parallel()
	if got := rfbBoxes(320, 240); got != 4420 {
		t.Errorf("got %d, want 4420", got)
	}
}
