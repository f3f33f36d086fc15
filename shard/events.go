package shard

import (
	"fmt"
	"slices"

	"facet/internal/id"
	"facet/shard/kernel"
)

// Active is an active event of a subject.
type Active struct {
	Event id.Event
	// Revision counts the replacements of its face.
	Revision uint32
	// Tags are identities of tags.
	Tags []uint32
	// Note is the subject's note, which its first event carries, or nil.
	Note []byte `cbor:",omitempty"`
	// Time is when it last changed, in milliseconds since 1970, and Expires when it expires of
	// itself, or 0.
	Time    int64 `cbor:",omitempty"`
	Expires int64 `cbor:",omitempty"`
}

// Events returns the active events of a subject in order of registration, whatever was replaced
// since. An unknown subject has none. The error wraps ErrGeneration.
func (s *Shard) Events(g id.Gallery, generation uint32, subject id.Subject) ([]Active, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl, err := s.state.slice(g, generation)
	if err != nil || sl == nil {
		return nil, err
	}
	var out []Active
	for e := range sl.of(subject) {
		a := Active{Event: e.Event, Revision: e.revision, Tags: slices.Clone(e.Tags), Time: e.time, Expires: sl.times.at(e.sequence)}
		if e.noteLen > 0 {
			if _, a.Note, err = s.sealed.parts(e); err != nil {
				return nil, fmt.Errorf("read the note of subject %s: %w", subject, err)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// Replacement is a new face for an active event.
type Replacement struct {
	Gallery    id.Gallery
	Generation uint32
	Subject    id.Subject
	Event      id.Event
	// Time is when the face was replaced, in milliseconds since 1970; see Event.Time.
	Time int64
	// Tags are identities of tags. With KeepTags the event keeps the tags it has.
	Tags     []uint32
	KeepTags bool
	// Expires is when the event expires of itself, as in Event. The zero keeps the time that it has,
	// and NoExpiry removes it.
	Expires  int64
	NoExpiry bool
	// Sealed is the face, sealed by SealFace for Revision.
	Sealed []byte
	// Revision is one more than the event's present revision.
	Revision uint32
	// Oldest demands that the event is its subject's oldest.
	Oldest bool
	// Note is the subject's note from now on, sealed by SealNote for Revision, or nil. Noted reports
	// that the event carries a note now; Update demands it.
	Note  []byte
	Noted bool
}

// Update replaces the face of an active event and zeroes the old template in memory. It leaves a
// deleted entry with the same ids directly before the new one. That entry takes a free slot, or
// else the slot of the oldest deleted entry; without either, Update leaves none.
//
// The error wraps ErrGeneration, ErrSubject, ErrEvent or ErrMoved. With ErrMoved, now is the event
// as the shard has it.
func (s *Shard) Update(r Replacement) (now Active, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.known(r.Gallery, r.Generation, r.Subject)
	if err != nil {
		return Active{}, err
	}
	oldest, old := sl.subjects[r.Subject], sl.find(r.Subject, r.Event)
	if r.Oldest && old != oldest {
		return Active{Event: oldest.Event, Revision: oldest.revision}, ErrMoved
	}
	if old == nil {
		return Active{}, ErrEvent
	}
	if old.revision+1 != r.Revision || (old.noteLen > 0) != r.Noted || len(r.Note) > 0 && old != oldest {
		return Active{Event: old.Event, Revision: old.revision}, ErrMoved
	}
	s.state.replace(sl, old, r)
	return Active{Event: r.Event, Revision: r.Revision}, nil
}

func (st *state) replace(sl *slice, old *entry, r Replacement) {
	expires := r.Expires
	if expires == 0 && !r.NoExpiry {
		expires = sl.times.at(old.sequence)
	}
	spare := sl.room(OldestDeleted)
	sl.leave(old)
	if spare {
		sl.enter(old.delete(st.next(), r.Time))
	}
	fresh := &entry{
		Owner:    kernel.Owner{Subject: old.Subject, Event: old.Event, Tags: r.Tags},
		sequence: st.next(), first: old.first, time: r.Time, revision: r.Revision,
	}
	fresh.setSealed(r.Sealed, r.Note)
	if r.KeepTags {
		fresh.Tags = old.Tags
	}
	sl.part(old)
	sl.add(fresh)
	sl.expires(fresh, expires)
}

// Removal removes one event of a subject.
type Removal struct {
	Gallery    id.Gallery
	Generation uint32
	Subject    id.Subject
	Event      id.Event
	// Time is when the event was removed, in milliseconds since 1970; see Event.Time.
	Time int64
	// Heir carries the subject's note after an event that carries it.
	Heir Heir
}

// Heir is the event that is its subject's first when the first one is gone.
type Heir struct {
	Event    id.Event `cbor:"1,keyasint"`
	Revision uint32   `cbor:"2,keyasint,omitempty"`
	// Sealed is its face, as it was. Note is the subject's note, sealed by SealNote for the event.
	Sealed []byte `cbor:"3,keyasint"`
	Note   []byte `cbor:"4,keyasint"`
	// Expires is when the entry with the note expires of itself, or 0. The entry is a later update to
	// a retention, so this is the end of the former one's.
	Expires int64 `cbor:"5,keyasint,omitempty"`
}

// Remove turns one active event into a deleted entry, as Erase does with all events of a subject. A
// subject without events is gone. If the event carries the subject's note, and is not the last, the
// heir becomes another entry with the note. The error wraps ErrGeneration, ErrSubject, ErrEvent, or
// ErrMoved if the heir is another event.
func (s *Shard) Remove(r Removal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.known(r.Gallery, r.Generation, r.Subject)
	if err != nil {
		return err
	}
	old := sl.find(r.Subject, r.Event)
	if old == nil {
		return ErrEvent
	}
	if !s.state.remove(sl, old, r.Heir, r.Time) {
		return ErrMoved
	}
	return nil
}

// remove removes an active event. It returns false, and changes nothing, if another event gets the
// note, and is not the heir.
func (st *state) remove(sl *slice, old *entry, heir Heir, time int64) bool {
	next := old.further
	inherits := old.inherited()
	if inherits && !next.is(heir) {
		return false
	}
	sl.leave(old)
	sl.part(old)
	sl.enter(old.delete(st.next(), time))
	if inherits {
		st.inherit(sl, next, heir, time)
	}
	return true
}

// inherited reports whether another event gets the note of e when e goes.
func (e *entry) inherited() bool { return e.noteLen > 0 && e.further != nil }

// is reports whether e is the heir h.
func (e *entry) is(h Heir) bool {
	return e.Event == h.Event && e.revision == h.Revision && len(h.Note) > 0
}

// inherit replaces an entry by one that carries the subject's note, too.
func (st *state) inherit(sl *slice, old *entry, heir Heir, time int64) {
	sl.leave(old)
	fresh := &entry{
		Owner:    kernel.Owner{Subject: old.Subject, Event: old.Event, Tags: old.Tags},
		sequence: st.next(), first: old.first, time: time, revision: old.revision,
	}
	fresh.setSealed(heir.Sealed, heir.Note)
	sl.part(old)
	sl.add(fresh)
	sl.expires(fresh, heir.Expires)
}
