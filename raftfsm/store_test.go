package raftfsm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"facet/raftfsm/health"
)

// openLog opens a logStore in dir, without a group.
func openLog(t testing.TB, dir string) (*logStore, *stableStore) {
	t.Helper()
	d, err := openUnsynced(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	h := health.New(stallDefault, stallFatalDefault)
	t.Cleanup(h.Close)
	return &logStore{disk: d, health: h}, &stableStore{disk: d, health: h}
}

// sample is a log with every type of entry.
func sample() []*raft.Log {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return []*raft.Log{
		{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: configuration("member-a", "member-b")},
		{Index: 2, Term: 2, Type: raft.LogNoop, AppendedAt: at},
		{Index: 3, Term: 2, Type: raft.LogCommand, Data: encodeEntry(7, kindCommand, []byte("x")), AppendedAt: at},
		{Index: 4, Term: 2, Type: raft.LogCommand, Data: encodeEntry(7, kindMarker, nil), Extensions: []byte("ext")},
		{Index: 5, Term: 3, Type: raft.LogBarrier},
	}
}

func TestLogStoreGivesBackWhatItWasGiven(t *testing.T) {
	t.Parallel()
	s, _ := openLog(t, t.TempDir())
	if err := s.StoreLogs(sample()); err != nil {
		t.Fatal(err)
	}
	for _, want := range sample() {
		var got raft.Log
		if err := s.GetLog(want.Index, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*want, got); diff != "" {
			t.Errorf("entry %d (-want +got):\n%s", want.Index, diff)
		}
	}
	if err := s.GetLog(6, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("entry 6: got %v, want not found", err)
	}
	if err := s.verify(); err != nil {
		t.Error(err)
	}
	if err := s.DeleteRange(3, 3); err != nil {
		t.Fatal(err)
	}
	if err := s.verify(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a log with a hole: got %v, want ErrCorrupt", err)
	}
}

func TestSealFindsAnyChangeOfAnEntryOrItsPlace(t *testing.T) {
	t.Parallel()
	f := func(what string, change func(*raft.Log)) {
		t.Helper()
		for _, l := range sample() {
			s := seal(l)
			index := s.Index
			change(s)
			if err := unseal(index, s); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s of entry %d: got %v, want ErrCorrupt", what, index, err)
			}
		}
	}
	f("another index", func(l *raft.Log) { l.Index++ })
	f("another term", func(l *raft.Log) { l.Term ^= 1 })
	f("another type", func(l *raft.Log) { l.Type ^= 1 })
	f("a longer command", func(l *raft.Log) { l.Data = append(l.Data, 0) })
	f("no extensions", func(l *raft.Log) { l.Extensions = nil })
	f("other extensions", func(l *raft.Log) { l.Extensions = append([]byte{0}, l.Extensions...) })
	f("another seal", func(l *raft.Log) { l.Extensions[len(l.Extensions)-1] ^= 1 })
}

func TestNoFlippedBitOfTheFileGivesAWrongEntry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, stable := openLog(t, dir)
	var want []*raft.Log
	for i := range uint64(64) {
		l := sample()[i%5]
		l.Index = i + 1
		want = append(want, l)
	}
	if err := errors.Join(s.StoreLogs(want), stable.SetUint64(keyTerm, 3), s.disk.Close()); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, logFile))
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 400
	found := 0
	for seed := range uint64(rounds) {
		rnd := rand.New(rand.NewPCG(seed, 697))
		b := append([]byte(nil), file...)
		bit := rnd.IntN(len(b) * 8)
		b[bit/8] ^= 1 << (bit % 8)
		if err := readDamaged(t, b, want); errors.Is(err, errWrong) {
			t.Errorf("bit %d flipped: %v", bit, err)
		} else if err != nil {
			found++
		}
	}
	if found < rounds/20 {
		t.Errorf("only %d of %d flips were found: the file is mostly free pages?", found, rounds)
	}
}

// errWrong says that a damaged file was read without an error, but wrongly.
var errWrong = errors.New("wrong")

func readDamaged(t *testing.T, file []byte, want []*raft.Log) error {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, logFile), file, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := openUnsynced(dir)
	if err != nil {
		return err
	}
	defer guarded(d.Close)
	h := health.New(0, 0)
	s := &logStore{disk: d, health: h}
	if err := errors.Join(s.verify(), (&stableStore{disk: d, health: h}).verify()); err != nil {
		return err
	}
	first, _ := s.FirstIndex()
	last, _ := s.LastIndex()
	for index := first; index <= last && first > 0; index++ {
		var got raft.Log
		if err := s.GetLog(index, &got); err != nil {
			return err
		}
		got.AppendedAt = want[index-1].AppendedAt // for people, not sealed
		if diff := cmp.Diff(*want[index-1], got); diff != "" {
			return fmt.Errorf("%w: entry %d (-want +got):\n%s", errWrong, index, diff)
		}
	}
	return nil
}

// crashDisk stops writing after a number of writes, as if the power was cut.
type crashDisk struct {
	disk
	left int
}

var errCrash = errors.New("power cut")

func (d *crashDisk) Set(k, v []byte) error {
	if d.left--; d.left < 0 {
		return errCrash
	}
	return d.disk.Set(k, v)
}

func TestVoteIsAllOrNothingAfterAPowerCut(t *testing.T) {
	t.Parallel()
	// A vote of term 1 for a, then one of term 2 for b, as raft writes them; the
	// power is cut before the n-th write of the second.
	vote := func(s raft.StableStore, term uint64, candidate string) error {
		if err := s.SetUint64(keyVoteTerm, term); err != nil {
			return err
		}
		return s.Set(keyVoteCandidate, []byte(candidate))
	}
	read := func(s raft.StableStore) string {
		t.Helper()
		term, err1 := s.GetUint64(keyVoteTerm)
		candidate, err2 := s.Get(keyVoteCandidate)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d for %s", term, candidate)
	}
	torn := 0
	for n := range 3 {
		dir := t.TempDir()
		d, err := openUnsynced(dir)
		if err != nil {
			t.Fatal(err)
		}
		h := health.New(stallDefault, stallFatalDefault)
		ours := &stableStore{disk: &crashDisk{d, 1 + n}, health: h}
		vote(ours, 1, "a")
		vote(ours, 2, "b")
		if got := read(&stableStore{disk: d, health: h}); got != "1 for a" && got != "2 for b" {
			t.Errorf("cut before write %d: the vote is %s", n, got)
		}
		h.Close()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 3 { // the same on the bare store
		d, err := openUnsynced(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		bare := &crashDisk64{crashDisk{d, 2 + n}}
		vote(bare, 1, "a")
		vote(bare, 2, "b")
		if got := read(d); got == "2 for a" {
			torn++
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if torn == 0 {
		t.Error("the bare store never tears a vote: the wrapper is no longer needed")
	}
}

// crashDisk64 counts numbers too, as they reach the bare store.
type crashDisk64 struct{ crashDisk }

func (d *crashDisk64) SetUint64(k []byte, v uint64) error {
	if d.left--; d.left < 0 {
		return errCrash
	}
	return d.disk.SetUint64(k, v)
}

func TestReconcileLeavesALogThatAgrees(t *testing.T) {
	t.Parallel()
	f := func(what string, first, last, term, index, snapshotTerm uint64, want string) {
		t.Helper()
		s, _ := openLog(t, t.TempDir())
		for i := first; i <= last && first > 0; i++ {
			if err := s.StoreLog(&raft.Log{Index: i, Term: term, Type: raft.LogNoop}); err != nil {
				t.Fatal(err)
			}
		}
		if err := reconcile(s, &s.pin, index, snapshotTerm); err != nil {
			t.Fatal(err)
		}
		// What raft does next, with TrailingLogs 0.
		if index < last {
			oldest, _ := s.FirstIndex()
			if err := s.DeleteRange(oldest, index); err != nil {
				t.Fatal(err)
			}
		}
		got := ""
		for i := range last + index + 2 {
			var l raft.Log
			if s.GetLog(i, &l) == nil {
				got += fmt.Sprintf(" %d/%d", l.Index, l.Term)
			}
		}
		if got != want {
			t.Errorf("%s: got%s, want%s", what, got, want)
		}
	}
	f("an empty log", 0, 0, 0, 5, 2, " 5/2")
	f("an older log", 1, 3, 1, 5, 2, " 5/2")
	f("a log that ends there", 1, 5, 1, 5, 2, " 5/2")
	f("the same history", 1, 7, 2, 5, 2, " 5/2 6/2 7/2")
	f("another history", 1, 7, 1, 5, 2, " 5/2 6/1 7/1")
	f("a newer log", 6, 7, 2, 5, 2, " 6/2 7/2")
}
