package shard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/stale"
	"facet/shard/seal"
)

// A sealed face is
//
//	version: 1 byte | model: 8 bytes | sealed text
//
// and its plain text is
//
//	template: float32 × dimension | attributes: float32 × 18     little-endian
//
// engine.Attributes.Numbers orders the attributes. The additional data bind a face to its version,
// model, gallery, generation, subject and event, and to its revision unless that is 0. Version 1
// has no model; it is read and no longer written.
const (
	faceUnnamed    = 1
	faceVersion    = 2
	attributeBytes = 4 * engine.AttributeCount
	modelBytes     = len(id.Model{})
	aadBytesMax    = 80

	// TemplateMax is the largest dimension of a template.
	TemplateMax = 4096
	// SealedMax is the largest sealed face in bytes.
	SealedMax = 1 + modelBytes + seal.Overhead + 4*TemplateMax + attributeBytes
)

// ErrFace is returned for a sealed face of a form that this version does not read.
var ErrFace = errors.New("shard: unknown form of a sealed face")

// FaceRef is the place a face is sealed for. The face opens at no other place.
type FaceRef struct {
	Gallery    id.Gallery
	Generation uint32
	Subject    id.Subject
	Event      id.Event
	// Revision counts the replacements of the event before this face. It keeps an earlier face of
	// the same ids from opening in its place.
	Revision uint32
}

// aad returns the additional data of a face. head is the clear part before the sealed text.
func (r FaceRef) aad(head []byte) []byte { return r.appendAAD(make([]byte, 0, aadBytesMax), head) }

func (r FaceRef) appendAAD(b, head []byte) []byte {
	b = append(b, "facet face"...)
	b = append(b, head...)
	b = append(b, r.Gallery.UUID[:]...)
	b = binary.BigEndian.AppendUint32(b, r.Generation)
	b = append(b, r.Subject.UUID[:]...)
	b = append(b, r.Event.UUID[:]...)
	if r.Revision > 0 {
		b = binary.BigEndian.AppendUint32(b, r.Revision)
	}
	return b
}

// SealFace encrypts a face for its place. It panics unless the template has 1 to TemplateMax
// numbers.
func SealFace(key *seal.Key, ref FaceRef, face engine.Face) []byte {
	if n := len(face.Template); n < 1 || n > TemplateMax {
		panic(fmt.Sprintf("bug: seal a template of %d numbers", n))
	}
	plain := make([]byte, 0, 4*len(face.Template)+attributeBytes)
	defer func() { clear(plain[:cap(plain)]) }()
	for _, x := range face.Template {
		plain = binary.LittleEndian.AppendUint32(plain, math.Float32bits(x))
	}
	for _, x := range face.Attributes.Numbers() {
		plain = binary.LittleEndian.AppendUint32(plain, math.Float32bits(*x))
	}
	head := append([]byte{faceVersion}, face.Model[:]...)
	return append(head, key.Seal(plain, ref.aad(head))...)
}

// OpenFace decrypts a face that SealFace made. The error wraps seal.ErrOpen (wrong key, wrong
// place, changed bytes) or ErrFace.
func OpenFace(key *seal.Key, ref FaceRef, sealed []byte) (engine.Face, error) {
	var o opener
	defer o.clear()
	plain, err := o.open(key, ref, sealed)
	if err != nil {
		return engine.Face{}, err
	}
	numbers := func(b []byte, i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])) }
	template := templateBytes(plain)
	face := engine.Face{Template: make(engine.Template, len(template)/4), Model: modelOf(sealed)}
	for i := range face.Template {
		face.Template[i] = numbers(template, i)
	}
	for i, to := range face.Attributes.Numbers() {
		*to = numbers(plain[len(template):], i)
	}
	return face, nil
}

// opener opens sealed faces, one after the other, in the same memory.
type opener struct{ aad, plain []byte }

// open returns the plain text of a sealed face, valid until the next call. It has checked the
// length.
func (o *opener) open(key *seal.Key, ref FaceRef, sealed []byte) ([]byte, error) {
	head, text, ok := splitSealed(sealed)
	if !ok {
		return nil, fmt.Errorf("open face of event %s: %w", ref.Event, ErrFace)
	}
	o.aad = ref.appendAAD(o.aad[:0], head)
	stale.Fill(o.plain[:cap(o.plain)])
	plain, err := key.OpenTo(o.plain[:0], text, o.aad)
	if err != nil {
		return nil, fmt.Errorf("open face of event %s: %w", ref.Event, err)
	}
	o.plain = plain
	if len(plain) < attributeBytes+4 || len(plain)%4 != 0 {
		o.clear()
		return nil, fmt.Errorf("open face of event %s: %w: %d bytes", ref.Event, ErrFace, len(plain))
	}
	return plain, nil
}

func (o *opener) clear() { clear(o.plain[:cap(o.plain)]) }

// splitSealed splits a sealed face into its clear head (version and model) and the sealed text. ok
// is false if the face is of no known form.
func splitSealed(sealed []byte) (head, text []byte, ok bool) {
	n := 1
	switch {
	case len(sealed) == 0 || len(sealed) > SealedMax:
		return nil, nil, false
	case sealed[0] == faceVersion:
		n += modelBytes
	case sealed[0] != faceUnnamed:
		return nil, nil, false
	}
	if len(sealed) < n {
		return nil, nil, false
	}
	return sealed[:n:n], sealed[n:], true
}

// modelOf returns the model that a sealed face names, or zero. Only opening the face proves the
// name.
func modelOf(sealed []byte) (m id.Model) {
	if head, _, ok := splitSealed(sealed); ok {
		copy(m[:], head[1:])
	}
	return m
}

func templateBytes(plain []byte) []byte { return plain[:len(plain)-attributeBytes] }
