package client

import (
	"encoding/json"
	"fmt"
	"strconv"
)

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
