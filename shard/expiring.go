package shard

import (
	"math"

	"facet/internal/id"
)

// An active event expires at the earlier of two times: its own, which it may have, and the end of
// its gallery's retention, counted from its last update. Meta has the retention, so the shard gets
// it with each call. Events of a gallery with a retention need no index for it: the entries are in
// the order of their last update.

// dueScanMax is the most entries that one call of Due passes over in a slice for its retention.
const dueScanMax = 1 << 16

// Expired names an event as it was found due. An event that was replaced since has another
// revision.
type Expired struct {
	Subject  id.Subject `cbor:"1,keyasint"`
	Event    id.Event   `cbor:"2,keyasint"`
	Revision uint32     `cbor:"3,keyasint,omitempty"`
	// Heir gets the subject's note if the event carries it and is not the last.
	Heir Heir `cbor:"4,keyasint,omitzero"`
}

// Expiration expires events of one slice.
type Expiration struct {
	Gallery    id.Gallery
	Generation uint32
	// Until is the last time of their own at which events expire. Updated is that of their last
	// update, by the retention of the gallery; 0 without one. Times are milliseconds since 1970.
	Until, Updated int64
	// Now is the time of the deleted entries; see Event.Time.
	Now    int64
	Events []Expired
	// Noted are the indexes in Events of those that need an heir. Only Due sets it.
	Noted []int
}

// covers reports whether an event whose own time is expires, or 0, expires.
func (x Expiration) covers(e *entry, expires int64) bool {
	return expires != 0 && expires <= x.Until || e.Time() <= x.Updated
}

// Expire turns the events into deleted entries, as Remove does, and returns how many. It passes over
// an event that is gone, that has another revision, whose time has not come, or whose heir is
// another. The error wraps ErrGeneration.
func (s *lockedState) Expire(x Expiration) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.slice(x.Gallery, x.Generation)
	if err != nil || sl == nil {
		return 0, err
	}
	for _, named := range x.Events {
		e := sl.find(named.Subject, named.Event)
		if e.none() || e.Revision != named.Revision || !x.covers(e.entry, sl.times.at(e.Sequence())) {
			continue
		}
		if s.state.remove(sl, e, named.Heir, x.Now) {
			n++
		}
	}
	return n, nil
}

// Retention returns how long a gallery keeps events after their last update, in milliseconds, or 0
// for ever. known is false for a gallery that meta does not have: one that is being deleted, or whose
// restoration is not complete. None of its events is due.
type Retention func(id.Gallery) (kept int64, known bool)

// Due returns at most most events that are due at the time until, by slice, in no order of slices.
// Until is set in each, Now is not.
func (s *lockedState) Due(until int64, keep Retention, most int) (list []Expiration) {
	s.mu.Lock() // settledTo moves
	defer s.mu.Unlock()
	for _, sl := range s.state.slices {
		kept, known := keep(sl.gallery)
		if !known {
			continue
		}
		x := Expiration{Gallery: sl.gallery, Generation: sl.generation, Until: until}
		if kept > 0 && until > kept {
			x.Updated = until - kept
		}
		sl.due(&x, most)
		if len(x.Events) > 0 {
			list = append(list, x)
		}
		if most -= len(x.Events); most <= 0 {
			break
		}
	}
	return list
}

// due adds at most most events to x that are due.
func (sl *slice) due(x *Expiration, most int) {
	add := func(e member) bool {
		if len(x.Events) < most {
			if inherited(e) {
				x.Noted = append(x.Noted, len(x.Events))
			}
			x.Events = append(x.Events, Expired{Subject: e.Subject, Event: e.Event, Revision: e.Revision})
		}
		return len(x.Events) < most
	}
	sl.times.ascend(deadline{time: math.MinInt64}, func(t deadline) bool {
		if t.time > x.Until {
			return false
		}
		return add(sl.at(sl.entries.Get(t.sequence)))
	})
	if x.Updated == 0 {
		return
	}
	passed, found := 0, false
	for row, e := range sl.entries.All(sl.settledTo) {
		if passed++; passed > dueScanMax || e.Time() > x.Updated {
			return
		}
		if e.Deleted {
			if !found {
				sl.settledTo = e.Sequence() + 1
			}
			continue
		}
		found = true
		if own := sl.times.at(e.Sequence()); own != 0 && own <= x.Until {
			continue // added above, or next time
		}
		if !add(member{row, e}) {
			return
		}
	}
}

// ExpiryStats describes the expiring events of a shard.
type ExpiryStats struct {
	// Timed counts the events with a time of their own.
	Timed int
	// Next is when the next event is due, in milliseconds since 1970, or 0.
	Next int64
}

// ExpiryStats returns the sums over all slices.
func (s *lockedState) ExpiryStats(keep Retention) (out ExpiryStats) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, sl := range s.state.slices {
		out.Timed += sl.times.len()
		kept, known := keep(sl.gallery)
		if !known {
			continue
		}
		if next := sl.nextDue(kept); next != 0 && (out.Next == 0 || next < out.Next) {
			out.Next = next
		}
	}
	return out
}

// nextDue returns when the next event of the slice is due, or 0.
func (sl *slice) nextDue(kept int64) (next int64) {
	sl.times.ascend(deadline{time: math.MinInt64}, func(t deadline) bool {
		next = t.time
		return false
	})
	if kept > 0 {
		passed := 0
		for _, e := range sl.entries.All(sl.settledTo) {
			if !e.Deleted && (next == 0 || e.Time()+kept < next) {
				next = e.Time() + kept
			}
			if passed++; !e.Deleted || passed >= dueScanMax {
				break
			}
		}
	}
	return next
}

// ListExpiring returns at most n events of a gallery's slice that expire before a time and follow the
// position after, in the order of their expiry and then of their sequences. The times of the
// positions are those of expiry. Total counts all events that expire before that time.
func (s *lockedState) ListExpiring(g id.Gallery, keep int64, before int64, after Position, n int) (p Page) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl := s.state.slices[g]
	if sl == nil {
		return p
	}
	take := func(t deadline) bool {
		if t.time >= before {
			return false
		}
		p.Total++
		if len(p.Entries) < n && (deadline{after.Time, after.Sequence}).before(t) {
			e := sl.at(sl.entries.Get(t.sequence))
			p.Entries = append(p.Entries, Entry{e.Subject, e.Event, false, e.Time()})
			p.Sequences, p.Expires = append(p.Sequences, t.sequence), append(p.Expires, t.time)
		}
		return true
	}
	if keep == 0 {
		sl.times.ascend(deadline{time: math.MinInt64}, take)
		return p
	}
	sl.merged(keep, before, take)
	return p
}

// merged calls take with the events of a slice in the order in which they expire, with a retention.
// It ends at the time before, or when take returns false.
func (sl *slice) merged(keep, before int64, take func(deadline) bool) {
	var own []deadline
	sl.times.ascend(deadline{time: math.MinInt64}, func(t deadline) bool {
		if t.time >= before {
			return false
		}
		if e := sl.at(sl.entries.Get(t.sequence)); t.time <= e.Time()+keep {
			own = append(own, t)
		}
		return true
	})
	going := true
	for _, e := range sl.entries.All(0) {
		if e.Deleted {
			continue
		}
		t := deadline{e.Time() + keep, e.Sequence()}
		if t.time >= before {
			break
		}
		for going && len(own) > 0 && own[0].before(t) {
			going, own = take(own[0]), own[1:]
		}
		if at := sl.times.at(t.sequence); at == 0 || at > t.time {
			going = going && take(t)
		}
		if !going {
			break
		}
	}
	for going && len(own) > 0 {
		going, own = take(own[0]), own[1:]
	}
}
