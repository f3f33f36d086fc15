package logstore

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/must"
	"facet/raftfsm/health"
)

// flushed is a member's log with a term and a vote, and the snapshot beside it.
type flushed struct {
	t           *testing.T
	disk        *boltDisk
	log         *Log
	stable      *Stable
	index, term uint64 // of the snapshot
}

func openFlushed(t *testing.T) *flushed {
	t.Helper()
	d, err := openBolt(t.TempDir(), true)
	must.Do(t, err)
	h := health.New(time.Second, time.Minute)
	t.Cleanup(func() {
		h.Close()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return &flushed{t: t, disk: d, log: NewLog(d, h), stable: NewStable(d, h)}
}

// append writes entries of a term.
func (f *flushed) append(term, first, last uint64) {
	f.t.Helper()
	var list []*raft.Log
	for i := first; i <= last; i++ {
		list = append(list, &raft.Log{Index: i, Term: term, Type: raft.LogCommand, Data: []byte("x")})
	}
	f.must(f.stable.SetTerm(term), f.log.StoreLogs(list))
}

// snapshot makes a snapshot that ends at an entry.
func (f *flushed) snapshot(index, term uint64) {
	f.index, f.term = index, term
	f.log.Cover(index)
}

func (f *flushed) vote(term uint64) {
	f.t.Helper()
	f.must(f.stable.SetTerm(term), f.stable.SetUint64([]byte(keyVoteTerm), term), f.stable.Set([]byte(keyVoteCandidate), []byte("a")))
}

func (f *flushed) must(errs ...error) {
	f.t.Helper()
	must.Do(f.t, errors.Join(errs...))
}

func (f *flushed) complete() error { return f.log.Complete(f.index, f.term) }

// remove removes entries as a program would that knows nothing of records.
func (f *flushed) remove(first, last uint64) {
	f.t.Helper()
	f.must(f.disk.store.DeleteRange(first, last))
	f.reopen()
}

// forget removes the record.
func (f *flushed) forget() {
	f.t.Helper()
	f.remove(recordIndex, recordIndex)
}

func (f *flushed) reopen() {
	f.t.Helper()
	f.must(f.disk.store.Close(), f.disk.open())
}

// Whatever part of the files is taken away, the member does not open.
func TestMissingPartIsNoticed(t *testing.T) {
	t.Parallel()
	try := func(what string, spoil func(f *flushed)) {
		t.Helper()
		f := openFlushed(t)
		f.vote(3)
		f.append(3, 1, 20)
		f.snapshot(15, 3)
		f.must(f.log.DeleteRange(1, 10))
		if err := f.complete(); err != nil {
			t.Fatalf("%s: before it, %v", what, err)
		}
		spoil(f)
		if err := f.complete(); !errors.Is(err, ErrGone) {
			t.Errorf("%s: got %v, want ErrGone", what, err)
		}
	}
	noSnapshot := func(f *flushed) { f.index, f.term = 0, 0 }
	oldSnapshot := func(f *flushed) { f.index = 9 }
	try("the snapshot", noSnapshot)
	try("the snapshot, with an old one in its place", oldSnapshot)
	try("all entries", func(f *flushed) { f.remove(11, 20) })
	try("all entries and the snapshot", func(f *flushed) { f.remove(11, 20); noSnapshot(f) })
	try("the last entry", func(f *flushed) { f.remove(20, 20) })
	try("entries that the snapshot replaces, and later ones", func(f *flushed) { f.remove(11, 17) })
	try("the record, with term and vote", func(f *flushed) { f.forget() })
	try("all of the log", func(f *flushed) { f.forget(); f.remove(11, 20) })
}

// Each state that a crash can leave is complete.
func TestCrashLeavesCompleteLog(t *testing.T) {
	t.Parallel()
	f := openFlushed(t)
	step := func(what string, change func()) {
		t.Helper()
		change()
		if err := f.complete(); err != nil {
			t.Errorf("after %s: %v", what, err)
		}
	}
	step("nothing", func() {})
	step("a leader's term", func() { f.must(f.stable.SetTerm(1)) })
	step("a vote", func() { f.vote(2) })
	step("the record of a cut of all entries", func() { // and not yet the cut
		f.append(2, 1, 3)
		f.must(f.disk.Save(func(r *Record) { r.Last, r.LastTerm = 0, 0 }))
		f.reopen()
	})
	step("entries", func() { f.append(2, 1, 20) })
	step("the end is cut off", func() { f.disk.Commit(15); f.must(f.log.DeleteRange(16, 20)) })
	step("other entries come", func() { f.append(3, 16, 18) })
	step("a snapshot", func() { f.snapshot(17, 3) })
	step("compaction", func() { f.must(f.log.DeleteRange(1, 10)) })
	step("all that a snapshot has is cut", func() { f.snapshot(18, 3); f.must(f.log.DeleteRange(11, 18)) })
	step("entries without a log", func() { f.append(4, 19, 19) })
	step("the only entry is cut off", func() { f.must(f.log.DeleteRange(19, 19)) })
	step("another one comes", func() { f.append(5, 19, 30) })
	step("the record of a cut", func() { // and not yet the cut
		f.must(f.disk.Save(func(r *Record) { r.Last = 25 }))
		f.reopen()
		if l := new(raft.Log); !errors.Is(f.log.GetLog(26, l), raft.ErrLogNotFound) {
			t.Errorf("entry %d of the cut is there", l.Index)
		}
	})
}
