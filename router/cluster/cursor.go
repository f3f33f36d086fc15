package cluster

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

const cursorMAC = 16

// MACOfCursor returns the MAC of a cursor with a purpose in a gallery.
func MACOfCursor(purpose string, of id.Cluster, g metafsm.Gallery, head []byte) []byte {
	mac := hmac.New(sha256.New, g.IDKey[:])
	mac.Write([]byte(purpose))
	mac.Write([]byte{0})
	mac.Write(of.UUID[:])
	mac.Write(g.ID.UUID[:])
	mac.Write(binary.BigEndian.AppendUint32(nil, g.Generation))
	mac.Write(head)
	return mac.Sum(nil)[:cursorMAC]
}

// OpenCursor returns the first size bytes of a cursor, if its MAC is right.
func OpenCursor(purpose string, of id.Cluster, g metafsm.Gallery, text string, size int) (head []byte, ok bool) {
	if len(text) != base64.RawURLEncoding.EncodedLen(size+cursorMAC) {
		return nil, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != size+cursorMAC || !hmac.Equal(b[size:], MACOfCursor(purpose, of, g, b[:size])) {
		return nil, false
	}
	return b[:size], true
}
