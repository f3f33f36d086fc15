package shard

import (
	"iter"

	"facet/internal/id"
)

// The active events of a subject are a chain, in order of registration: nearly
// every subject has one event, and a slice a subject would cost more than the ids.

// of gives the active events of a subject in order of registration.
func (sl *slice) of(subject id.Subject) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for e := sl.subjects[subject]; e != nil; e = e.further {
			if !yield(e) {
				return
			}
		}
	}
}

// find gives an active event of a subject, or nil.
func (sl *slice) find(subject id.Subject, event id.Event) *entry {
	return sl.subjects[subject].find(event)
}

// find gives an event of the chain that e, which may be nil, begins.
func (e *entry) find(event id.Event) *entry {
	for e != nil && e.Event != event {
		e = e.further
	}
	return e
}

// join puts e into its subject's chain: at the end, unless its first says otherwise.
func (sl *slice) join(e *entry) { sl.link(sl.subjects[e.Subject], e) }

// link is join with the chain that the subject has, or nil.
func (sl *slice) link(before, e *entry) {
	if before == nil || before.first > e.first {
		e.further = before
		sl.subjects[e.Subject] = e
		return
	}
	for before.further != nil && before.further.first <= e.first {
		before = before.further
	}
	e.further, before.further = before.further, e
}

// part takes e out of its subject's chain; without events the subject is gone.
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
}
