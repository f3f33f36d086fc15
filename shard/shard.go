package shard

import (
	"errors"
	"fmt"
	"sync"

	"facet/engine/score"
	"facet/internal/id"
)

// Errors that a state machine or a router tells apart.
var (
	// ErrGeneration says that the slice on this shard has another generation.
	ErrGeneration = errors.New("shard: another generation of the gallery")
	// ErrNoSlot says that no granted slot is free, nor one to recycle if that was
	// allowed.
	ErrNoSlot = errors.New("shard: no slot")
	// ErrSubject says that the subject has no active event.
	ErrSubject = errors.New("shard: unknown subject")
	// ErrExists says that the subject to be made exists.
	ErrExists = errors.New("shard: the subject exists")
	// ErrQuery says that a query can't be answered as it is.
	ErrQuery = errors.New("shard: unusable query")
)

// Grant says how many slots a slice has been granted in all.
type Grant struct {
	Gallery    id.Gallery
	Generation uint32
	Total      uint32
}

// Event is a new event of a new subject.
type Event struct {
	Gallery    id.Gallery
	Generation uint32
	Subject    id.Subject
	Event      id.Event
	// Time is when it was registered, in milliseconds since 1970; it must not be
	// before that of an earlier write.
	Time int64
	// Tags are identities of tags.
	Tags []uint32
	// Sealed is the face, by SealFace.
	Sealed []byte
}

// Reuse says which slots a new event may take.
type Reuse uint8

const (
	// FreeSlots permits a slot that was granted and is not in use.
	FreeSlots Reuse = iota
	// OldestDeleted permits a free slot, or else that of the slice's oldest deleted event.
	OldestDeleted
)

// Erasure removes a subject.
type Erasure struct {
	Gallery    id.Gallery
	Generation uint32
	Subject    id.Subject
	// Time is when, in milliseconds since 1970; as in Event.
	Time int64
}

// Shard is the state of one Raft group that holds events. Its methods may be
// called from any goroutine; the writing ones (Grant, Put, Erase, Replace) take
// effect in the order of their calls.
type Shard struct {
	table *score.Table

	// mu guards state. A search holds it for reading; it is taken before a slice's
	// opening.
	mu    sync.RWMutex
	state *state
}

// state is what a snapshot holds.
type state struct {
	slices map[id.Gallery]*slice
	// sequence is the number of the last entry. Entries are numbered in log order.
	sequence uint64
}

// New makes an empty shard whose scores come from table.
func New(table *score.Table) *Shard {
	return &Shard{table: table, state: newState()}
}

func newState() *state { return &state{slices: make(map[id.Gallery]*slice)} }

// slice gives the slice of a gallery, or nil if this shard has none. A slice of
// another generation is ErrGeneration.
func (st *state) slice(g id.Gallery, generation uint32) (*slice, error) {
	sl := st.slices[g]
	if sl != nil && sl.generation != generation {
		return nil, fmt.Errorf("%w: %d, not %d", ErrGeneration, sl.generation, generation)
	}
	return sl, nil
}

// Check tells whether a write or read of this generation may go on; the error
// wraps ErrGeneration.
func (s *Shard) Check(g id.Gallery, generation uint32) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, err := s.state.slice(g, generation)
	return err
}

// Grant raises the slots of a slice to g.Total, if they were fewer, and makes the
// slice at its first grant. The error wraps ErrGeneration.
func (s *Shard) Grant(g Grant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.slice(g.Gallery, g.Generation)
	if err != nil {
		return err
	}
	if sl == nil {
		sl = newSlice(g.Gallery, g.Generation)
		s.state.slices[g.Gallery] = sl
	}
	sl.granted = max(sl.granted, g.Total)
	return nil
}

// Put adds an event and its subject, or changes nothing and gives an error that
// wraps ErrGeneration, ErrExists or ErrNoSlot. It keeps e's slices, which must not
// be changed afterwards.
func (s *Shard) Put(e Event, reuse Reuse) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.slice(e.Gallery, e.Generation)
	switch {
	case err != nil:
		return err
	case sl == nil:
		return ErrNoSlot
	case sl.subjects[e.Subject] != nil:
		return ErrExists
	}
	if sl.used() >= sl.granted && (reuse != OldestDeleted || !sl.dropOldestDeleted()) {
		return ErrNoSlot
	}
	s.state.sequence++
	sl.add(&entry{
		sequence: s.state.sequence,
		subject:  e.Subject,
		event:    e.Event,
		time:     e.Time,
		tags:     e.Tags,
		sealed:   e.Sealed,
	})
	return nil
}

// Erase turns the active events of a subject into deleted entries, which keep
// their ids and slots, and zeroes their templates in memory. The error wraps
// ErrGeneration or ErrSubject.
func (s *Shard) Erase(e Erasure) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.slice(e.Gallery, e.Generation)
	if err != nil {
		return err
	}
	if sl == nil || sl.subjects[e.Subject] == nil {
		return ErrSubject
	}
	for _, old := range sl.subjects[e.Subject] {
		s.state.sequence++
		sl.erase(old, &entry{
			sequence: s.state.sequence,
			subject:  old.subject,
			event:    old.event,
			time:     e.Time,
			deleted:  true,
		})
	}
	delete(sl.subjects, e.Subject)
	return nil
}
