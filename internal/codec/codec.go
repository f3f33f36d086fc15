package codec

import (
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// The bounds of decoded messages.
const (
	// MessageMax is the largest message or record in bytes.
	MessageMax = 1 << 20

	arrayMax = 1 << 16
	mapMax   = 64
	nestMax  = 8
)

// Skippable is the bit of a command's code that lets older binaries skip it.
const Skippable = 0x80

// ErrMalformed is returned when bytes are no message of the expected form.
var ErrMalformed = errors.New("codec: malformed message")

// Head is the code and version before a body.
type Head struct{ Code, Version byte }

// Message is a message whose body is not decoded yet. Body aliases the bytes that
// it was split from.
type Message struct {
	Head
	Body []byte
}

var (
	encMode = newEncMode()
	decMode = newDecMode()
)

func newEncMode() cbor.EncMode {
	m, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic("bug: CBOR encoding options: " + err.Error())
	}
	return m
}

func newDecMode() cbor.DecMode {
	m, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		MaxArrayElements:  arrayMax,
		MaxMapPairs:       mapMax,
		MaxNestedLevels:   nestMax,
	}.DecMode()
	if err != nil {
		panic("bug: CBOR decoding options: " + err.Error())
	}
	return m
}

// Encode returns the message of v, a struct with `cbor:"n,keyasint"` tags. It
// panics on a value that CBOR can't express, which is a bug.
func Encode(h Head, v any) []byte {
	body, err := encMode.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("bug: encode message %d: %v", h.Code, err))
	}
	return append([]byte{h.Code, h.Version}, body...)
}

// Split separates the head of a message from its body. The error wraps
// ErrMalformed.
func Split(b []byte) (Message, error) {
	if len(b) < 2 || len(b) > MessageMax {
		return Message{}, fmt.Errorf("%w: %d bytes", ErrMalformed, len(b))
	}
	return Message{Head{b[0], b[1]}, b[2:]}, nil
}

// Decode decodes the body of m into v, a pointer to the struct that belongs to
// want. Nothing in v points into m. The error wraps ErrMalformed.
func (m Message) Decode(want Head, v any) error {
	if m.Head != want {
		return fmt.Errorf("%w: code %d version %d, want %d and %d", ErrMalformed, m.Code, m.Version, want.Code, want.Version)
	}
	if err := decMode.Unmarshal(m.Body, v); err != nil {
		return fmt.Errorf("%w: code %d: %w", ErrMalformed, m.Code, err)
	}
	return nil
}

// Take decodes the body of m and calls take with it. The error wraps ErrMalformed, or is
// the error of take.
func Take[T any](m Message, want Head, take func(T) error) error {
	var v T
	if err := m.Decode(want, &v); err != nil {
		return err
	}
	return take(v)
}

// Decode splits b and decodes its body into v. The error wraps ErrMalformed.
func Decode(b []byte, want Head, v any) error {
	m, err := Split(b)
	if err != nil {
		return err
	}
	return m.Decode(want, v)
}
