package shard

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/tidwall/btree"

	"facet/engine/score"
	"facet/internal/id"
	"facet/shard/kernel"
	"facet/shard/record"
)

// Errors that a state machine or a router tells apart.
var (
	// ErrGeneration is returned when the slice on this shard has another generation.
	ErrGeneration = errors.New("shard: another generation of the gallery")
	// ErrNoSlot is returned when no granted slot is free, and no slot may be recycled or none can
	// be.
	ErrNoSlot = errors.New("shard: no slot")
	// ErrSubject is returned when the subject has no active event.
	ErrSubject = errors.New("shard: unknown subject")
	// ErrExists is returned when a new subject exists already.
	ErrExists = errors.New("shard: the subject exists")
	// ErrEvent is returned when the subject has no such active event, or no such event is pending.
	ErrEvent = errors.New("shard: unknown event")
	// ErrMoved is returned when an event to be replaced was replaced meanwhile, or is not the
	// oldest.
	ErrMoved = errors.New("shard: the event is another by now")
	// ErrActive is returned when an event to be withdrawn is active.
	ErrActive = errors.New("shard: the event is active")
	// ErrFence is returned when there is no such fence.
	ErrFence = errors.New("shard: the gallery is not fenced")
	// ErrEpoch is returned when the gallery lies on more shards than the reader knows of.
	ErrEpoch = errors.New("shard: a later epoch of the gallery")
	// ErrQuery is returned when a query can't be answered as it is.
	ErrQuery = errors.New("shard: unusable query")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("shard: closed")
)

// Grant is the total of slots that a slice has been granted.
type Grant struct {
	Gallery    id.Gallery
	Generation uint32
	Total      uint32
}

// Event is a new event.
type Event struct {
	Gallery    id.Gallery
	Generation uint32
	Subject    id.Subject
	Event      id.Event
	// Time is when it was registered, in milliseconds since 1970. It must not be before the time of
	// an earlier write.
	Time int64
	// Tags are identities of tags.
	Tags []uint32
	// Expires is when the event expires of itself, in milliseconds since 1970, or 0. See Expiring.
	Expires int64
	// Sealed is the face, sealed by SealFace for revision 0.
	Sealed []byte
	// Note is the note of a new subject, sealed by SealNote for revision 0, or nil.
	Note []byte
	// Op and Request name the write. A pending event recognises a retry of its own write by them.
	Op      id.Operation
	Request [16]byte
}

// Reuse says which slots a new event may take.
type Reuse uint8

const (
	// FreeSlots permits a slot that is granted and not in use.
	FreeSlots Reuse = iota
	// OldestDeleted permits a free slot, or else that of the slice's oldest deleted event.
	OldestDeleted
)

// Erasure removes a subject.
type Erasure struct {
	Gallery    id.Gallery
	Generation uint32
	Subject    id.Subject
	// Time is when the subject was erased, in milliseconds since 1970; see Event.Time.
	Time int64
}

// FaceID names a face of a subject.
type FaceID struct {
	Event    id.Event `cbor:"1,keyasint"`
	Revision uint32   `cbor:"2,keyasint,omitempty"`
}

// Shard is the state of one Raft group that holds events. Its methods may be called from any
// goroutine; writes take effect in the order of their calls.
type Shard struct {
	lockedState
	comparator
	// closed is guarded by mu.
	closed bool
	// using counts the searches under way.
	using sync.WaitGroup
	// log has the indexes of writes. It is held before mu.
	log Log
}

// lockedState is the state of a shard with its lock. Its methods are the commands, and the reads that need
// neither a template nor the disk.
type lockedState struct {
	// mu guards state. It is taken before the mu of a slice's templates, and not held while rows are
	// scanned.
	mu    sync.RWMutex
	state *state
}

// state is what a snapshot holds.
type state struct {
	arena      *kernel.Arena
	slices     map[id.Gallery]*slice
	fences     fences
	tombstones *tombstones
	faces      *faces
	// pending are the pending events of all slices in log order, which is also the
	// order of their times.
	pending *btree.Map[uint64, *pendingEvent]
	// sequence is the number of the last entry, pending event or fence. They are
	// numbered in log order.
	sequence uint64
}

// New returns an empty shard whose scores come from table. Decrypted templates lie in arena, which
// shards share.
func New(table *score.Table, arena *kernel.Arena) *Shard {
	s := &Shard{
		lockedState: lockedState{state: newState(arena)},
		comparator:  comparator{table: table, arena: arena, passes: runtime.GOMAXPROCS(0), closing: make(chan struct{})},
	}
	s.sealed.faces = s.state.faces
	return s
}

// Close ends searches, waits for them, zeroes all templates, frees their memory and releases the
// segments. Later searches return ErrClosed, and sealed faces in segments are no longer found.
func (s *Shard) Close() {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if !again {
		close(s.closing)
	}
	s.using.Wait()
	s.mu.Lock()
	set := s.sealed.swap(nil, s.state.faces)
	for _, sl := range s.state.slices {
		sl.drop()
	}
	s.mu.Unlock()
	set.Release()
}

func newState(arena *kernel.Arena) *state {
	t, f := new(tombstones), newFaces()
	return &state{
		arena: arena, slices: make(map[id.Gallery]*slice), fences: newFences(t, f), tombstones: t, faces: f,
		pending: new(btree.Map[uint64, *pendingEvent]),
	}
}

// free zeroes all templates and frees their memory and that of the entries.
func (st *state) free() {
	for _, sl := range st.slices {
		sl.drop()
		sl.Close()
	}
	for _, f := range st.fences.of {
		f.free()
	}
}

func (st *state) next() uint64 {
	st.sequence++
	return st.sequence
}

// slice returns the slice of a gallery, or nil if this shard has none. It returns ErrGeneration if
// the slice is of another generation, or a fence shuts the generation out.
func (st *state) slice(g id.Gallery, generation uint32) (*slice, error) {
	if f := st.fences.of[g]; f != nil && generation < f.generation {
		return nil, fmt.Errorf("%w: %d is before %d", ErrGeneration, generation, f.generation)
	}
	sl := st.slices[g]
	if sl != nil && sl.generation != generation {
		return nil, fmt.Errorf("%w: %d, not %d", ErrGeneration, sl.generation, generation)
	}
	return sl, nil
}

// known returns the slice of a gallery that has the subject, or an error that wraps ErrGeneration or
// ErrSubject.
func (st *state) known(g id.Gallery, generation uint32, subject id.Subject) (*slice, error) {
	sl, err := st.slice(g, generation)
	if err == nil && (sl == nil || sl.first(subject).none()) {
		err = ErrSubject
	}
	return sl, err
}

// Knows returns an error that wraps ErrGeneration or ErrSubject unless the subject has an event.
func (s *lockedState) Knows(g id.Gallery, generation uint32, subject id.Subject) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, err := s.state.known(g, generation, subject)
	return err
}

// Check returns an error that wraps ErrGeneration if this generation may not be written or read.
func (s *lockedState) Check(g id.Gallery, generation uint32) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, err := s.state.slice(g, generation)
	return err
}

// CheckEpoch returns an error that wraps ErrEpoch if epoch is out of date: the gallery lies on more
// shards than the reader's list has. It returns an error that wraps ErrGeneration for another
// generation.
func (s *lockedState) CheckEpoch(g id.Gallery, generation, epoch uint32) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl, err := s.state.slice(g, generation)
	if err == nil && sl != nil && sl.epoch > epoch {
		err = fmt.Errorf("%w: %d, not %d", ErrEpoch, sl.epoch, epoch)
	}
	return err
}

// Put adds an event and its subject, or changes nothing and returns an error that wraps
// ErrGeneration, ErrExists or ErrNoSlot. It keeps the slices in e, which must not be changed
// afterwards.
func (s *lockedState) Put(e Event, reuse Reuse) error { return s.put(e, reuse, newSubject) }

// Add does what Put does, for a further event of a subject. It returns ErrSubject if the subject
// has no active event.
func (s *lockedState) Add(e Event, reuse Reuse) error { return s.put(e, reuse, knownSubject) }

// siblings says whether the subject of a new event must have other events.
type siblings bool

const (
	newSubject   siblings = false
	knownSubject siblings = true
)

// admit returns an error if the subject does not permit a new event.
func (sl *slice) admit(subject id.Subject, event id.Event, want siblings) error {
	known := !sl.first(subject).none()
	switch {
	case want == knownSubject && !known:
		return ErrSubject
	case want == newSubject && known, !sl.find(subject, event).none():
		return ErrExists
	default:
		return nil
	}
}

func (s *lockedState) put(e Event, reuse Reuse, want siblings) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, _, err := s.state.place(e, reuse, want)
	if err == nil {
		s.state.enrol(sl, e, e.Time)
	}
	return err
}

// place finds a slot for a new event. If a pending event of the same write has one, place removes
// that event and returns its number, or else 0.
func (st *state) place(e Event, reuse Reuse, want siblings) (sl *slice, number uint64, err error) {
	sl, err = st.slice(e.Gallery, e.Generation)
	switch {
	case err != nil:
		return nil, 0, err
	case sl == nil && want == knownSubject:
		return nil, 0, ErrSubject
	case sl == nil:
		return nil, 0, ErrNoSlot
	}
	if err := sl.admit(e.Subject, e.Event, want); err != nil {
		return nil, 0, err
	}
	if own := sl.pending[e.Event]; own != nil {
		if !own.isOf(e) {
			return nil, 0, ErrExists
		}
		number = own.number
		st.drop(own)
	}
	if !sl.room(reuse) {
		return nil, 0, ErrNoSlot
	}
	return sl, number, nil
}

// enrol adds an active event. The caller has made room.
func (st *state) enrol(sl *slice, e Event, time int64) {
	sequence := st.next()
	sl.add(newDraft(record.Fields{
		Subject: e.Subject, Event: e.Event, Tags: e.Tags, Sequence: sequence, First: sequence, Time: time,
	}, e.Sealed, e.Note, e.Expires))
}

// Erase turns the active events of a subject into deleted entries, which keep their ids and slots,
// and zeroes their templates in memory. The error wraps ErrGeneration or ErrSubject.
func (s *lockedState) Erase(e Erasure) error {
	return s.erase(e, func(*slice) bool { return true })
}

// EraseExactly is Erase for a subject with exactly these faces, in any order. With others the error
// is ErrMoved.
func (s *lockedState) EraseExactly(e Erasure, faces []FaceID) error {
	return s.erase(e, func(sl *slice) bool { return sl.hasExactly(e.Subject, faces) })
}

func (s *lockedState) erase(e Erasure, may func(*slice) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.known(e.Gallery, e.Generation, e.Subject)
	if err != nil {
		return err
	}
	if !may(sl) {
		return ErrMoved
	}
	for old := range sl.of(e.Subject) {
		sl.leave(old)
		sl.enter(deletedEntry(old, s.state.next(), e.Time))
		sl.Remove(old.row)
	}
	sl.DeleteFirst(e.Subject)
	return nil
}
