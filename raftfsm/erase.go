package raftfsm

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// Data that a command has removed from the machine is still in the segments, in entries
// of the log, in freed pages of the log's file, and in the snapshot. A round removes it
// everywhere:
//
//  1. It makes a snapshot whose segments hold no dead data (segment.Erase). The snapshot
//     replaces the one before. It waits until nobody reads the segments before, so that
//     they are removed.
//  2. It cuts the entries that the snapshot covers and that are older than a quarter of
//     Config.EraseWithin. Younger entries stay for members that lag.
//  3. It replaces the log's file by a copy (logstore.Log.Renew).
//
// A round starts every quarter of EraseWithin. Data removed at time e was proposed at
// p ≤ e. Step 1 of the next round, at most a quarter after e, takes the data out of the
// snapshot. Step 2 of the first round that starts a quarter after p takes it out of the
// log, at most a half after e. The other half is left for rounds that fail and are
// repeated, and for the time that rounds take.
const (
	eraseRounds = 4 // in EraseWithin
	eraseTries  = 4 // in the time of a round
	eraseTurns  = 16
	// orderedRounds is how many ordered rounds at most begin in the time between two others: one in
	// ten minutes.
	orderedRounds = 36
	// orderSlack is added to the time of an ordered round, because the leader's clock may be ahead.
	orderSlack = time.Minute
	// unreadMax is how long a round waits for those who read replaced segments, which it looks after
	// each unreadTick. A search reads them for milliseconds, a backup for minutes: then the round fails.
	unreadMax, unreadTick = 2 * time.Second, 20 * time.Millisecond
	// eraseTickMin keeps a short EraseWithin from keeping a processor busy.
	eraseTickMin = 5 * time.Millisecond
)

// eraser makes the rounds of a group.
type eraser struct {
	g *Group

	mu       sync.Mutex // held by a round; guards erased and installs
	erased   uint64     // the last index that a round since Open has covered
	installs uint64     // snapshots.Store.Installs when that round began

	last   atomic.Pointer[eraseRound] // the last since Open; nil: none
	orders chan struct{}              // has room for one
}

// loop makes the rounds. Owned by Open; ends with stop.
func (e *eraser) loop() {
	g := e.g
	round := g.cfg.EraseWithin / eraseRounds
	tick := max(round/eraseTries, eraseTickMin)
	// The time of the last round before Open is not known. So the first round comes soon,
	// also on a node that restarts often. Groups that were opened together take turns.
	timer := time.NewTimer(max(tick*time.Duration(2+g.cfg.Group%eraseTurns)/(2*eraseTurns), eraseTickMin))
	defer timer.Stop()
	var due, rested time.Time
	ordered := false
	for {
		select {
		case <-g.stop:
			return
		case <-g.health.Broken():
			return
		case <-e.orders:
			ordered = true
		case <-timer.C:
			timer.Reset(tick)
		}
		now, before := time.Now(), time.Now().Add(-round)
		switch {
		case ordered && now.Before(rested):
			timer.Reset(min(tick, rested.Sub(now)))
			continue
		case ordered:
			before, rested = now.Add(orderSlack), now.Add(round/orderedRounds)
		case now.Before(due):
			continue
		}
		switch err := g.Erase(before); {
		case err == nil:
			due, ordered = now.Add(round-tick/2), false // a tick may come early
		case g.health.Failed() == nil && !errors.Is(err, ErrClosed) && !errors.Is(err, errNotYet):
			g.cfg.Log.Warn("erased data is still on the disk, trying again", "err", err)
		}
	}
}

// EraseSoon orders a round that cuts all applied entries from the log. It begins at once, or ten
// minutes (by a usual Config.EraseWithin) after the ordered round before. Members that lag may then
// need a snapshot.
func (g *Group) EraseSoon() {
	select {
	case g.eraser.orders <- struct{}{}:
	default: // one is ordered
	}
}

// Erase makes one round now. It removes from the disk the data that commands have removed
// from the machine. It cuts from the log the entries that are applied here and were
// proposed before the given time, by the leader's clock.
func (g *Group) Erase(before time.Time) error {
	if err := g.enter(); err != nil {
		return err
	}
	defer g.calls.Done()
	return g.eraser.round(before)
}

// round makes one round. The caller keeps the group open.
func (e *eraser) round(before time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	g, begin := e.g, time.Now()
	installs, _ := g.snapshots.Installs()
	if applied := g.Applied(); applied != e.erased || installs != e.installs {
		if err := e.snapshot(); err != nil {
			return err
		}
		e.erased, e.installs = applied, installs // or more
	}
	if err := e.unread(); err != nil {
		return err
	}
	if err := g.snapshots.CutLog(before); err != nil {
		return err
	}
	if err := g.log.Renew(); err != nil {
		return err
	}
	to := e.erased
	first, err := g.logs.FirstIndex()
	if err != nil {
		return err
	}
	if first > 0 {
		to = min(to, first-1)
	}
	end := time.Now()
	e.last.Store(&eraseRound{end, end.Sub(begin), to, installs})
	return nil
}

// eraseRound is a round that ended without an error.
type eraseRound struct {
	end      time.Time
	took     time.Duration
	to       uint64 // Status.ErasedTo
	installs uint64 // snapshots.Store.Installs when it began
}

// erasedTo returns Status.ErasedTo after a round.
func (e *eraser) erasedTo(r *eraseRound) uint64 {
	if begun, quiet := e.g.snapshots.Installs(); !quiet || begun != r.installs {
		return 0
	}
	return r.to
}

// unread waits until the segments that snapshots have replaced are off the disk, at most unreadMax.
func (e *eraser) unread() error {
	for end := time.Now().Add(unreadMax); ; {
		err := e.g.snapshots.Erased()
		if err == nil || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(unreadTick):
		case <-e.g.stop:
			return ErrClosed
		}
	}
}

// errNotYet is returned when no entry was applied since Open: then raft makes no snapshot.
var errNotYet = errors.New("raftfsm: nothing applied yet")

// snapshot makes a snapshot without dead data.
func (e *eraser) snapshot() error {
	err := e.g.snapshots.Erasing(func() error { return e.g.raft.Snapshot().Error() })
	switch {
	case errors.Is(err, raft.ErrNothingNewToSnapshot):
		return errNotYet
	case err != nil:
		return fmt.Errorf("snapshot of group %d: %w", e.g.cfg.Group, err)
	}
	return nil
}
