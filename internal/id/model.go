package id

import (
	"encoding/hex"
	"fmt"
)

// Model names what a template was made by: the embedder, what it is fed and what
// its numbers mean. Templates of two models can't be compared. The zero value is
// that of templates from before models were named.
type Model [8]byte

// IsZero tells whether the model is unnamed.
func (m Model) IsZero() bool { return m == Model{} }

// String gives 16 lower-case hex digits.
func (m Model) String() string { return hex.EncodeToString(m[:]) }

// ModelError says that templates of two models were to be compared.
type ModelError struct{ Probe, Reference Model }

// Error names both models.
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
