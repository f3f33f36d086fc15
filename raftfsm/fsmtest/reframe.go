package fsmtest

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"facet/internal/codec"
)

// Reframe corrects the lengths, the count and the checksum of b, a stream of package codec,
// to match its records. A fuzzer then reaches the code behind the checksum.
func Reframe(b []byte, magic codec.Magic) []byte {
	out := binary.BigEndian.AppendUint16(magic[:], codec.Format)
	out = append(out, make([]byte, 8)...)
	var records uint64
	for b = b[min(len(out), len(b)):]; len(b) > 4; {
		n := min(int(binary.BigEndian.Uint16(b[2:])), len(b)-4)
		if n >= 2 {
			out = binary.BigEndian.AppendUint32(out, uint32(n))
			out = append(out, b[4:4+n]...)
			records++
		}
		b = b[4+n:]
	}
	out = binary.BigEndian.AppendUint64(append(out, 0, 0, 0, 0), records)
	sum := sha256.Sum256(out)
	return slices.Concat(out, sum[:])
}
