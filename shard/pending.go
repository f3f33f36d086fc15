package shard

import (
	"context"
	"fmt"
	"slices"

	"facet/engine"
	"facet/internal/id"
	"facet/shard/scan"
	"facet/shard/seal"
)

// pendingEvent holds a slot; only SearchPending sees it. It does not change.
type pendingEvent struct {
	sequence uint64
	// number is the sequence with which the event became pending. A renewal keeps it. So an event
	// with the same number has been pending without a break.
	number uint64
	event  Event
	want   siblings
}

// isOf reports whether e and c come from the same write.
func (c *pendingEvent) isOf(e Event) bool {
	return c.event.Subject == e.Subject && c.event.Op == e.Op && c.event.Request == e.Request
}

// add adds a pending event; the caller has found a slot for it.
func (st *state) add(sl *slice, c *pendingEvent) {
	st.pending.Set(c.sequence, c)
	sl.pending[c.event.Event] = c
	sl.models.add(c.event.Sealed)
	sl.sealedBytes += int64(len(c.event.Sealed))
}

func (st *state) drop(c *pendingEvent) {
	st.pending.Delete(c.sequence)
	if sl := st.slices[c.event.Gallery]; sl != nil {
		delete(sl.pending, c.event.Event)
		sl.sealedBytes -= int64(len(c.event.Sealed))
	}
}

// Hold does what Put does, for a pending event. A retry of the same write renews the event's time
// and keeps its number. The number proves to Activate that the event was pending without a break.
func (s *lockedState) Hold(e Event, reuse Reuse) (number uint64, err error) {
	return s.hold(e, reuse, newSubject)
}

// HoldFurther does what Add does, for a pending event; see Hold.
func (s *lockedState) HoldFurther(e Event, reuse Reuse) (number uint64, err error) {
	return s.hold(e, reuse, knownSubject)
}

func (s *lockedState) hold(e Event, reuse Reuse, want siblings) (number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, first, err := s.state.place(e, reuse, want)
	if err != nil {
		return 0, err
	}
	c := &pendingEvent{sequence: s.state.next(), number: first, event: e, want: want}
	if c.number == 0 {
		c.number = c.sequence
	}
	s.state.add(sl, c)
	return c.number, nil
}

// PendingRef names a pending event and the write that made it.
type PendingRef struct {
	Gallery    id.Gallery
	Generation uint32
	Subject    id.Subject
	Event      id.Event
	Op         id.Operation
	Request    [16]byte
	// Number is what Hold returned.
	Number uint64
	// Time is when it became active, in milliseconds since 1970; see Event.Time.
	Time int64
}

// Activate makes a pending event active; further reports that its subject had events before. The
// error wraps
//
//   - ErrGeneration;
//   - ErrEvent, if the event is not pending, or has another number than Number;
//   - ErrExists, if the event belongs to another write, or its subject was made meanwhile;
//   - ErrSubject, if the event's subject is gone.
//
// If the subject does not permit the event, the event is no longer pending.
func (s *lockedState) Activate(c PendingRef) (further bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.slice(c.Gallery, c.Generation)
	if err != nil {
		return false, err
	}
	if sl == nil || sl.pending[c.Event] == nil {
		return false, ErrEvent
	}
	own := sl.pending[c.Event]
	if !own.isOf(Event{Subject: c.Subject, Op: c.Op, Request: c.Request}) {
		return false, ErrExists
	}
	if own.number != c.Number {
		return false, ErrEvent
	}
	s.state.drop(own)
	if err := sl.admit(c.Subject, c.Event, own.want); err != nil {
		return false, err
	}
	s.state.enrol(sl, own.event, c.Time)
	return own.want == knownSubject, nil
}

// Withdraw removes a pending event and frees its slot; an event that is not pending is no error.
// The error wraps ErrGeneration, or ErrActive if the event is active.
func (s *lockedState) Withdraw(g id.Gallery, generation uint32, subject id.Subject, event id.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.slice(g, generation)
	if err != nil || sl == nil {
		return err
	}
	if !sl.find(subject, event).none() {
		return ErrActive
	}
	if c := sl.pending[event]; c != nil && c.event.Subject == subject {
		s.state.drop(c)
	}
	return nil
}

// WithdrawSubject removes the pending events of a subject. The error wraps ErrGeneration.
func (s *lockedState) WithdrawSubject(g id.Gallery, generation uint32, subject id.Subject) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.slice(g, generation)
	if err != nil || sl == nil {
		return err
	}
	for _, c := range sl.pending { // any order will do
		if c.event.Subject == subject {
			s.state.drop(c)
		}
	}
	return nil
}

// IsPending reports whether an event is pending.
func (s *lockedState) IsPending(g id.Gallery, event id.Event) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl := s.state.slices[g]
	return sl != nil && sl.pending[event] != nil
}

// ExpirePending removes the pending events whose time is at most time (milliseconds since 1970).
func (s *lockedState) ExpirePending(time int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		_, c, ok := s.state.pending.Min()
		if !ok || c.event.Time > time {
			return
		}
		s.state.drop(c)
	}
}

// SearchPending is Search over the pending events of a slice.
func (s *Shard) SearchPending(ctx context.Context, g id.Gallery, generation uint32, key *seal.Key, q Query) (hits []Hit, err error) {
	if q.Limit < 1 {
		return nil, fmt.Errorf("%w: limit %d", ErrQuery, q.Limit)
	}
	if err := finite(q.Probe); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("search pending events of gallery %s: %w", g, err)
		}
	}()
	events, err := s.pendingEvents(g, generation)
	if err != nil {
		return nil, err
	}
	faces := make([]engine.Face, 0, len(events))
	defer func() {
		for _, f := range faces {
			clear(f.Template)
		}
	}()
	for _, e := range events {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		face, err := OpenFace(key, FaceRef{g, generation, e.Subject, e.Event, 0}, e.Sealed)
		if err != nil {
			return nil, err
		}
		faces = append(faces, face)
		if err := alike(len(q.Probe), len(face.Template)); err != nil {
			return nil, err
		}
	}
	rows := func(yield func(scan.Row) bool) {
		for i, e := range events {
			if !yield(scan.Row{Subject: e.Subject, Event: e.Event, Tags: e.Tags, Template: faces[i].Template}) {
				return
			}
		}
	}
	return scan.TopK(rows, s.table, q), nil
}

// pendingEvents returns the pending events of a slice, which don't change.
func (s *lockedState) pendingEvents(g id.Gallery, generation uint32) ([]Event, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl, err := s.state.slice(g, generation)
	if err != nil || sl == nil {
		return nil, err
	}
	out := make([]Event, 0, len(sl.pending))
	for _, c := range sl.pending {
		out = append(out, c.event)
	}
	return slices.Clip(out), nil
}
