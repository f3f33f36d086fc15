package answers

import "github.com/go-json-experiment/json/jsontext"

// Texts and numbers whose schemas and types are known by their names.
type (
	// ID is an opaque id.
	ID = string
	// Score is how alike two faces are, 0 to 9999.
	Score = int
	// Pixel is a whole number of pixels within the upright image, in decimal digits.
	Pixel = string
	// Decimal is a decimal number of up to 6 digits.
	Decimal = string
	// Digits are a whole number.
	Digits = string
	// Time is a time of ISO 8601 in UTC, to the millisecond.
	Time = string
	// Status is the state of an entry of the subject list.
	Status = string
	// Cursor names the page that follows.
	Cursor = string
	// ExternalID is a client's own id of a subject.
	ExternalID = string
	// UserData is the object that a client keeps with a subject.
	UserData = jsontext.Value
	// APIKey is the secret that selects an application.
	APIKey = string
	// FaceToken is a sealed template.
	FaceToken = string
	// Scores has a score or null for each pair of a comparison.
	Scores = jsontext.Value
	// Bytes are base64 in JSON.
	Bytes = []byte
)
