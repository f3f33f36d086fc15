package shard

import (
	"cmp"
	"slices"

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
	// Time is when it last changed, in milliseconds since 1970.
	Time int64
}

// Usage counts the slots of a slice by their use.
type Usage struct {
	// Granted counts all slots ever granted, and Returned the slots that were returned since. Both
	// only grow. Active, Deleted and Pending count the slots by the state of their events. All
	// other slots are free.
	Granted, Returned        uint32
	Active, Deleted, Pending uint32
}

// Slots returns the number of slots that the slice has.
func (u Usage) Slots() uint32 { return u.Granted - u.Returned }

// Free returns the number of empty slots.
func (u Usage) Free() uint32 { return u.Slots() - u.Active - u.Deleted - u.Pending }

// Stats are the sums over all slices of a shard.
type Stats struct {
	// Granted counts slots as Usage.Slots does.
	Slices, Granted, Active, Deleted, Pending int
	// Purging counts the entries behind fences.
	Purging int
	// TemplateBytes is the memory of decrypted templates, SealedBytes the size of sealed faces.
	TemplateBytes, SealedBytes int64
}

// Position is a place in the list of a slice. Each entry has its own, which never changes: a change
// of an event makes another entry.
type Position struct {
	// Time is in milliseconds since 1970.
	Time int64 `cbor:"1,keyasint"`
	// Sequence orders the entries of one time. The zero is before all of them.
	Sequence uint64 `cbor:"2,keyasint"`
}

// behind reports whether e lies before p.
func (p Position) behind(e *entry) bool {
	return e.Time() < p.Time || e.Time() == p.Time && e.Sequence() < p.Sequence
}

// Page is a part of a slice's list.
type Page struct {
	Entries []Entry
	// Sequences has the sequence of each entry.
	Sequences []uint64
	// Expires has when each entry expires of itself, in milliseconds since 1970, or 0. It is empty if
	// none of them does.
	Expires []int64
	// Total counts all entries of the slice.
	Total int
}

// ListEvents returns at most n entries of a gallery's slice from offset on, in the order of their last
// change. It returns none without a slice.
func (s *lockedState) ListEvents(g id.Gallery, offset, n int, order Order) Page {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.state.slices[g].page(offset, n, order)
}

// ListEventsAfter returns at most n entries of a gallery's slice that follow the position after, in the
// order of their last change. An entry at the position itself is not among them.
func (s *lockedState) ListEventsAfter(g id.Gallery, after Position, n int, order Order) Page {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl := s.state.slices[g]
	if sl == nil {
		return Page{}
	}
	// first is the index of the first entry that does not lie before the position.
	first := sl.entries.Rank(after.behind)
	if order == Descending {
		return sl.page(sl.entries.Len()-first, n, order)
	}
	for _, e := range sl.entries.At(first) {
		if e.Time() == after.Time && e.Sequence() == after.Sequence {
			first++
		}
		break
	}
	return sl.page(first, n, order)
}

func (sl *slice) page(offset, n int, order Order) Page {
	if sl == nil {
		return Page{}
	}
	p := Page{Total: sl.entries.Len()}
	if offset < 0 || offset >= p.Total || n < 1 {
		return p
	}
	n = min(n, p.Total-offset)
	p.Entries, p.Sequences = make([]Entry, 0, n), make([]uint64, 0, n)
	entries := sl.entries.At(offset)
	if order == Descending {
		entries = sl.entries.Back(offset)
	}
	for _, e := range entries {
		p.Entries = append(p.Entries, Entry{e.Subject, e.Event, e.Deleted, e.Time()})
		p.Sequences = append(p.Sequences, e.Sequence())
		if len(p.Entries) == n {
			break
		}
	}
	p.Expires = sl.times.all(p.Sequences)
	return p
}

// ListSubject returns the entries of a subject's active events, in the order of their last change.
func (s *lockedState) ListSubject(g id.Gallery, subject id.Subject) (entries []Entry) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl := s.state.slices[g]
	if sl == nil {
		return nil
	}
	var list []*entry
	for e := range sl.of(subject) {
		list = append(list, e.entry)
	}
	slices.SortFunc(list, func(a, b *entry) int { return cmp.Compare(a.Sequence(), b.Sequence()) })
	for _, e := range list {
		entries = append(entries, Entry{e.Subject, e.Event, e.Deleted, e.Time()})
	}
	return entries
}

// CountBefore returns how many entries of a gallery's slice last changed before time, in milliseconds
// since 1970. With it the router finds a page in the merged lists of several shards.
func (s *lockedState) CountBefore(g id.Gallery, time int64) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl := s.state.slices[g]
	if sl == nil {
		return 0
	}
	return sl.entries.Rank(func(e *entry) bool { return e.Time() < time })
}

// Usage returns the use of a gallery's slots; all counts are zero without a slice.
func (s *lockedState) Usage(g id.Gallery) Usage {
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

// Stats returns the sums over all slices.
func (s *lockedState) Stats() Stats {
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
		out.TemplateBytes += sl.templates.bytes() + sl.means.Load().bytes()
	}
	for _, f := range s.state.fences.of {
		out.Purging += f.remains.Len()
	}
	return out
}
