package segment

import (
	"encoding/binary"
	"fmt"
	"slices"

	"facet/internal/stale"
)

// Single reads sealed parts whose neighbours are not wanted, through memory of its own. The zero
// value is ready. It is for one goroutine.
type Single struct{ buf []byte }

// SealedAlone does what Sealed does, for a part of a known length. It reads little more than the part
// if all parts of the block have this length, but does not check what it has read then. A caller that
// can't authenticate the part calls Sealed, which reads the block and reports damage. The part is
// valid until the next use of r.
func (s *Set) SealedAlone(r *Single, sequence uint64, length int) ([]byte, error) {
	if i := s.find(sequence); i < len(s.Parts()) {
		return r.sealed(s.parts[i].File, sequence, length)
	}
	return nil, fmt.Errorf("%w: record %d", ErrMissing, sequence)
}

func (r *Single) sealed(f *File, sequence uint64, length int) ([]byte, error) {
	i := f.blockOf(sequence)
	if i == len(f.sealed) {
		return nil, f.missing(sequence)
	}
	size := recordHeadBytes + length
	if from, n := f.span(i, sequence, size); n > 0 {
		r.buf = slices.Grow(r.buf[:0], n*size)[:n*size]
		stale.Fill(r.buf)
		if err := ReadAt(f.at, r.buf, from); err != nil {
			return nil, f.damage(err)
		}
		for b := r.buf; len(b) > 0; b = b[size:] {
			if binary.LittleEndian.Uint64(b) == sequence && binary.LittleEndian.Uint32(b[8:]) == uint32(length) {
				return b[recordHeadBytes:size:size], nil
			}
		}
	}
	b, err := f.read(f.sealed[i], r.buf)
	if err != nil {
		return nil, err
	}
	r.buf = b
	part, _, err := f.cutTo(b, sequence)
	return part, err
}

// span returns where a record of a block lies if all records of the block have this size: at one of n
// places, the first of them at offset from. n is 0 if they can't all have it.
//
//	sequences   41 42  –  – 45 46 47  –  –      last 49, four are missing
//	index        0  1        2  3  4            46 has index 1, 2, 3 or 4: those of 9 sequences
//	                                            of which 0 to 4 are missing before it
func (f *File) span(i int, sequence uint64, size int) (from int64, n int) {
	k, before := f.sealed[i], f.foot.first-1
	if i > 0 {
		before = f.sealed[i-1].last
	}
	records := uint64(k.length) / uint64(size)
	if records == 0 || records*uint64(size) != uint64(k.length) || sequence <= before || records > k.last-before {
		return 0, 0
	}
	missing := k.last - before - records
	high := sequence - before - 1
	low := high - min(high, missing)
	high = min(high, records-1)
	return k.offset + int64(low)*int64(size), int(high-low) + 1
}
