package router

import (
	"time"

	"facet/engine"
)

// Limits of comparisons.
const (
	// CompareMax is the most photos and tokens of a comparison, ComparePhotosMax the most photos.
	CompareMax       = 1000
	ComparePhotosMax = 200
	// NoScore stands for the score of two faces of which one is missing.
	NoScore = -1
)

// CompareFace is a photo with one face, or the token of one.
type CompareFace struct {
	Image []byte // nil for a token
	Token string
}

// Compared is a photo of a comparison. For a token it is the zero Compared.
type Compared struct {
	Attributes engine.Attributes
	// Token stands for the photo until Comparison.Expires.
	Token string
	// Err says why the photo has no face that can be compared, or that the node had no time for it
	// (ReasonNotDone). The other fields are zero then.
	Err *Error
}

// Comparison is the answer to a comparison.
type Comparison struct {
	Faces []Compared
	// Scores has the score of each face with each one before it, row by row, or NoScore: (1,0),
	// (2,0), (2,1), (3,0) … It is nil if the node had no time for them.
	Scores []int16
	// Expires is when the tokens expire that were made. It is zero if none was.
	Expires time.Time
}
