package engine

import (
	"math"

	"facet/engine/imaging"
	"facet/engine/models"
)

// How the areas lie about the eyes, in units of the eye distance and of the face
// area's side (decision on face and head area).
const (
	faceSide   = 1.9 // eye distances
	faceBelow  = .4  // of the centre below the eyes' middle, eye distances
	headSides  = .18
	headTop    = .45
	headBottom = .19

	// Frontal falls to 0 at these angles.
	panMax, tiltMax = 60, 45

	// Two finds whose middles are nearer than this, in eye distances, are one face.
	twinDistance = .6
)

// face makes of the sighting what is reported.
func (s *sighting) face(m *models.Manifest, im *imaging.Image) Face {
	a := Attributes{
		Score:   float32(s.likeness),
		Frontal: float32(s.frontal),
		Quality: float32(quality(&m.Quality, &s.features)),
		Roll:    float32(s.roll),
		Pan:     float32(s.pan),
		Tilt:    float32(s.tilt),
	}
	a.Face, a.Head = s.areas()
	a.Face, a.Head = clipRect(a.Face, im), clipRect(a.Head, im)
	a.RightEye, a.LeftEye = clipPoint(s.rightEye, im), clipPoint(s.leftEye, im)
	return Face{Template: s.template, Attributes: a}
}

// turn fills in the eyes, roll, pan, tilt and the degree of frontal view.
func (s *sighting) turn() {
	five := fivePoints(&s.points)
	s.rightEye, s.leftEye = five[0], five[1]
	s.roll = math.Atan2(s.rightEye.Y-s.leftEye.Y, s.leftEye.X-s.rightEye.X) * 180 / math.Pi
	// The reported roll is positive when the image-left eye is the lower one: on
	// the screen, where y points down, that turn is anticlockwise, negative.
	s.pan, s.tilt = panTilt(&s.points, -s.roll)
	s.frontal = max(0, 1-math.Hypot(s.pan/panMax, s.tilt/tiltMax))
}

// side is the side of the face area in whole pixels.
func (s *sighting) side() int { return int(math.Round(faceSide * s.eyes)) }

// middle is the centre of the face area.
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

// areas returns the face and head area before they are cut at the borders.
func (s *sighting) areas() (face, head Rect) {
	c, side := s.middle(), faceSide*s.eyes
	face = Rect{
		Left: float32(c.X - side/2), Top: float32(c.Y - side/2),
		Right: float32(c.X + side/2), Bottom: float32(c.Y + side/2),
	}
	head = Rect{
		Left: float32(c.X - (.5+headSides)*side), Top: float32(c.Y - (.5+headTop)*side),
		Right: float32(c.X + (.5+headSides)*side), Bottom: float32(c.Y + (.5+headBottom)*side),
	}
	return face, head
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
