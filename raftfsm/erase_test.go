package raftfsm

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// planted is the text that tests look for in files.
var planted = []byte("nothing else in a folder has these bytes")

func TestEraseCutsOldEntriesOnly(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, quick)
	c.found("member-a")
	m := c.leader()
	for range 10 {
		c.propose("x" + string(planted))
	}
	first := func() uint64 {
		t.Helper()
		index, err := m.logs.FirstIndex()
		if err != nil {
			t.Fatal(err)
		}
		return index
	}
	if err := m.Erase(time.Now().Add(-time.Hour)); err != nil || first() > 2 { // the founding entry has no time
		t.Errorf("entries of the last hour were cut: the first is %d, %v", first(), err)
	}
	if err := m.Erase(time.Now().Add(time.Hour)); err != nil || first() != 0 {
		t.Errorf("the first entry is %d, %v, want none", first(), err)
	}
	c.propose("y")
	digest, count := m.journal.Digest(), m.journal.count()
	c.stop("member-a")
	m = c.open("member-a")
	c.agree()
	if m.journal.count() != count || m.journal.Digest() != digest {
		t.Errorf("after a restart %d commands, want %d", m.journal.count(), count)
	}
	if c.propose("z"); m.journal.count() == count {
		t.Error("a command after the restart was not applied")
	}
}

func TestStatusReportsLastEraseRound(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, quick)
	c.found("member-a")
	m := c.leader()
	round := func(want error) Status {
		t.Helper()
		begin, was := time.Now(), m.Status()
		if err := m.Erase(time.Now().Add(time.Hour)); !errors.Is(err, want) {
			t.Fatalf("a round: %v, want %v", err, want)
		}
		s := m.Status()
		switch {
		case want != nil && (s.Erased != was.Erased || s.EraseTook != was.EraseTook):
			t.Errorf("a round that failed is told of: %v, %v, before %v, %v", s.Erased, s.EraseTook, was.Erased, was.EraseTook)
		case want == nil && (s.Erased.Before(begin) || s.Erased.After(time.Now()) || s.EraseTook <= 0 || s.EraseTook > time.Since(begin)):
			t.Errorf("a round since %v ended at %v and took %v", begin, s.Erased, s.EraseTook)
		}
		return s
	}
	if s := m.Status(); !s.Erased.IsZero() || s.EraseTook != 0 {
		t.Errorf("before any round: %v, %v", s.Erased, s.EraseTook)
	}
	c.propose("x")
	first := round(nil)
	if again := round(nil); !again.Erased.After(first.Erased) { // no data was erased since
		t.Errorf("the next round ended at %v, the one before at %v", again.Erased, first.Erased)
	}
	c.stop("member-a")
	round(ErrClosed)
	m = c.open("member-a")
	if s := m.Status(); !s.Erased.IsZero() {
		t.Errorf("before any round since the start: %v", s.Erased)
	}
	c.propose("y")
	round(nil)
}

func TestIdleGroupErasesEverything(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, func(cfg *Config) { quick(cfg); cfg.EraseWithin = 400 * time.Millisecond })
	c.found("member-a")
	m := c.leader()
	c.propose("x")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		first, err := m.logs.FirstIndex()
		if err != nil {
			t.Fatal(err)
		}
		if first == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("entry %d is in the log still", first)
		}
	}
	idle := m.Status().Snapshot
	time.Sleep(500 * time.Millisecond)
	if now := m.Status().Snapshot; now != idle {
		t.Errorf("an idle group makes snapshots: %d, %d", idle, now)
	}
}

// A node that is restarted every hour has rounds, too.
func TestFirstEraseRoundComesSoon(t *testing.T) {
	t.Parallel()
	const within, soon = 16 * time.Minute, 40 * time.Second // a try a minute
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(settle) // after the members are closed
		c := newCluster(t, newWires(), func(cfg *Config) { cfg.EraseWithin = within })
		c.found("member-a")
		m := c.leader()
		c.propose("x")
		for begin := time.Now(); m.Status().Erased.IsZero(); time.Sleep(50 * time.Millisecond) {
			if time.Since(begin) > soon {
				t.Fatalf("no round after %v", soon)
			}
		}
	})
}

func TestErasedToLeavesOutWhatTheLogHas(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, quick)
	c.found("member-a")
	m := c.leader()
	for range 10 {
		c.propose("x" + string(planted))
	}
	if got := m.Status().ErasedTo; got != 0 {
		t.Errorf("before any round: erased to %d", got)
	}
	if err := m.Erase(time.Now().Add(-time.Hour)); err != nil { // cuts nothing that has a time
		t.Fatal(err)
	}
	if first, err := m.logs.FirstIndex(); err != nil || m.Status().ErasedTo >= first || m.Status().ErasedTo >= m.Applied() {
		t.Errorf("erased to %d, and the log has entry %d, %v", m.Status().ErasedTo, first, err)
	}
	before := m.Applied()
	if err := m.Erase(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := m.Status().ErasedTo; got < before {
		t.Errorf("erased to %d, want %d", got, before)
	}
	c.propose("y")
	if got := m.Status().ErasedTo; got >= m.Applied() {
		t.Errorf("erased to %d, before a round that covers %d", got, m.Applied())
	}
}

// A leader's snapshot may bring back what a member had erased.
func TestInstalledSnapshotEndsErasedTo(t *testing.T) {
	t.Parallel()
	w := newWires()
	c := newCluster(t, w, func(cfg *Config) { quick(cfg); cfg.TrailingLogs = 5 })
	c.found(names(3)...)
	c.propose("x")
	c.agree()
	away := c.members[c.others(c.leader())[0]]
	erase := func() uint64 {
		t.Helper()
		if err := away.Erase(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		return away.Status().ErasedTo
	}
	if was := erase(); was == 0 || away.Status().ErasedTo != was {
		t.Fatalf("erased to %d, then %d", was, away.Status().ErasedTo)
	}
	w.part(1, away.name)
	rest := c.others(away)
	for range 50 {
		c.propose("meanwhile", rest...)
	}
	for _, name := range rest {
		if err := c.members[name].Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	w.part(0, away.name)
	c.propose("healed", rest...)
	c.agree()
	if away.journal.restored.Load() == 0 {
		t.Fatal("no snapshot was installed")
	}
	if got := away.Status().ErasedTo; got != 0 {
		t.Errorf("erased to %d after a snapshot of a leader that has made no round", got)
	}
	if got := erase(); got < away.Applied()-1 {
		t.Errorf("erased to %d after the next round, want %d", got, away.Applied())
	}
}

// Rounds that are ordered all the time begin once in a 36th of the time between others.
func TestOrderedRoundsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const within = 8 * time.Minute
		const rest = within / eraseRounds / orderedRounds
		c := newCluster(t, newWires(), func(cfg *Config) { cfg.EraseWithin = within })
		c.found("member-a")
		m := c.leader()
		c.propose("x")
		for m.Status().Erased.IsZero() {
			time.Sleep(time.Second)
		}
		c.propose("y")
		began, last, rounds := time.Now(), m.Status().Erased, 0
		for time.Since(began) < 5*rest+rest/2 {
			m.EraseSoon()
			time.Sleep(100 * time.Millisecond)
			if s := m.Status(); s.Erased != last {
				rounds, last = rounds+1, s.Erased
				if first, err := m.logs.FirstIndex(); rounds == 1 && (time.Since(began) > time.Second || err != nil || first != 0) {
					t.Errorf("the first ordered round ended after %v, and entry %d is in the log, %v", time.Since(began), first, err)
				}
			}
		}
		if rounds != 6 {
			t.Errorf("%d rounds in %v, want 6", rounds, time.Since(began))
		}
		c.close()
		settle()
	})
}
