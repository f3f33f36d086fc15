package engine

import (
	"math"

	"facet/engine/imaging"
	"facet/engine/models"
)

// The face and head areas relative to the eyes, in units of the eye distance and of the face area's
// side (decision on face and head area).
const (
	faceSide   = 1.9 // eye distances
	faceBelow  = .4  // distance of the centre below the eyes' middle, in eye distances
	headSides  = .18
	headTop    = .45
	headBottom = .19

	// Frontal falls to 0 at these angles.
	panMax, tiltMax = 60, 45

	// A profile gets the landmarks of a frontal face, but their two passes disagree. Frontal falls
	// from 1 to 0 between these two doubts. 99 % of upright faces have a doubt of at most .14, and
	// 95 % of faces aslant by 45° one of at most .24.
	doubtUsual, doubtMax = .25, .5

	// Two detections whose middles are nearer than this, in eye distances, are one face.
	twinDistance = .6
)

func (s *sighting) face(m *models.Manifest, im *imaging.Image) Face {
	a := Attributes{
		Score:   float32(s.likeness),
		Frontal: float32(s.frontal),
		Quality: float32(quality(&m.Quality, &s.features)),
		Roll:    float32(s.roll),
		Pan:     float32(s.pan),
		Tilt:    float32(s.tilt),
	}
	face, head := s.areas()
	a.Face, a.Head = clipRect(face, im), clipRect(head, im)
	a.RightEye, a.LeftEye = clipPoint(s.rightEye, im), clipPoint(s.leftEye, im)
	outside := 1 - a.Face.area()/max(1, face.area())
	return Face{
		Template: s.template, Model: m.ModelID(), Attributes: a,
		Measures: s.measures(im), Features: s.features, Defects: s.defects(outside),
	}
}

func (r Rect) area() float64 { return float64(r.Right-r.Left) * float64(r.Bottom-r.Top) }

// turn sets the eyes, roll, pan, tilt and frontal.
func (s *sighting) turn() {
	five := fivePoints(&s.points)
	s.rightEye, s.leftEye = five[0], five[1]
	s.roll = math.Atan2(s.rightEye.Y-s.leftEye.Y, s.leftEye.X-s.rightEye.X) * 180 / math.Pi
	// The reported roll is positive when the image-left eye is the lower one: on
	// the screen, where y points down, that turn is anticlockwise, negative.
	s.pan, s.tilt = panTilt(&s.points, -s.roll)
	s.frontal = max(0, 1-math.Hypot(s.pan/panMax, s.tilt/tiltMax))
	s.frontal *= max(0, min(1, (doubtMax-s.doubt)/(doubtMax-doubtUsual)))
}

// side returns the side of the face area in whole pixels.
func (s *sighting) side() int { return int(math.Round(faceSide * s.eyes)) }

// middle returns the centre of the face area.
func (s *sighting) middle() imaging.Point {
	sin, cos := math.Sincos(s.roll * math.Pi / 180)
	return imaging.Point{
		X: (s.rightEye.X+s.leftEye.X)/2 + faceBelow*s.eyes*sin,
		Y: (s.rightEye.Y+s.leftEye.Y)/2 + faceBelow*s.eyes*cos,
	}
}

// twin reports whether two sightings are of one face.
func (s *sighting) twin(o *sighting) bool {
	a, b := s.middle(), o.middle()
	return math.Hypot(a.X-b.X, a.Y-b.Y) < twinDistance*max(s.eyes, o.eyes)
}

// areas returns the face and head areas before they are clipped. Their sides are parallel to the
// image's, so the head's top follows the nearest quarter turn of the face.
func (s *sighting) areas() (face, head Rect) {
	c, side := s.middle(), faceSide*s.eyes
	sin, cos := math.Sincos(math.Round(s.roll/90) * math.Pi / 2)
	// corner returns the point that lies right and down of the middle, in sides, as seen on an
	// upright face.
	corner := func(right, down float64) (x, y float64) {
		return c.X + side*(right*cos+down*sin), c.Y + side*(down*cos-right*sin)
	}
	rect := func(sides, top, bottom float64) Rect {
		x0, y0 := corner(-sides, -top)
		x1, y1 := corner(sides, bottom)
		return Rect{
			Left: float32(min(x0, x1)), Top: float32(min(y0, y1)),
			Right: float32(max(x0, x1)), Bottom: float32(max(y0, y1)),
		}
	}
	return rect(.5, .5, .5), rect(.5+headSides, .5+headTop, .5+headBottom)
}

func clipRect(r Rect, im *imaging.Image) Rect {
	w, h := float32(im.Width), float32(im.Height)
	return Rect{
		Left: max(0, min(r.Left, w)), Top: max(0, min(r.Top, h)),
		Right: max(0, min(r.Right, w)), Bottom: max(0, min(r.Bottom, h)),
	}
}

func clipPoint(p imaging.Point, im *imaging.Image) Point {
	return Point{
		X: max(0, min(float32(p.X), float32(im.Width-1))),
		Y: max(0, min(float32(p.Y), float32(im.Height-1))),
	}
}
