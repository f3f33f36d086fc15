package raftfsm

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"facet/raftfsm/health"
)

// planted is what a test looks for in files.
var planted = []byte("nothing else in a folder has these bytes")

// has tells whether a file has the planted bytes.
func has(t testing.TB, dir, name string) bool {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(b, planted)
}

func TestARenewedLogHasItsEntriesAndVoteAndNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := openBolt(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	h := health.New(stallDefault, stallFatalDefault)
	defer h.Close()
	log, stable := &logStore{disk: d, health: h}, &stableStore{disk: d, health: h}
	for index := uint64(1); index <= 40; index++ {
		l := &raft.Log{Index: index, Term: 3, Type: raft.LogCommand, Data: encodeEntry(7, kindCommand, []byte("kept"))}
		if index <= 20 {
			l.Data = encodeEntry(7, kindCommand, planted)
		}
		if err := log.StoreLog(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := stable.SetUint64(keyTerm, 3); err != nil {
		t.Fatal(err)
	}
	if err := log.DeleteRange(1, 20); err != nil {
		t.Fatal(err)
	}
	if !has(t, dir, logFile) || !log.freed.Load() {
		t.Fatal("the file forgets by itself: there is no need to renew it")
	}
	var work sync.WaitGroup
	work.Go(func() { // others write meanwhile
		for index := uint64(41); index <= 60; index++ {
			if err := log.StoreLog(&raft.Log{Index: index, Term: 3, Type: raft.LogNoop}); err != nil {
				t.Error(err)
			}
		}
	})
	if err := d.renew(); err != nil {
		t.Fatal(err)
	}
	work.Wait()
	if has(t, dir, logFile) {
		t.Error("the renewed file has what was cut off")
	}
	first, firstErr := log.FirstIndex()
	last, lastErr := log.LastIndex()
	if term, err := stable.GetUint64(keyTerm); first != 21 || last != 60 || term != 3 || err != nil || firstErr != nil || lastErr != nil {
		t.Errorf("entries %d to %d, term %d; %v, %v, %v", first, last, term, err, firstErr, lastErr)
	}
	if err := log.verify(); err != nil {
		t.Error(err)
	}
}

func TestACopyOfTheLogThatWasNotFinishedIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, renewedFile), planted, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := openBolt(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, renewedFile)); err == nil {
		t.Error("it stays")
	}
}

func TestARoundTakesOldEntriesOutOfTheLogAndKeepsYoungOnes(t *testing.T) {
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
	c.propose("z")
	if m.journal.count() != count+1 || m.journal.Digest() == digest {
		t.Errorf("after a restart %d commands, want %d", m.journal.count(), count+1)
	}
}

func TestTheStatusTellsWhenTheLastWholeRoundEnded(t *testing.T) {
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
	if again := round(nil); !again.Erased.After(first.Erased) { // there was nothing to do
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

func TestAGroupErasesByItselfUntilNothingIsLeft(t *testing.T) {
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
func TestTheFirstRoundComesLongBeforeTheNextIsTried(t *testing.T) {
	t.Parallel()
	const within, soon = 16 * time.Minute, 40 * time.Second // a try a minute
	c := newCluster(t, nil, func(cfg *Config) { quick(cfg); cfg.EraseWithin = within })
	c.found("member-a")
	m := c.leader()
	c.propose("x")
	for begin := time.Now(); m.Status().Erased.IsZero(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begin) > soon {
			t.Fatalf("no round after %v", soon)
		}
	}
}
