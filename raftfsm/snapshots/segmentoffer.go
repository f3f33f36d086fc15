package snapshots

import (
	"fmt"
	"io"

	"facet/shard/segment"
)

// Before a leader sends a snapshot, it asks the member which of the segments it has, from
// an earlier snapshot or from a transfer that broke off. The offer lists the hashes of the
// segments. The answer has a bit for each segment, the lowest bit for the first.

// Offer returns the hashes of the segments.
func (o *Snapshot) Offer() []byte {
	var hashes []byte
	for _, r := range o.refs() {
		hashes = append(hashes, r.Hash[:]...)
	}
	return hashes
}

// Held returns the segments that a member has, by the bits of its answer to the offer. It
// returns nil if bits has the wrong length.
func (o *Snapshot) Held(bits []byte) map[segment.Hash]bool {
	refs := o.refs()
	if len(bits) != (len(refs)+7)/8 {
		return nil
	}
	have := make(map[segment.Hash]bool)
	for i, r := range refs {
		if bits[i/8]>>(i%8)&1 == 1 {
			have[r.Hash] = true
		}
	}
	return have
}

// AnswerOffer reads an offer of size bytes. It returns the bits of the answer for a member
// that has these segments.
func AnswerOffer(r io.Reader, size int64, segments *segment.Store) (bits []byte, err error) {
	const hashBytes = int64(len(segment.Hash{}))
	n := size / hashBytes
	if size%hashBytes != 0 || n < 1 || n > segmentsMax {
		return nil, fmt.Errorf("%d bytes of hashes", size)
	}
	bits = make([]byte, (n+7)/8)
	for i := range n {
		var h segment.Hash
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return nil, fmt.Errorf("read hashes of segments: %w", err)
		}
		if segments.Has(h) {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return bits, nil
}
