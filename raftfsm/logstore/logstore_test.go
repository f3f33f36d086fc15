package logstore

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

	"facet/internal/must"
	"facet/raftfsm/health"
)

// openTest opens a file without fsync. It returns an error for damaged pages.
func openTest(dir string) (d Disk, err error) {
	err = guarded(func() (err error) { d, err = OpenUnsynced(dir); return err })
	return d, err
}

// openLog opens a Log in dir, without a group.
func openLog(t testing.TB, dir string) (*Log, *Stable) {
	t.Helper()
	d, err := openTest(dir)
	must.Do(t, err)
	t.Cleanup(func() { d.Close() })
	h := health.New(time.Second, time.Minute)
	t.Cleanup(h.Close)
	return &Log{disk: d, health: h}, &Stable{disk: d, health: h}
}

// sample is a log with every type of entry.
func sample() []*raft.Log {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return []*raft.Log{
		{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: []byte("members")},
		{Index: 2, Term: 2, Type: raft.LogNoop, AppendedAt: at},
		{Index: 3, Term: 2, Type: raft.LogCommand, Data: []byte("x"), AppendedAt: at},
		{Index: 4, Term: 2, Type: raft.LogCommand, Extensions: []byte("ext")},
		{Index: 5, Term: 3, Type: raft.LogBarrier},
	}
}

func TestLogReturnsStoredEntries(t *testing.T) {
	t.Parallel()
	s, _ := openLog(t, t.TempDir())
	must.Do(t, s.StoreLogs(sample()))
	for _, want := range sample() {
		var got raft.Log
		must.Do(t, s.GetLog(want.Index, &got))
		if diff := cmp.Diff(*want, got); diff != "" {
			t.Errorf("entry %d (-want +got):\n%s", want.Index, diff)
		}
	}
	if err := s.GetLog(6, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("entry 6: got %v, want not found", err)
	}
	if err := s.Verify(); err != nil {
		t.Error(err)
	}
	must.Do(t, s.DeleteRange(3, 3))
	if err := s.Verify(); !errors.Is(err, health.ErrCorrupt) {
		t.Errorf("a log with a hole: got %v, want health.ErrCorrupt", err)
	}
}

func TestSealDetectsAnyChange(t *testing.T) {
	t.Parallel()
	f := func(what string, change func(*raft.Log)) {
		t.Helper()
		for _, l := range sample() {
			s := seal(l)
			index := s.Index
			change(s)
			if err := unseal(index, s); !errors.Is(err, health.ErrCorrupt) {
				t.Errorf("%s of entry %d: got %v, want health.ErrCorrupt", what, index, err)
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

func TestFlippedBitsNeverGiveWrongEntry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, stable := openLog(t, dir)
	var want []*raft.Log
	for i := range uint64(64) {
		l := sample()[i%5]
		l.Index = i + 1
		want = append(want, l)
	}
	must.Do(t, errors.Join(s.StoreLogs(want), stable.SetTerm(3), s.disk.Close()))
	file, err := os.ReadFile(filepath.Join(dir, File))
	must.Do(t, err)
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

// errWrong is returned when a damaged file was read without an error, but wrongly.
var errWrong = errors.New("wrong")

func readDamaged(t *testing.T, file []byte, want []*raft.Log) error {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, File), file, 0o600))
	d, err := openTest(dir)
	if err != nil {
		return err
	}
	defer guarded(d.Close)
	h := health.New(0, 0)
	s := &Log{disk: d, health: h}
	if err := s.Verify(); err != nil {
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
	Disk
	left int
}

var errCrash = errors.New("power cut")

func (d *crashDisk) Save(change func(*Record)) error {
	if d.left--; d.left < 0 {
		return errCrash
	}
	return d.Disk.Save(change)
}

func TestPowerCutNeverTearsVote(t *testing.T) {
	t.Parallel()
	// A vote of term 1 for a, then one of term 2 for b, as raft writes them; the
	// power is cut before the n-th write of the second.
	vote := func(s raft.StableStore, term uint64, candidate string) error {
		if err := s.SetUint64([]byte(keyVoteTerm), term); err != nil {
			return err
		}
		return s.Set([]byte(keyVoteCandidate), []byte(candidate))
	}
	read := func(s raft.StableStore) string {
		t.Helper()
		term, err1 := s.GetUint64([]byte(keyVoteTerm))
		candidate, err2 := s.Get([]byte(keyVoteCandidate))
		must.Do(t, errors.Join(err1, err2))
		return fmt.Sprintf("%d for %s", term, candidate)
	}
	torn := 0
	for n := range 3 {
		dir := t.TempDir()
		d, err := openTest(dir)
		must.Do(t, err)
		h := health.New(time.Second, time.Minute)
		ours := &Stable{disk: &crashDisk{d, 1 + n}, health: h}
		vote(ours, 1, "a")
		vote(ours, 2, "b")
		if got := read(&Stable{disk: d, health: h}); got != "1 for a" && got != "2 for b" {
			t.Errorf("cut before write %d: the vote is %s", n, got)
		}
		h.Close()
		must.Do(t, d.Close())
	}
	for n := range 3 { // the same on the bare store
		d, err := openStore(filepath.Join(t.TempDir(), File), true)
		must.Do(t, err)
		bare := &crashStore{d, 2 + n}
		vote(bare, 1, "a")
		vote(bare, 2, "b")
		if got := read(d); got == "2 for a" {
			torn++
		}
		must.Do(t, d.Close())
	}
	if torn == 0 {
		t.Error("the bare store never tears a vote: the wrapper is no longer needed")
	}
}

// crashStore is crashDisk for the bare store.
type crashStore struct {
	raft.StableStore
	left int
}

func (d *crashStore) Set(k, v []byte) error {
	if d.left--; d.left < 0 {
		return errCrash
	}
	return d.StableStore.Set(k, v)
}

func (d *crashStore) SetUint64(k []byte, v uint64) error {
	if d.left--; d.left < 0 {
		return errCrash
	}
	return d.StableStore.SetUint64(k, v)
}
