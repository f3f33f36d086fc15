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
	// ErrEvent says that the subject has no such active event, or that no such event
	// is pending.
	ErrEvent = errors.New("shard: unknown event")
	// ErrMoved says that an event to be replaced has been replaced meanwhile, or is
	// not the oldest.
	ErrMoved = errors.New("shard: the event is another by now")
	// ErrActive says that the event to be withdrawn is active.
	ErrActive = errors.New("shard: the event is active")
	// ErrFence says that there is no such fence.
	ErrFence = errors.New("shard: the gallery is not fenced")
	// ErrEpoch says that the gallery lies on more shards than the reader knows of.
	ErrEpoch = errors.New("shard: a later epoch of the gallery")
	// ErrQuery says that a query can't be answered as it is.
	ErrQuery = errors.New("shard: unusable query")
	// ErrClosed says that the shard was closed.
	ErrClosed = errors.New("shard: closed")
)

// Grant says how many slots a slice has been granted in all.
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
	// Time is when it was registered, in milliseconds since 1970; it must not be
	// before that of an earlier write.
	Time int64
	// Tags are identities of tags.
	Tags []uint32
	// Sealed is the face, by SealFace for revision 0.
	Sealed []byte
	// Op and Request name the write: by them a pending event knows its own retry.
	Op      id.Operation
	Request [16]byte
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
// called from any goroutine; the writing ones take effect in the order of their
// calls.
type Shard struct {
	table  *score.Table
	arena  *kernel.Arena
	sealed sealedStore
	// passes is how many scans of a slice run at once.
	passes int
	// using counts the searches under way; closing is closed when they are to end.
	using   sync.WaitGroup
	closing chan struct{}

	// mu guards state and closed. It is taken before the mu of a slice's templates,
	// and not held while rows are scanned.
	mu     sync.RWMutex
	state  *state
	closed bool
}

// state is what a snapshot holds.
type state struct {
	slices     map[id.Gallery]*slice
	fences     fences
	tombstones *tombstones
	// pending are the pending events of all slices in log order, which is also the
	// order of their times.
	pending *btree.Map[uint64, *pendingEvent]
	// sequence is the number of the last entry, pending event or fence. They are
	// numbered in log order.
	sequence uint64
}

// New makes an empty shard whose scores come from table. Templates in clear lie in
// arena, which shards share.
func New(table *score.Table, arena *kernel.Arena) *Shard {
	return &Shard{
		table: table, arena: arena, passes: runtime.GOMAXPROCS(0),
		closing: make(chan struct{}), state: newState(),
	}
}

// Close ends searches, waits for them, zeroes all templates and gives their memory
// back; it lets go of the segments too. Searches after it are ErrClosed, and sealed
// faces that were in segments are not found any more.
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
	set := s.sealed.swap(nil)
	for _, sl := range s.state.slices {
		sl.templates.drop()
	}
	s.mu.Unlock()
	set.Release()
}

func newState() *state {
	t := new(tombstones)
	return &state{slices: make(map[id.Gallery]*slice), fences: newFences(t), tombstones: t, pending: new(btree.Map[uint64, *pendingEvent])}
}

// next gives a sequence.
func (st *state) next() uint64 {
	st.sequence++
	return st.sequence
}

// slice gives the slice of a gallery, or nil if this shard has none. A slice of
// another generation is ErrGeneration, and so is a generation that was fenced off.
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

// Check tells whether a write or read of this generation may go on; the error
// wraps ErrGeneration.
func (s *Shard) Check(g id.Gallery, generation uint32) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, err := s.state.slice(g, generation)
	return err
}

// CheckEpoch tells whether a read may go on whose list of the gallery's shards is of
// this epoch; the error wraps ErrGeneration or ErrEpoch.
func (s *Shard) CheckEpoch(g id.Gallery, generation, epoch uint32) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl, err := s.state.slice(g, generation)
	if err == nil && sl != nil && sl.epoch > epoch {
		err = fmt.Errorf("%w: %d, not %d", ErrEpoch, sl.epoch, epoch)
	}
	return err
}

// Put adds an event and its subject, or changes nothing and gives an error that
// wraps ErrGeneration, ErrExists or ErrNoSlot. It keeps e's slices, which must not
// be changed afterwards.
func (s *Shard) Put(e Event, reuse Reuse) error { return s.put(e, reuse, newSubject) }

// Add is Put for a further event of a subject that has an active one, or ErrSubject.
func (s *Shard) Add(e Event, reuse Reuse) error { return s.put(e, reuse, knownSubject) }

// siblings says whether the subject of a new event must have other events.
type siblings bool

const (
	newSubject   siblings = false
	knownSubject siblings = true
)

// admit tells whether the subject permits a new event.
func (sl *slice) admit(subject id.Subject, event id.Event, want siblings) error {
	known := sl.subjects[subject] != nil
	switch {
	case want == knownSubject && !known:
		return ErrSubject
	case want == newSubject && known, sl.find(subject, event) != nil:
		return ErrExists
	default:
		return nil
	}
}

func (s *Shard) put(e Event, reuse Reuse, want siblings) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, _, err := s.state.place(e, reuse, want)
	if err == nil {
		s.state.enrol(sl, e, e.Time)
	}
	return err
}

// place finds a slot for a new event. The one that the same write holds as a pending
// event is given up for it; number is that one's, or 0.
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

// enrol adds an active event, for which there is room.
func (st *state) enrol(sl *slice, e Event, time int64) {
	sequence := st.next()
	sl.add(&entry{
		Owner:    kernel.Owner{Subject: e.Subject, Event: e.Event, Tags: e.Tags},
		sequence: sequence,
		first:    sequence,
		time:     time,
		sealed:   e.Sealed, sealedLen: uint32(len(e.Sealed)),
	})
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
	for old := range sl.of(e.Subject) {
		sl.leave(old)
		sl.enter(old.delete(s.state.next(), e.Time))
	}
	delete(sl.subjects, e.Subject)
	return nil
}

// delete gives the deleted entry that stands for e.
func (e *entry) delete(sequence uint64, time int64) *entry {
	return &entry{
		Owner: kernel.Owner{Subject: e.Subject, Event: e.Event}, sequence: sequence, first: sequence, time: time, deleted: true,
	}
}
