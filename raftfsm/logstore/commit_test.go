package logstore

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"

	"facet/raftfsm/health"
)

func TestCommittedEntryIsNeverCut(t *testing.T) {
	t.Parallel()
	try := func(what string, first, last uint64, want bool) {
		t.Helper()
		f := openFlushed(t)
		f.append(3, 1, 20)
		commit := uint64(15)
		f.log.Follow(func() uint64 { return commit })
		f.snapshot(10, 3)
		var rewrite *health.RewriteError
		err := f.log.DeleteRange(first, last)
		if got := errors.As(err, &rewrite) && errors.As(f.log.health.Failed(), &rewrite); got != want || !got && err != nil {
			t.Errorf("%s, entries %d to %d: got %v, refused %v, want %v", what, first, last, err, got, want)
		}
		if end, err := f.log.LastIndex(); want && (end != 20 || err != nil) {
			t.Errorf("%s: the log ends at %d, %v", what, end, err)
		}
	}
	try("an end that is not committed", 16, 20, false)
	try("a start that a snapshot has", 1, 10, false)
	try("an end with a committed entry", 15, 20, true)
	try("an end that a snapshot has", 8, 20, true)
	try("a start that no snapshot has", 1, 11, true)
	try("all", 1, 20, true)
}

// A member that was stopped knows what was committed before.
func TestCommitIndexOutlivesRestart(t *testing.T) {
	t.Parallel()
	f := openFlushed(t)
	f.append(3, 1, 20)
	f.disk.Commit(15)
	f.must(f.log.SaveCommit(15), f.disk.Close())
	d, err := openBolt(f.disk.dir, true)
	f.must(err)
	f.disk, f.log, f.stable = d, NewLog(d, f.log.health), NewStable(d, f.log.health)
	t.Cleanup(func() { f.must(d.Close()) })
	f.must(f.complete())
	if got := f.log.Commit(); got != 15 {
		t.Errorf("got %d, want 15", got)
	}
	own := raft.Log{Index: 15, Term: 3}
	other := raft.Log{Index: 15, Term: 2}
	later := raft.Log{Index: 16, Term: 4}
	for l, want := range map[*raft.Log]bool{&own: false, &other: true, &later: false} {
		if got := f.log.Contradiction(f.log, l) != nil; got != want {
			t.Errorf("entry %d of term %d: a contradiction %v, want %v", l.Index, l.Term, got, want)
		}
	}
}
