package shard

import (
	"fmt"
	"slices"

	"facet/internal/id"
	"facet/shard/record"
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
		a := Active{Event: e.Event, Revision: e.Revision, Tags: slices.Clone(sl.tags(e)), Time: e.Time(), Expires: sl.times.at(e.Sequence())}
		if e.NoteLen > 0 {
			if _, a.Note, err = s.sealed.parts(e.entry); err != nil {
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
func (s *lockedState) Update(r Replacement) (now Active, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.known(r.Gallery, r.Generation, r.Subject)
	if err != nil {
		return Active{}, err
	}
	oldest, old := sl.first(r.Subject), sl.find(r.Subject, r.Event)
	if r.Oldest && old.row != oldest.row {
		return Active{Event: oldest.Event, Revision: oldest.Revision}, ErrMoved
	}
	if old.none() {
		return Active{}, ErrEvent
	}
	if old.Revision+1 != r.Revision || (old.NoteLen > 0) != r.Noted || len(r.Note) > 0 && old.row != oldest.row {
		return Active{Event: old.Event, Revision: old.Revision}, ErrMoved
	}
	s.state.replace(sl, old, r)
	return Active{Event: r.Event, Revision: r.Revision}, nil
}

func (st *state) replace(sl *slice, old member, r Replacement) {
	expires := r.Expires
	if expires == 0 && !r.NoExpiry {
		expires = sl.times.at(old.Sequence())
	}
	spare := sl.room(OldestDeleted)
	sl.leave(old)
	if spare {
		sl.enter(deletedEntry(old, st.next(), r.Time))
	}
	fresh := record.Fields{
		Subject: old.Subject, Event: old.Event, Tags: r.Tags, Sequence: st.next(), First: old.First(), Time: r.Time, Revision: r.Revision,
	}
	if r.KeepTags {
		fresh.Tags = sl.tags(old)
	}
	sl.part(old)
	sl.add(newDraft(fresh, r.Sealed, r.Note, expires))
	sl.Remove(old.row)
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
func (s *lockedState) Remove(r Removal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.known(r.Gallery, r.Generation, r.Subject)
	if err != nil {
		return err
	}
	old := sl.find(r.Subject, r.Event)
	if old.none() {
		return ErrEvent
	}
	if !s.state.remove(sl, old, r.Heir, r.Time) {
		return ErrMoved
	}
	return nil
}

// remove removes an active event. It returns false, and changes nothing, if another event gets the
// note, and is not the heir.
func (st *state) remove(sl *slice, old member, heir Heir, time int64) bool {
	next := sl.next(old)
	inherits := inherited(old)
	if inherits && !heir.is(next) {
		return false
	}
	sl.leave(old)
	sl.part(old)
	sl.enter(deletedEntry(old, st.next(), time))
	sl.Remove(old.row)
	if inherits {
		st.inherit(sl, next, heir, time)
	}
	return true
}

// inherited reports whether another event gets the note of e when e goes.
func inherited(e member) bool { return e.NoteLen > 0 && e.Next != 0 }

// is reports whether e is the heir h.
func (h Heir) is(e member) bool {
	return e.Event == h.Event && e.Revision == h.Revision && len(h.Note) > 0
}

// inherit replaces an entry by one that carries the subject's note, too.
func (st *state) inherit(sl *slice, old member, heir Heir, time int64) {
	sl.leave(old)
	fresh := record.Fields{
		Subject: old.Subject, Event: old.Event, Tags: sl.tags(old), Sequence: st.next(), First: old.First(), Time: time, Revision: old.Revision,
	}
	sl.part(old)
	sl.add(newDraft(fresh, heir.Sealed, heir.Note, heir.Expires))
	sl.Remove(old.row)
}
