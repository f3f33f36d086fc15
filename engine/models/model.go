package models

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"facet/internal/id"
)

// ModelID identifies the model that makes the pack's templates: the first 8 bytes of a SHA-256 over
// everything that decides the meaning of a template's numbers. That is the bytes of embedder and
// basis, the number of values, the pre-processing and the points of the alignment. Two packs with
// the same ModelID make comparable templates, even if their detector, landmarks, quality or
// calibration differ. docs/formats/pack.md draws the hashed text.
func (m *Manifest) ModelID() id.Model {
	b := []byte("facet template model 1\n")
	for _, role := range []Role{RoleEmbedder, RoleBasis} {
		f, _ := m.File(role) // the basis may be missing: an empty text
		b = append(append(b, f.SHA256...), '\n')
	}
	e := &m.Embedder
	for _, n := range []int{e.Dim, e.Input.Width, e.Input.Height} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = append(append(b, e.Input.Channels...), '\n')
	float := func(x float32) { b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x)) }
	for i := range e.Input.Mean {
		float(e.Input.Mean[i])
		float(e.Input.Scale[i])
	}
	for _, p := range e.Points {
		float(p[0])
		float(p[1])
	}
	sum := sha256.Sum256(b)
	var out id.Model
	copy(out[:], sum[:])
	return out
}
