package kernel

import (
	"slices"
	"sync/atomic"
)

// tagTable has the slots of each tag in a chunk: few slots as a list, many as a bitmap. So a tag
// takes about 2 bytes a row and never more than a bit a slot. The table forgets a tag that no row
// has any more.
//
// There is one writer, and readers take no lock: tables are replaced, lists are replaced or grow at
// their end, and bits change in place.
//
//	table, by tag:   7 ─ list 3, 19, 40     9 ─ bits 1101…     12 ─ list 5
type tagTable struct {
	tags atomic.Pointer[[]*tagSlots]
}

// tagSlots are the slots that have a tag: bits, or list if bits is nil.
type tagSlots struct {
	tag   uint32
	count int // for the writer only
	list  atomic.Pointer[[]uint16]
	bits  []atomic.Uint64
}

// tagBytes is about the memory of a tag without its slots.
const tagBytes = 96

func (t *tagTable) load() []*tagSlots {
	if p := t.tags.Load(); p != nil {
		return *p
	}
	return nil
}

func (t *tagTable) find(tag uint32) (i int, found bool) {
	return slices.BinarySearchFunc(t.load(), tag, func(s *tagSlots, tag uint32) int { return int(int64(s.tag) - int64(tag)) })
}

func (t *tagTable) swap(i int, now *tagSlots) {
	table := slices.Clone(t.load())
	table[i] = now
	t.tags.Store(&table)
}

// set adds a slot, which is not live, to its tags. The chunk has this many blocks.
func (t *tagTable) set(at, blocks int, tags []uint32) {
	for _, tag := range tags {
		i, found := t.find(tag)
		if !found {
			table := slices.Insert(slices.Clone(t.load()), i, &tagSlots{tag: tag})
			t.tags.Store(&table)
		}
		s := t.load()[i]
		if s.has(at) {
			continue
		}
		// A list would take as much memory.
		if s.bits == nil && (s.count+1)*2 > blocks*8 {
			s = s.asBits(blocks)
			t.swap(i, s)
		}
		s.add(at)
	}
}

func (t *tagTable) unset(at int, tags []uint32) {
	for _, tag := range tags {
		i, found := t.find(tag)
		if !found {
			continue // twice among tags
		}
		s := t.load()[i]
		if !s.has(at) {
			continue
		}
		s.remove(at)
		switch {
		case s.count == 0:
			table := slices.Delete(slices.Clone(t.load()), i, i+1)
			t.tags.Store(&table)
		case s.bits != nil && s.count*2*4 < len(s.bits)*8:
			t.swap(i, s.asList())
		}
	}
}

// mark sets the bits of the slots, from block on, that have one of tags. any reports whether some
// slot of the chunk has one of tags.
func (t *tagTable) mark(words []uint64, block int, tags []uint32) (any bool) {
	table := t.load()
	for _, tag := range tags {
		i, found := slices.BinarySearchFunc(table, tag, func(s *tagSlots, tag uint32) int { return int(int64(s.tag) - int64(tag)) })
		if found {
			any = true
			table[i].mark(words, block)
		}
	}
	return any
}

func (t *tagTable) bytes() (n int64) {
	for _, s := range t.load() {
		n += tagBytes + int64(len(s.bits))*8 + int64(cap(s.slots()))*2
	}
	return n
}

// slots returns the list.
func (s *tagSlots) slots() []uint16 {
	if p := s.list.Load(); p != nil {
		return *p
	}
	return nil
}

func (s *tagSlots) has(at int) bool {
	if s.bits != nil {
		return s.bits[at/blockSlots].Load()>>(at%blockSlots)&1 == 1
	}
	return slices.Contains(s.slots(), uint16(at))
}

func (s *tagSlots) add(at int) {
	s.count++
	if s.bits != nil {
		s.bits[at/blockSlots].Or(1 << (at % blockSlots))
		return
	}
	// Readers of the old list don't look beyond its length.
	list := append(s.slots(), uint16(at))
	s.list.Store(&list)
}

func (s *tagSlots) remove(at int) {
	s.count--
	if s.bits != nil {
		s.bits[at/blockSlots].And(^(uint64(1) << (at % blockSlots)))
		return
	}
	list := slices.DeleteFunc(slices.Clone(s.slots()), func(x uint16) bool { return int(x) == at })
	s.list.Store(&list)
}

func (s *tagSlots) asBits(blocks int) *tagSlots {
	now := &tagSlots{tag: s.tag, bits: make([]atomic.Uint64, blocks)}
	for _, at := range s.slots() {
		now.add(int(at))
	}
	return now
}

func (s *tagSlots) asList() *tagSlots {
	now := &tagSlots{tag: s.tag}
	list := make([]uint16, 0, s.count)
	for at := range len(s.bits) * blockSlots {
		if s.has(at) {
			list = append(list, uint16(at))
		}
	}
	now.count = len(list)
	now.list.Store(&list)
	return now
}

func (s *tagSlots) mark(words []uint64, block int) {
	if s.bits != nil {
		for i := range words {
			words[i] |= s.bits[block+i].Load()
		}
		return
	}
	for _, at := range s.slots() {
		if i := int(at)/blockSlots - block; i >= 0 && i < len(words) {
			words[i] |= 1 << (at % blockSlots)
		}
	}
}
