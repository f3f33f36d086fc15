package heif

import (
	"encoding/binary"
	"errors"
)

// Limits of a file's structure. Phones write tiles of 512 × 512 pixels.
const (
	boxesMax      = 4096
	itemsMax      = 4096
	referencesMax = 8192
	extentsMax    = 8192
	propertiesMax = 1024
)

var errBroken = errors.New("its boxes are broken")

// reader reads big-endian values off a slice. After the end it returns zeros and sets bad.
type reader struct {
	b   []byte
	bad bool
}

// take returns the next n bytes.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

// uint returns the next number of size bytes, 0 to 8.
func (r *reader) uint(size int) uint64 {
	var v [8]byte
	copy(v[8-size:], r.take(uint64(size)))
	return binary.BigEndian.Uint64(v[:])
}

// box reads a box (ISO/IEC 14496-12, 4.2).
func (r *reader) box() (kind string, body []byte) {
	size := r.uint(4)
	kind = string(r.take(4))
	switch size {
	case 0: // to the end
		size = uint64(len(r.b))
	case 1:
		size = r.uint(8) - 16
	default:
		size -= 8
	}
	return kind, r.take(size)
}

// boxes calls each for every box in b.
func boxes(b []byte, each func(kind string, body []byte) error) error {
	r := reader{b: b}
	for n := 0; len(r.b) >= 8; n++ {
		kind, body := r.box()
		if r.bad || n == boxesMax {
			return errBroken
		}
		if err := each(kind, body); err != nil {
			return err
		}
	}
	return nil
}

// full reads the version and flags of a FullBox.
func full(body []byte) (version uint8, flags uint32, rest reader) {
	r := reader{b: body}
	v := r.uint(4)
	return uint8(v >> 24), uint32(v & 0xffffff), r
}

// wide returns 4 if a box of the version has wide identifiers, else 2.
func wide(version, from uint8) int {
	if version >= from {
		return 4
	}
	return 2
}
