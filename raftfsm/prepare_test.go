package raftfsm

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"

	"facet/internal/must"
	"facet/raftfsm/logstore"
)

func TestMemberWithoutLogIsRefused(t *testing.T) {
	t.Parallel()
	f := func(what string, spoil func(dir string) error) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "group-1")
		must.Do(t, Prepare(dir))
		must.Do(t, spoil(dir))
		before, _ := os.ReadDir(dir)
		for range 2 { // a failed attempt leaves no file that the second takes for a log
			if _, err := OpenStopped(Config{Group: 1, Self: "a", Dir: dir, Prepared: true}, newJournal()); !errors.Is(err, ErrGone) {
				t.Errorf("%s: got %v, want ErrGone", what, err)
			}
		}
		if after, _ := os.ReadDir(dir); len(after) != len(before) {
			t.Errorf("%s: the folder had %v, and has %v", what, before, after)
		}
	}
	f("the folder", os.RemoveAll)
	f("what is in it", func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) })
	f("the file", func(dir string) error { return os.Remove(filepath.Join(dir, logstore.File)) })
	f("all its bytes", func(dir string) error { return os.Truncate(filepath.Join(dir, logstore.File), 0) })
}

func TestPreparedLogIsNeverOverwritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "group-1")
	cfg := Config{Group: 1, Self: "a", Dir: dir, Prepared: true}
	for _, want := range []uint64{0, 1, 1} {
		// The files of a Prepare that crashed do no harm.
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "raft.db.tmp"), []byte("half"), 0o600)
		}
		if err = errors.Join(err, Prepare(dir)); err != nil {
			t.Fatal(err)
		}
		s, err := OpenStopped(cfg, newJournal())
		must.Do(t, err)
		if s.Last < want {
			t.Errorf("the log ends at %d, want at least %d", s.Last, want)
		}
		if s.Last == 0 {
			err = errors.Join(s.group.stable.SetTerm(1), s.group.logs.StoreLogs([]*raft.Log{{Index: 1, Term: 1, Type: raft.LogNoop}}))
		}
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
