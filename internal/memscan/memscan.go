// Package memscan looks in the memory of a process for runs of texts that tests know,
// photos for example. It reads /proc, so only Linux has it.
package memscan

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

const (
	// runBytes is the length of the shortest run that is found.
	runBytes = 64
	// pieceBytes is the length of the pieces of a text. A run has a whole piece, wherever it starts.
	pieceBytes = runBytes / 2

	// hashBits is the binary logarithm of the number of bits in Pieces.maybe.
	hashBits = 24
	// A find shows the memory from shownBefore before the start of the run to shownAfter after it.
	shownBefore = 96
	shownAfter  = 160
	// shownMax is how many finds are shown, each of another kind.
	shownMax = 4
)

// Pieces are the pieces of known texts. Make it with New.
type Pieces struct {
	// byKey has the pieces by their keys.
	byKey map[uint64][]piece
	// maybe has a bit for the hash of each key of byKey. Most addresses are passed by
	// with one look at it.
	maybe []uint64
}

// piece is pieceBytes of text from at on.
type piece struct {
	kind string
	text []byte
	at   int
}

// New returns an empty set.
func New() *Pieces {
	return &Pieces{byKey: map[uint64][]piece{}, maybe: make([]uint64, 1<<hashBits/64)}
}

// Add cuts text into pieces and adds each one that has enough different bytes to be of this text
// alone: no plain background, no table.
func (p *Pieces) Add(kind string, text []byte) {
	text = bytes.Clone(text)
	for at := 0; at+pieceBytes <= len(text); at += pieceBytes {
		if !varied(text[at : at+pieceBytes]) {
			continue
		}
		key := keyOf(text[at:])
		p.byKey[key] = append(p.byKey[key], piece{kind, text, at})
		p.maybe[hashOf(key)/64] |= 1 << (hashOf(key) % 64)
	}
}

// varied reports whether b has a third of different bytes, or as many as a run needs.
func varied(b []byte) bool {
	var seen [256]bool
	different := 0
	for _, c := range b {
		if !seen[c] {
			seen[c] = true
			different++
		}
	}
	return different >= min(len(b), runBytes)/3
}

// Len returns the number of pieces.
func (p *Pieces) Len() int {
	n := 0
	for _, list := range p.byKey {
		n += len(list)
	}
	return n
}

// Drop removes the pieces of the runs that were found.
func (p *Pieces) Drop(found Found) {
	dropped := map[*byte]bool{}
	for _, f := range found {
		for i := range f.text {
			dropped[&f.text[i]] = true
		}
	}
	for key, list := range p.byKey {
		p.byKey[key] = slices.DeleteFunc(list, func(k piece) bool { return dropped[&k.text[k.at]] })
	}
}

// Found has the runs that were found.
type Found map[place]find

type place struct {
	pid     int
	address int64
	kind    string
}

// find is a run of a text in the memory of a process.
type find struct {
	kind      string
	mapping   string
	address   int64
	registers bool   // the run lies in the vector registers of a signal frame
	text      []byte // the run, in the text
	around    []byte // memory around the start of the run
}

// Registers returns the runs in the vector registers of signal frames, and the others.
func (f Found) Registers() (in, others Found) {
	in, others = maps.Clone(f), maps.Clone(f)
	maps.DeleteFunc(in, func(_ place, one find) bool { return !one.registers })
	maps.DeleteFunc(others, func(_ place, one find) bool { return one.registers })
	return in, others
}

// String returns how many bytes of each kind were found, and some of the places.
func (f Found) String() string {
	kinds, places := map[string]int{}, ""
	for _, one := range f {
		kinds[one.kind] += len(one.text)
		if len(kinds) <= shownMax && kinds[one.kind] == len(one.text) {
			places += fmt.Sprintf("\n%d bytes of %s at %#x in %s:\n%s", len(one.text), one.kind, one.address, one.mapping, hex.Dump(one.around))
		}
	}
	return fmt.Sprint(kinds, places)
}

// search calls add with each run that b has. b lies at address.
func (p *Pieces) search(b []byte, address int64, add func(find)) {
	type line struct { // of the places where the bytes of a text would lie
		text  *byte
		start int
	}
	ends := map[line]int{} // of the last run on each line
	for at := 0; at+pieceBytes <= len(b); at++ {
		if binary.LittleEndian.Uint64(b[at:]) == 0 { // most of a memory is zero
			at += 6
			continue
		}
		key := keyOf(b[at:])
		if h := hashOf(key); p.maybe[h/64]&(1<<(h%64)) == 0 {
			continue
		}
		for _, known := range p.byKey[key] {
			line := line{&known.text[0], at - known.at}
			if !bytes.Equal(b[at:at+pieceBytes], known.text[known.at:known.at+pieceBytes]) || at < ends[line] {
				continue
			}
			from, to := known.run(b, at)
			ends[line] = to
			text := known.text[from-line.start : to-line.start]
			if len(text) < runBytes || !varied(text) {
				continue
			}
			add(find{
				kind: known.kind, address: address + int64(from), registers: inRegisters(b, from, to),
				text: text, around: bytes.Clone(b[max(0, from-shownBefore):min(len(b), from+shownAfter)]),
			})
		}
	}
}

// run returns where in b the run starts and ends that has the piece at at.
func (p piece) run(b []byte, at int) (from, to int) {
	from, to = at, at+pieceBytes
	for i := p.at; from > 0 && i > 0 && b[from-1] == p.text[i-1]; i-- {
		from--
	}
	for i := p.at + pieceBytes; to < len(b) && i < len(p.text) && b[to] == p.text[i]; i++ {
		to++
	}
	return from, to
}

// keyOf returns the key of the piece at the start of b: its first and its last eight bytes, mixed.
func keyOf(b []byte) uint64 {
	return binary.LittleEndian.Uint64(b) + binary.LittleEndian.Uint64(b[pieceBytes-8:])*0xff51afd7ed558ccd
}

func hashOf(key uint64) uint64 { return key * 0x9e3779b97f4a7c15 >> (64 - hashBits) }
