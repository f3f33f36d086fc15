package shard

import (
	"fmt"
	"iter"

	"facet/internal/id"
	"facet/shard/record"
)

// entry is an active or deleted event. What a View reads of it never changes, so views may share
// entries. A change of the event makes another entry with a new sequence.
type entry = record.Record

// member is an entry of a slice with its row. The zero member is none.
type member struct {
	row record.Row
	*entry
}

// none reports whether m is no entry.
func (m member) none() bool { return m.row == 0 }

// members are the entries of a table.
type members struct{ *record.Table }

func (t members) at(row record.Row) member {
	if row == 0 {
		return member{}
	}
	return member{row, t.At(row)}
}

// The active events of a subject form a linked list, in order of registration: nearly every subject
// has one event, and a Go slice for each would cost more than the ids.

// first returns the first active event of a subject.
func (t members) first(subject id.Subject) member { return t.at(t.First(subject)) }

// next returns the active event of the same subject that follows m.
func (t members) next(m member) member { return t.at(m.Next) }

// from returns m and the active events of the subject that follow it. Each may be removed when it
// comes.
func (t members) from(m member) iter.Seq[member] {
	return func(yield func(member) bool) {
		for !m.none() {
			next := t.next(m)
			if !yield(m) {
				return
			}
			m = next
		}
	}
}

// of returns the active events of a subject in order of registration.
func (t members) of(subject id.Subject) iter.Seq[member] { return t.from(t.first(subject)) }

// tags returns the tags of an entry.
func (t members) tags(m member) []uint32 { return t.Tags(&m.Owner) }

// hasExactly reports whether faces are all faces of a subject.
func (t members) hasExactly(subject id.Subject, faces []FaceID) bool {
	left := make(map[FaceID]bool, len(faces))
	for _, f := range faces {
		left[f] = true
	}
	for e := range t.of(subject) {
		f := FaceID{e.Event, e.Revision}
		if !left[f] {
			return false
		}
		delete(left, f)
	}
	return len(left) == 0
}

// find returns an active event of a subject, if there is one.
func (t members) find(subject id.Subject, event id.Event) member {
	return t.findFrom(t.first(subject), event)
}

// findFrom returns an event of the list that starts with m, if it is there.
func (t members) findFrom(m member, event id.Event) member {
	for !m.none() && m.Event != event {
		m = t.next(m)
	}
	return m
}

// join links m into its subject's list, which is in the order of registration.
func (sl *slice) join(m member) { sl.link(sl.first(m.Subject), m) }

// link does what join does. first is the first entry of the subject's list.
func (sl *slice) link(first, m member) {
	before := first
	if first = sl.chain(first, m); first.row != before.row {
		sl.SetFirst(first.row)
	}
	sl.means.Load().enter(first)
}

// chain links m into a subject's list, and returns the first entry of the list then.
func (t members) chain(first, m member) member {
	before := first
	if before.none() || before.First() > m.First() {
		m.Next = before.row
		return m
	}
	for next := t.next(before); !next.none() && next.First() <= m.First(); next = t.next(before) {
		before = next
	}
	m.Next, before.Next = before.Next, m.row
	return first
}

// index links all active entries of a slice that has just been loaded, and makes their templates wait.
func (sl *slice) index() error {
	active := func(yield func(record.Row) bool) {
		for row, e := range sl.entries.All(0) {
			if !e.Deleted && !yield(row) {
				return
			}
		}
	}
	n := sl.entries.Len() - sl.deleted.Len()
	sl.templates.enterAll(active, n)
	sl.changes.Add(uint64(n))
	return sl.Index(active, n, func(first, row record.Row) (record.Row, error) {
		f, m := sl.at(first), sl.at(row)
		if !sl.findFrom(f, m.Event).none() {
			return 0, fmt.Errorf("%w: event %s is there twice", ErrSnapshot, m.Event)
		}
		return sl.chain(f, m).row, nil
	})
}

// part unlinks m from its subject's list. A subject without events is removed.
func (sl *slice) part(m member) {
	first := sl.first(m.Subject)
	switch {
	case first.row != m.row:
		before := first
		for before.Next != m.row {
			before = sl.next(before)
		}
		before.Next = m.Next
	case m.Next != 0:
		sl.SetFirst(m.Next)
	default:
		sl.DeleteFirst(m.Subject)
	}
	m.Next = 0
	sl.means.Load().enter(sl.first(m.Subject))
}
