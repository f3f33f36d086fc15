package raftfsm

import (
	"errors"
	"testing"
	"time"

	"facet/internal/must"
)

func TestEraseCutsOldEntriesOnly(t *testing.T) {
	inGroup(t, names(1), nil, eraseOldEntries)
}

func eraseOldEntries(t *testing.T, c *cluster) {
	m := c.leader()
	for range 10 {
		c.propose("x")
	}
	first := func() uint64 {
		t.Helper()
		index, err := m.logs.FirstIndex()
		must.Do(t, err)
		return index
	}
	erased := func() uint64 { return m.Status().ErasedTo }
	if got := erased(); got != 0 {
		t.Errorf("before any round: erased to %d", got)
	}
	if err := m.Erase(time.Now().Add(-time.Hour)); err != nil || first() > 2 { // the founding entry has no time
		t.Errorf("entries of the last hour were cut: the first is %d, %v", first(), err)
	}
	if got := erased(); got >= first() || got >= m.Applied() {
		t.Errorf("erased to %d, and the log has entry %d", got, first())
	}
	before := m.Applied()
	if err := m.Erase(time.Now().Add(time.Hour)); err != nil || first() != 0 {
		t.Errorf("the first entry is %d, %v, want none", first(), err)
	}
	if got := erased(); got < before {
		t.Errorf("erased to %d, want %d", got, before)
	}
	c.propose("y")
	if got := erased(); got >= m.Applied() {
		t.Errorf("erased to %d, before a round that covers %d", got, m.Applied())
	}
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
	inGroup(t, names(1), nil, reportEraseRounds)
}

func reportEraseRounds(t *testing.T, c *cluster) {
	m := c.leader()
	const cut = 10 * time.Millisecond
	m.disk.slow(cut)
	round := func(took time.Duration, want error) {
		t.Helper()
		time.Sleep(time.Second)
		was := m.Status()
		if err := m.Erase(time.Now().Add(time.Hour)); !errors.Is(err, want) {
			t.Fatalf("a round: %v, want %v", err, want)
		}
		s := m.Status()
		switch {
		case want != nil && (s.Erased != was.Erased || s.EraseTook != was.EraseTook):
			t.Errorf("a round that failed is told of: %v, %v, before %v, %v", s.Erased, s.EraseTook, was.Erased, was.EraseTook)
		case want == nil && (!s.Erased.Equal(time.Now()) || s.EraseTook.Truncate(cut) != took):
			t.Errorf("a round that ended at %v after %v is told of: %v, %v", time.Now(), took, s.Erased, s.EraseTook)
		}
	}
	if s := m.Status(); !s.Erased.IsZero() || s.EraseTook != 0 {
		t.Errorf("before any round: %v, %v", s.Erased, s.EraseTook)
	}
	c.propose("x")
	round(cut, nil)
	round(0, nil) // no data was erased since
	c.stop("member-a")
	round(0, ErrClosed)
	m = c.open("member-a")
	if s := m.Status(); !s.Erased.IsZero() {
		t.Errorf("before any round since the start: %v", s.Erased)
	}
	m.disk.slow(cut)
	c.propose("y")
	round(cut, nil)
}

func TestIdleGroupErasesEverything(t *testing.T) {
	const within = 2 * time.Minute
	inGroup(t, names(1), func(cfg *Config) { cfg.EraseWithin = within }, func(t *testing.T, c *cluster) {
		m := c.leader()
		time.Sleep(within)
		if first, err := m.logs.FirstIndex(); err != nil || first != 0 {
			t.Errorf("entry %d is in the log still, %v", first, err)
		}
		idle := m.Status().Snapshot
		time.Sleep(2 * within)
		if now := m.Status().Snapshot; now != idle {
			t.Errorf("an idle group makes snapshots: %d, %d", idle, now)
		}
	})
}

// A node that is restarted every hour has rounds, too.
func TestFirstEraseRoundComesSoon(t *testing.T) {
	const within, soon = 16 * time.Minute, 40 * time.Second // a try a minute
	inGroup(t, names(1), func(cfg *Config) { cfg.EraseWithin = within }, func(t *testing.T, c *cluster) {
		m := c.leader()
		for begin := time.Now(); m.Status().Erased.IsZero(); time.Sleep(50 * time.Millisecond) {
			if time.Since(begin) > soon {
				t.Fatalf("no round after %v", soon)
			}
		}
	})
}

// A leader's snapshot may bring back what a member had erased.
func TestInstalledSnapshotEndsErasedTo(t *testing.T) {
	inGroup(t, names(3), func(cfg *Config) { cfg.TrailingLogs = 5 }, endErasedTo)
}

func endErasedTo(t *testing.T, c *cluster) {
	away := c.members[c.others(c.leader())[0]]
	erase := func() uint64 {
		t.Helper()
		must.Do(t, away.Erase(time.Now().Add(time.Hour)))
		return away.Status().ErasedTo
	}
	if was := erase(); was == 0 || away.Status().ErasedTo != was {
		t.Fatalf("erased to %d, then %d", was, away.Status().ErasedTo)
	}
	c.wires.part(1, away.name)
	rest := c.others(away)
	for range 50 {
		c.propose("meanwhile", rest...)
	}
	c.snapshot(rest...)
	c.wires.part(0, away.name)
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
	const within = 8 * time.Minute
	const rest = within / eraseRounds / orderedRounds
	inGroup(t, names(1), func(cfg *Config) { cfg.EraseWithin = within }, func(t *testing.T, c *cluster) {
		m := c.leader()
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
	})
}
