package shard

import (
	"iter"

	"facet/internal/id"
)

// The active events of a subject form a linked list, in order of registration: nearly every subject
// has one event, and a Go slice for each would cost more than the ids.

// of returns the active events of a subject in order of registration.
func (sl *slice) of(subject id.Subject) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for e := sl.subjects[subject]; e != nil; e = e.further {
			if !yield(e) {
				return
			}
		}
	}
}

// hasExactly reports whether faces are all faces of a subject.
func (sl *slice) hasExactly(subject id.Subject, faces []FaceID) bool {
	left := make(map[FaceID]bool, len(faces))
	for _, f := range faces {
		left[f] = true
	}
	for e := range sl.of(subject) {
		f := FaceID{e.Event, e.revision}
		if !left[f] {
			return false
		}
		delete(left, f)
	}
	return len(left) == 0
}

// find returns an active event of a subject, or nil.
func (sl *slice) find(subject id.Subject, event id.Event) *entry {
	return sl.subjects[subject].find(event)
}

// find returns an event of the list that starts with e, or nil; e may be nil.
func (e *entry) find(event id.Event) *entry {
	for e != nil && e.Event != event {
		e = e.further
	}
	return e
}

// join links e into its subject's list, which is in the order of first.
func (sl *slice) join(e *entry) { sl.link(sl.subjects[e.Subject], e) }

// link does what join does. before is the first entry of the subject's list, or nil.
func (sl *slice) link(before, e *entry) {
	first := before
	if before == nil || before.first > e.first {
		first, e.further = e, before
		sl.subjects[e.Subject] = e
	} else {
		for before.further != nil && before.further.first <= e.first {
			before = before.further
		}
		e.further, before.further = before.further, e
	}
	sl.means.Load().enter(first)
}

// part unlinks e from its subject's list. A subject without events is removed.
func (sl *slice) part(e *entry) {
	first := sl.subjects[e.Subject]
	switch {
	case first != e:
		before := first
		for before.further != e {
			before = before.further
		}
		before.further = e.further
	case e.further != nil:
		sl.subjects[e.Subject] = e.further
	default:
		delete(sl.subjects, e.Subject)
	}
	e.further = nil
	sl.means.Load().enter(sl.subjects[e.Subject])
}
