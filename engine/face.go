package engine

import (
	"errors"
	"strings"

	"facet/engine/imaging"
	"facet/internal/id"
)

// MaxFaces is the most faces reported for one image (interface, §8).
const MaxFaces = 20

// ErrImage is returned for bytes that are not an image the engine reads: of an unknown format,
// truncated, too small or too large. The text after it says which, without paths.
var ErrImage = errors.New("image can't be read")

// Complaint returns what is wrong with the image of an error that wraps ErrImage, in words
// for the person who sent it.
func Complaint(err error) string {
	text := err.Error()
	for _, known := range []error{ErrImage, imaging.ErrDecode} {
		if _, after, ok := strings.Cut(text, known.Error()+": "); ok {
			text = after
		}
	}
	return text
}

// Template is the features of a face: a vector of unit L2 norm in the pack's basis and of the
// pack's dimension (192 for the default pack). Only templates of one model (Face.Model) are
// comparable.
type Template []float32

// Point is a position in pixels of the upright image, from its top left corner.
type Point struct{ X, Y float32 }

// Rect is a rectangle in pixels of the upright image.
type Rect struct{ Left, Top, Right, Bottom float32 }

// Attributes are the face attributes of the interface (§2.1), in pixels of the
// upright image and in degrees. Right and left are seen from the subject.
type Attributes struct {
	// Face is a square of about 1.9 eye distances. Head is Face enlarged by .18 of its side left
	// and right, .45 at the top, .19 at the bottom.
	Face, Head Rect
	// RightEye has the smaller X when the face is upright.
	RightEye, LeftEye Point
	// Score is the likeness to a face, Frontal the degree of frontal view, Quality the expected
	// usefulness for comparison, each from 0 to 1.
	Score, Frontal, Quality float32
	// Roll is atan2(RightEye.Y − LeftEye.Y, LeftEye.X − RightEye.X). Pan is positive when the
	// face turns to the image's right, Tilt when it looks up.
	Roll, Pan, Tilt float32
}

// AttributeCount is the number of Numbers.
const AttributeCount = 18

// Numbers returns the numbers of a in their stored order: Face and Head (left, top, right, bottom),
// RightEye and LeftEye (x, y), Score, Frontal, Quality, Roll, Pan, Tilt.
func (a *Attributes) Numbers() [AttributeCount]*float32 {
	return [...]*float32{
		&a.Face.Left, &a.Face.Top, &a.Face.Right, &a.Face.Bottom,
		&a.Head.Left, &a.Head.Top, &a.Head.Right, &a.Head.Bottom,
		&a.RightEye.X, &a.RightEye.Y, &a.LeftEye.X, &a.LeftEye.Y,
		&a.Score, &a.Frontal, &a.Quality, &a.Roll, &a.Pan, &a.Tilt,
	}
}

// Face is one face of an image.
type Face struct {
	Template Template
	// Model identifies the model that made the template (models.Manifest.ModelID).
	Model      id.Model
	Attributes Attributes
	// Measures, Features and Defects are not stored with a template.
	Measures Measures
	// Features are the measurements that the quality weighs.
	Features Features
	Defects  []Defect
}
