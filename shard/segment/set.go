package segment

import (
	"fmt"
	"sort"
	"sync/atomic"
)

// Part is a file of a set.
type Part struct {
	File *File
	// Dead has the sequences of the file's dead records, in ascending order.
	Dead []uint64
	// DeadSealed is how many of the dead records have a sealed part.
	DeadSealed int
}

// Set is the files of a state, with sequences that ascend from file to file. It does not change,
// except for its number of references.
type Set struct {
	parts []Part
	refs  atomic.Int64
}

// NewSet returns a set with one reference. It takes over the files. The error wraps ErrCorrupt;
// then the files are released.
func NewSet(parts []Part) (*Set, error) {
	s := &Set{parts: parts}
	s.refs.Store(1)
	for i := range parts {
		first, last := parts[i].File.Range()
		if i > 0 {
			if _, before := parts[i-1].File.Range(); first <= before {
				s.Release()
				return nil, fmt.Errorf("%w: segments overlap at %d", ErrCorrupt, first)
			}
		}
		dead := parts[i].Dead
		if n := len(dead); n > 0 && (dead[0] < first || dead[n-1] > last || !ascending(dead)) {
			s.Release()
			return nil, fmt.Errorf("%w: dead records of segment %s", ErrCorrupt, parts[i].File.ref.Hash)
		}
	}
	return s, nil
}

func ascending(list []uint64) bool {
	for i := range len(list) - 1 {
		if list[i] >= list[i+1] {
			return false
		}
	}
	return true
}

// Retain adds a reference. Retain of a nil set does nothing.
func (s *Set) Retain() *Set {
	if s != nil && s.refs.Add(1) < 2 {
		panic("bug: a set was retained after its last release")
	}
	return s
}

// Release drops a reference; the last one releases the files. Release of a nil set does nothing.
func (s *Set) Release() {
	if s == nil {
		return
	}
	switch n := s.refs.Add(-1); {
	case n == 0:
		for _, p := range s.parts {
			p.File.Release()
		}
	case n < 0:
		panic("bug: a set was released too often")
	}
}

// Parts returns the files in order. A nil set has none.
func (s *Set) Parts() []Part {
	if s == nil {
		return nil
	}
	return s.parts
}

// Last returns the last sequence, or 0 without files.
func (s *Set) Last() uint64 {
	if s == nil || len(s.parts) == 0 {
		return 0
	}
	_, last := s.parts[len(s.parts)-1].File.Range()
	return last
}

// Sealed returns the sealed part of a record, which must not be changed. The error wraps ErrMissing
// or ErrCorrupt, or comes from the disk.
func (s *Set) Sealed(sequence uint64) ([]byte, error) {
	if i := s.find(sequence); i < len(s.Parts()) {
		return s.parts[i].File.Sealed(sequence)
	}
	return nil, fmt.Errorf("%w: record %d", ErrMissing, sequence)
}

// SealedBy does what Sealed does, through a cursor. The part is valid until the cursor's next use.
func (s *Set) SealedBy(c *Cursor, sequence uint64) ([]byte, error) {
	if i := s.find(sequence); i < len(s.Parts()) {
		return c.sealed(s.parts[i].File, sequence)
	}
	return nil, fmt.Errorf("%w: record %d", ErrMissing, sequence)
}

// find returns the first part that ends at sequence or after it.
func (s *Set) find(sequence uint64) int {
	parts := s.Parts()
	return sort.Search(len(parts), func(i int) bool {
		_, last := parts[i].File.Range()
		return last >= sequence
	})
}

// Bytes returns the total size of the files.
func (s *Set) Bytes() (n int64) {
	for _, p := range s.Parts() {
		n += p.File.ref.Bytes
	}
	return n
}
