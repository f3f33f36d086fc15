package models

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"facet/internal/id"
)

// ModelID identifies the model that makes the pack's templates: the first 8 bytes of a SHA-256 over
// everything that decides the meaning of a template's numbers. That is the bytes of embedder and
// basis, the number of values, the pre-processing and the points of the alignment; with two
// embedders also the second's, the weights and the projection. Two packs with
// the same ModelID make comparable templates, even if their detector, landmarks, quality or
// calibration differ. docs/formats/pack.md draws the hashed text.
func (m *Manifest) ModelID() id.Model {
	b := []byte("facet template model 1\n")
	for _, role := range []Role{RoleEmbedder, RoleBasis} {
		f, _ := m.File(role) // the basis may be missing: an empty text
		b = append(append(b, f.SHA256...), '\n')
	}
	b = m.Embedder.appendIdentity(b)
	if j := m.Joined; j != nil {
		for _, role := range []Role{RoleEmbedder2, RoleProjection} {
			f, _ := m.File(role)
			b = append(append(b, f.SHA256...), '\n')
		}
		b = j.Embedder.appendIdentity(b)
		b = appendFloats(b, j.Weights[:]...)
		if j.Mirrored {
			b = append(b, "mirrored\n"...)
		}
	}
	sum := sha256.Sum256(b)
	var out id.Model
	copy(out[:], sum[:])
	return out
}

// appendIdentity appends the fields that decide the meaning of the embedder's values.
func (e *Embedder) appendIdentity(b []byte) []byte {
	for _, n := range []int{e.Dim, e.Input.Width, e.Input.Height} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = append(append(b, e.Input.Channels...), '\n')
	for i := range e.Input.Mean {
		b = appendFloats(b, e.Input.Mean[i], e.Input.Scale[i])
	}
	for _, p := range e.Points {
		b = appendFloats(b, p[:]...)
	}
	return b
}

func appendFloats(b []byte, values ...float32) []byte {
	for _, x := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}
