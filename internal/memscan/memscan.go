// Package memscan looks in the memory of a process for pieces of texts that tests know,
// photos for example. It reads /proc, so only Linux has it.
package memscan

import (
	"bytes"
	"encoding/binary"
)

// PieceBytes is the length of the pieces that are looked for.
const PieceBytes = 64

// hashBits is the binary logarithm of the number of bits in Pieces.maybe.
const hashBits = 20

// Pieces are the pieces of known texts. Make it with New.
type Pieces struct {
	// byHead has the pieces by their first eight bytes.
	byHead map[uint64][]piece
	// maybe has a bit for the hash of each key of byHead. Most addresses are passed by
	// with one look at it.
	maybe []uint64
}

type piece struct {
	bytes []byte
	kind  string
}

// New returns an empty set.
func New() *Pieces {
	return &Pieces{byHead: map[uint64][]piece{}, maybe: make([]uint64, 1<<hashBits/64)}
}

// Add cuts text into pieces and adds each one that has enough different bytes to be of this text
// alone: no plain background, no table.
func (p *Pieces) Add(kind string, text []byte) {
	for ; len(text) >= PieceBytes; text = text[PieceBytes:] {
		var seen [256]bool
		different := 0
		for _, c := range text[:PieceBytes] {
			if !seen[c] {
				seen[c] = true
				different++
			}
		}
		if different < PieceBytes/3 {
			continue
		}
		head := binary.LittleEndian.Uint64(text)
		p.byHead[head] = append(p.byHead[head], piece{bytes: bytes.Clone(text[:PieceBytes]), kind: kind})
		p.maybe[hashOf(head)/64] |= 1 << (hashOf(head) % 64)
	}
}

// Len returns the number of different pieces.
func (p *Pieces) Len() int { return len(p.byHead) }

// Drop removes the pieces that found names.
func (p *Pieces) Drop(found Found) {
	for head := range found {
		delete(p.byHead, head)
	}
}

// Found has the kind of each piece that was found, by the first bytes of the piece.
type Found map[uint64]string

// Kinds returns how many pieces of each kind were found.
func (f Found) Kinds() map[string]int {
	kinds := map[string]int{}
	for _, kind := range f {
		kinds[kind]++
	}
	return kinds
}

// search adds the pieces that b contains to found. place is where b lies.
func (p *Pieces) search(b []byte, place string, found Found) {
	for at := 0; at+PieceBytes <= len(b); at++ {
		head := binary.LittleEndian.Uint64(b[at:])
		if head == 0 { // most of a memory is zero
			at += 6
			continue
		}
		if h := hashOf(head); p.maybe[h/64]&(1<<(h%64)) == 0 {
			continue
		}
		for _, known := range p.byHead[head] {
			if bytes.Equal(b[at:at+PieceBytes], known.bytes) {
				found[head] = known.kind + " in " + place
			}
		}
	}
}

func hashOf(head uint64) uint64 { return head * 0x9e3779b97f4a7c15 >> (64 - hashBits) }
