package shard

import (
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
		out = append(out, Active{e.Event, e.revision, slices.Clone(e.Tags)})
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
	// Sealed is the face, sealed by SealFace for Revision.
	Sealed []byte
	// Revision is one more than the event's present revision.
	Revision uint32
	// Oldest demands that the event is its subject's oldest.
	Oldest bool
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
	if old.revision+1 != r.Revision {
		return Active{Event: old.Event, Revision: old.revision}, ErrMoved
	}
	s.state.replace(sl, old, r)
	return Active{Event: r.Event, Revision: r.Revision}, nil
}

func (st *state) replace(sl *slice, old *entry, r Replacement) {
	spare := sl.room(OldestDeleted)
	sl.leave(old)
	if spare {
		sl.enter(old.delete(st.next(), r.Time))
	}
	fresh := &entry{
		Owner:    kernel.Owner{Subject: old.Subject, Event: old.Event, Tags: r.Tags},
		sequence: st.next(), first: old.first, time: r.Time,
		sealed: r.Sealed, sealedLen: uint32(len(r.Sealed)), revision: r.Revision,
	}
	if r.KeepTags {
		fresh.Tags = old.Tags
	}
	sl.part(old)
	sl.add(fresh)
}

// Removal removes one event of a subject.
type Removal struct {
	Gallery    id.Gallery
	Generation uint32
	Subject    id.Subject
	Event      id.Event
	// Time is when the event was removed, in milliseconds since 1970; see Event.Time.
	Time int64
}

// Remove turns one active event into a deleted entry, as Erase does with all events of a subject. A
// subject without events is gone. The error wraps ErrGeneration, ErrSubject or ErrEvent.
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
	sl.leave(old)
	sl.part(old)
	sl.enter(old.delete(s.state.next(), r.Time))
	return nil
}
