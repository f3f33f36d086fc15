package record

import (
	"encoding/binary"
	"sync/atomic"
)

// tagSets has each set of tags once, under a number. Number 0 is the set without tags. There is one
// writer, and readers take no lock.
type tagSets struct {
	sets   atomic.Pointer[[]*tagSet]
	number map[string]uint32
	free   []uint32
	bytes  int64 // about the memory of all sets, in the Go heap
}

type tagSet struct {
	tags []uint32
	uses int // for the writer only
}

// setBytes is the memory of a set without its tags, which it has twice.
const setBytes = 150

func (s *tagSets) load() []*tagSet {
	if p := s.sets.Load(); p != nil {
		return *p
	}
	return nil
}

func (s *tagSets) at(number uint32) []uint32 {
	if number == 0 {
		return nil
	}
	return s.load()[number-1].tags
}

func key(tags []uint32) string {
	b := make([]byte, 0, 4*len(tags))
	for _, t := range tags {
		b = binary.LittleEndian.AppendUint32(b, t)
	}
	return string(b)
}

// take returns the number of a set, in which the order of the tags counts. The caller releases it.
func (s *tagSets) take(tags []uint32) uint32 {
	if len(tags) == 0 {
		return 0
	}
	name := key(tags)
	if number, found := s.number[name]; found {
		s.load()[number-1].uses++
		return number
	}
	set, list := &tagSet{tags, 1}, s.load()
	number := uint32(len(list) + 1)
	if n := len(s.free); n > 0 {
		number, s.free = s.free[n-1], s.free[:n-1]
		list[number-1] = set // nobody reads a number that is free
	} else {
		// Readers of the old list don't look beyond its length.
		list = append(list, set)
		s.sets.Store(&list)
	}
	if s.number == nil {
		s.number = make(map[string]uint32)
	}
	s.number[name] = number
	s.bytes += set.bytes()
	return number
}

func (s *tagSets) release(number uint32) {
	if number == 0 {
		return
	}
	set := s.load()[number-1]
	if set.uses--; set.uses == 0 {
		delete(s.number, key(set.tags))
		s.bytes -= set.bytes()
		s.load()[number-1] = nil
		s.free = append(s.free, number)
	}
}

func (s *tagSet) bytes() int64 { return setBytes + 8*int64(len(s.tags)) }
