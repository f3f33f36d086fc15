package client

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Attributes describe a face. Positions are in pixels of the upright image, angles
// in degrees. Right and left are the person's own.
type Attributes struct {
	FaceArea         Rectangle `json:"faceArea"`
	HeadArea         Rectangle `json:"headArea"`
	RightEyeCenter   Point     `json:"rightEyeCenter"`
	LeftEyeCenter    Point     `json:"leftEyeCenter"`
	FaceScore        Number    `json:"faceScore"`        // likeness to a face
	FrontalFaceScore Number    `json:"frontalFaceScore"` // how much from the front
	FaceQualityScore Number    `json:"faceQualityScore"` // how well it will compare
	FaceRoll         Number    `json:"faceRoll"`
	FacePan          Number    `json:"facePan"`
	FaceTilt         Number    `json:"faceTilt"`
}

// IgnoredFace is a face on a photo beside the one that was taken.
type IgnoredFace struct {
	FaceArea         Rectangle `json:"faceArea"`
	FaceQualityScore Number    `json:"faceQualityScore"`
}

// Rectangle is a part of an image.
type Rectangle struct {
	Left   Pixel `json:"left"`
	Top    Pixel `json:"top"`
	Right  Pixel `json:"right"`
	Bottom Pixel `json:"bottom"`
}

// Point is a place in an image.
type Point struct {
	X Pixel `json:"x"`
	Y Pixel `json:"y"`
}

// Number is a decimal number. The interface writes it as a string.
type Number float64

// UnmarshalJSON reads a decimal in a string, or a plain JSON number.
func (n *Number) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseFloat(unquote(text), 64)
	if err != nil {
		return fmt.Errorf("read decimal: %w", err)
	}
	*n = Number(v)
	return nil
}

// MarshalJSON writes a string, as the interface does.
func (n Number) MarshalJSON() ([]byte, error) {
	return json.Marshal(strconv.FormatFloat(float64(n), 'g', 6, 64))
}

// Pixel is a whole number of pixels. The interface writes it as a string.
type Pixel int

// UnmarshalJSON reads a whole number in a string, or a plain JSON number.
func (p *Pixel) UnmarshalJSON(text []byte) error {
	v, err := strconv.Atoi(unquote(text))
	if err != nil {
		return fmt.Errorf("read pixel: %w", err)
	}
	*p = Pixel(v)
	return nil
}

// MarshalJSON writes a string, as the interface does.
func (p Pixel) MarshalJSON() ([]byte, error) { return json.Marshal(strconv.Itoa(int(p))) }

func unquote(text []byte) string {
	if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
		return string(text[1 : n-1])
	}
	return string(text)
}
