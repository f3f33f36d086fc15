package id

import (
	"encoding/hex"
	"fmt"
)

// Model identifies what made a template: the embedder, its input and the meaning of
// its numbers. Templates of two models can't be compared. The zero value is for
// templates made before models had names.
type Model [8]byte

// IsZero reports whether the model has no name.
func (m Model) IsZero() bool { return m == Model{} }

// String returns 16 lower-case hex digits.
func (m Model) String() string { return hex.EncodeToString(m[:]) }

// ModelError is returned when templates of two models were to be compared.
type ModelError struct{ Probe, Reference Model }

// Error returns a text that names both models.
func (e *ModelError) Error() string {
	return fmt.Sprintf("a template of model %s can't be compared with one of model %s", e.Probe, e.Reference)
}

// SameModel returns a ModelError if probe and reference are both named and differ.
func SameModel(probe, reference Model) error {
	if probe == reference || probe.IsZero() || reference.IsZero() {
		return nil
	}
	return &ModelError{Probe: probe, Reference: reference}
}
