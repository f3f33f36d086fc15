package raftfsm

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// What a command removes from the machine is still in the segments, in entries of
// the log, in freed pages of the log's file, and in the snapshot. A round takes it
// away everywhere:
//
//  1. a snapshot whose segments have nothing that is dead (segment.Erase); it takes
//     the place of the one before;
//  2. the entries that the snapshot covers and that are older than a quarter of
//     Config.EraseWithin leave the log: younger ones are for members that lag;
//  3. the log's file is replaced by a copy (logstore.Log.Renew).
//
// There is a round every quarter of EraseWithin. What was removed at e was proposed
// at p ≤ e: step 1 of the next round, at most a quarter after e, takes it out of the
// snapshot, and step 2 of the first round a quarter after p takes it out of the log,
// at most a half after e. The other half is for rounds that fail and are begun
// again, and for the time they take.
const (
	eraseRounds = 4 // in EraseWithin
	eraseTries  = 4 // in the time of a round
	eraseTurns  = 16
	// eraseTickMin keeps a short EraseWithin from keeping a processor busy.
	eraseTickMin = 5 * time.Millisecond
)

// eraser makes the rounds of a group.
type eraser struct {
	g *Group

	mu     sync.Mutex // held by a round; guards erased
	erased uint64     // everything up to it was erased in a round since Open

	last atomic.Pointer[eraseRound] // the last since Open; nil: none
}

// loop makes the rounds. Owned by Open; ends with stop.
func (e *eraser) loop() {
	g := e.g
	round := g.cfg.EraseWithin / eraseRounds
	tick := max(round/eraseTries, eraseTickMin)
	// Nobody knows when the last round was: the first is soon, for a node that is restarted
	// often, too, and groups that were opened together take their turns.
	timer := time.NewTimer(max(tick*time.Duration(2+g.cfg.Group%eraseTurns)/(2*eraseTurns), eraseTickMin))
	defer timer.Stop()
	var due time.Time
	for {
		select {
		case <-g.stop:
			return
		case <-g.health.Broken():
			return
		case now := <-timer.C:
			timer.Reset(tick)
			if now.Before(due) {
				continue
			}
			switch err := g.Erase(now.Add(-round)); {
			case err == nil:
				due = now.Add(round - tick/2) // a tick may come early
			case g.health.Failed() == nil && !errors.Is(err, ErrClosed) && !errors.Is(err, errNotYet):
				g.cfg.Log.Warn("what was erased is still on the disk, and is tried again", "err", err)
			}
		}
	}
}

// Erase makes one round now: it takes off the disk what commands have removed from
// the machine, and of the log what was proposed before that time (by the leader's
// clock) and is applied here.
func (g *Group) Erase(before time.Time) error {
	if err := g.enter(); err != nil {
		return err
	}
	defer g.calls.Done()
	return g.eraser.round(before)
}

// round is Erase, while the group is open.
func (e *eraser) round(before time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	g, begin := e.g, time.Now()
	if applied := g.Applied(); applied != e.erased {
		if err := e.snapshot(); err != nil {
			return err
		}
		e.erased = applied // or more
	}
	if err := g.snapshots.CutLog(before); err != nil {
		return err
	}
	if err := g.log.Renew(); err != nil {
		return err
	}
	end := time.Now()
	e.last.Store(&eraseRound{end, end.Sub(begin)})
	return nil
}

// eraseRound is a round that did all that it had to.
type eraseRound struct {
	end  time.Time
	took time.Duration
}

// errNotYet says that nothing was applied since the group was opened, so that raft
// makes no snapshot.
var errNotYet = errors.New("raftfsm: nothing applied yet")

// snapshot makes a snapshot without anything that is dead.
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
