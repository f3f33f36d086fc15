package shard

import (
	"facet/internal/id"
)

// Order is the direction of a listing.
type Order uint8

// The orders of a listing. Descending is the exact reverse of Ascending.
const (
	Ascending Order = iota
	Descending
)

// Entry is an event in a listing, active or deleted.
type Entry struct {
	Subject id.Subject
	Event   id.Event
	Deleted bool
	// Time is that of its last change, in milliseconds since 1970.
	Time int64
}

// Usage says what becomes of the slots of a slice.
type Usage struct {
	// Granted are all slots that were ever granted, and Returned those of them that
	// were given back; both only grow. The slots between hold Active, Deleted and
	// Pending events, or are free.
	Granted, Returned        uint32
	Active, Deleted, Pending uint32
}

// Slots counts the slots that the slice has.
func (u Usage) Slots() uint32 { return u.Granted - u.Returned }

// Free counts the slots that hold nothing.
func (u Usage) Free() uint32 { return u.Slots() - u.Active - u.Deleted - u.Pending }

// Recyclable counts the slots that a new event may take from deleted ones.
func (u Usage) Recyclable() uint32 { return u.Deleted }

// Stats sums up a shard.
type Stats struct {
	// Granted counts the slots of all slices, as Usage.Slots.
	Slices, Granted, Active, Deleted, Pending int
	// Purging counts the entries behind fences.
	Purging int
	// TemplateBytes is the memory of templates in clear, SealedBytes that of
	// sealed faces.
	TemplateBytes, SealedBytes int64
}

// Listing reads the entries of a Shard in the order of their last change.
type Listing Shard

// Listing returns the listing of s.
func (s *Shard) Listing() *Listing { return (*Listing)(s) }

// List returns at most n entries of a gallery's slice from the offset-th on, in the
// order of their last change, and the number of all. Without a slice there are
// none.
func (s *Listing) List(g id.Gallery, offset, n int, order Order) (entries []Entry, total int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl := s.state.slices[g]
	if sl == nil {
		return nil, 0
	}
	total = sl.entries.Len()
	if offset < 0 || offset >= total || n < 1 {
		return nil, total
	}
	n = min(n, total-offset)
	entries = make([]Entry, 0, n)
	take := func(_ uint64, e *entry) bool {
		entries = append(entries, Entry{e.Subject, e.Event, e.deleted, e.time})
		return len(entries) < n
	}
	if order == Descending {
		pivot, _, _ := sl.entries.GetAt(total - 1 - offset)
		sl.entries.Descend(pivot, take)
	} else {
		pivot, _, _ := sl.entries.GetAt(offset)
		sl.entries.Ascend(pivot, take)
	}
	return entries, total
}

// Before returns how many entries of a gallery's slice had their last change before time,
// in milliseconds since 1970. A merged listing of several shards finds its place by it.
func (s *Listing) Before(g id.Gallery, time int64) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl := s.state.slices[g]
	if sl == nil {
		return 0
	}
	low, high := 0, sl.entries.Len()
	for low < high {
		middle := int(uint(low+high) / 2)
		if _, e, _ := sl.entries.GetAt(middle); e.time < time {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// Usage returns the slots of a gallery's slice; without a slice all are zero.
func (s *Slots) Usage(g id.Gallery) Usage {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if sl := s.state.slices[g]; sl != nil {
		return sl.usage()
	}
	return Usage{}
}

func (sl *slice) usage() Usage {
	deleted := uint32(sl.deleted.Len())
	return Usage{
		Granted: sl.granted, Returned: sl.returned,
		Active: uint32(sl.entries.Len()) - deleted, Deleted: deleted, Pending: uint32(len(sl.pending)),
	}
}

// Stats sums up all slices.
func (s *Slots) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := Stats{Slices: len(s.state.slices)}
	for _, sl := range s.state.slices {
		u := sl.usage()
		out.Granted += int(u.Slots())
		out.Active += int(u.Active)
		out.Deleted += int(u.Deleted)
		out.Pending += int(u.Pending)
		out.SealedBytes += sl.sealedBytes
		out.TemplateBytes += sl.templates.bytes()
	}
	for _, f := range s.state.fences.of {
		out.Purging += f.remains.Len()
	}
	return out
}
