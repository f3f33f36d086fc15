package rollback

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm"
)

const (
	self = id.Member("self")
	them = id.Member("other")
)

func openTable(t *testing.T, dir string) *Table {
	t.Helper()
	table, err := Open(dir, self, slog.New(slog.DiscardHandler))
	must.Do(t, err)
	return table
}

// told sends what from knows of its own run and rows to a peer's table, and reports whether
// the answer shows that from was rolled back.
func told(from, to *Table) bool {
	rows, _ := from.Since(0)
	known, _ := to.Learn(self, from.NextRound(), rows)
	return from.Refuted(known)
}

func TestSoundStartsAreNeverRefuted(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), openTable(t, t.TempDir())
	for start := range 5 {
		from := openTable(t, dir)
		for range 3 {
			if told(from, to) {
				t.Fatalf("start %d was refuted", start)
			}
		}
		if start == 2 {
			if err := from.Begin(1); err != nil { // a replica was made
				t.Fatal(err)
			}
		}
	}
	if got := openTable(t, dir).Life(1); got != 4 {
		t.Errorf("life %d, want the count of the start with which it began", got)
	}
}

func TestRolledBackDirectoryIsRefuted(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), openTable(t, t.TempDir())
	file := filepath.Join(dir, File)
	told(openTable(t, dir), to)
	before, err := os.ReadFile(file)
	must.Do(t, err)
	told(openTable(t, dir), to)
	must.Do(t, os.WriteFile(file, before, 0o600))
	if !told(openTable(t, dir), to) {
		t.Error("a directory that was copied before the last start was accepted")
	}
	must.Do(t, os.Remove(file))
	if !told(openTable(t, dir), to) {
		t.Error("a directory without the file was accepted")
	}
}

// A machine that resumes with its old memory tells an earlier round of the same run.
func TestResumedMemoryIsRefuted(t *testing.T) {
	t.Parallel()
	from, to := openTable(t, t.TempDir()), openTable(t, t.TempDir())
	for range 3 {
		told(from, to)
	}
	from.run.Round = 1
	if !told(from, to) {
		t.Error("a run that went back was accepted")
	}
	from.run.Round = 7 // a round that another node heard, and this one not
	if told(from, to) {
		t.Error("a run that went on was refuted")
	}
}

func TestDamagedFileContinuesRun(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), openTable(t, t.TempDir())
	for range 3 {
		from := openTable(t, dir)
		must.Do(t, from.Begin(1))
		from.Marks(1).Add(self, raftfsm.Mark{Life: from.Life(1), Term: 1})
		told(from, to)
	}
	file := filepath.Join(dir, File)
	whole, err := os.ReadFile(file)
	must.Do(t, err)
	f := func(what string, b []byte) {
		t.Helper()
		must.Do(t, os.WriteFile(file, b, 0o600))
		var log strings.Builder
		from, err := Open(dir, self, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if !strings.Contains(log.String(), "is lost") {
			t.Errorf("%s was not noticed", what)
		}
		from.Adopt(to.Of(self))
		if from.Life(1) == 0 {
			t.Errorf("%s: the life of a replica was not adopted", what)
		}
		if told(from, to) || from.Save() != nil || told(from, to) || told(openTable(t, dir), to) {
			t.Errorf("%s: the node can't continue", what)
		}
	}
	f("an empty file", nil)
	f("half a file", whole[:len(whole)/2])
	f("a flipped bit", append(bytes.Clone(whole[:len(whole)-5]), whole[len(whole)-5]^1, whole[len(whole)-4], whole[len(whole)-3], whole[len(whole)-2], whole[len(whole)-1]))
}

func TestTableKeepsHighestMark(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	table := openTable(t, dir)
	marks := table.Marks(3)
	f := func(add, want raftfsm.Mark) {
		t.Helper()
		marks.Add(them, add)
		if got, sound := marks.Known(them); got != want || !sound {
			t.Errorf("got %+v, sound %v; want %+v", got, sound, want)
		}
	}
	f(raftfsm.Mark{Term: 2, Index: 10}, raftfsm.Mark{Term: 2, Index: 10})
	f(raftfsm.Mark{Term: 2, Index: 9}, raftfsm.Mark{Term: 2, Index: 10})
	f(raftfsm.Mark{Term: 1, Index: 90}, raftfsm.Mark{Term: 2, Index: 10})
	f(raftfsm.Mark{Term: 3}, raftfsm.Mark{Term: 3})
	f(raftfsm.Mark{Life: 5, Term: 1}, raftfsm.Mark{Life: 5, Term: 1})
	f(raftfsm.Mark{Term: 9, Index: 9}, raftfsm.Mark{Life: 5, Term: 1})
	must.Do(t, table.Save())
	if got, _ := openTable(t, dir).Marks(3).Known(them); got != (raftfsm.Mark{Life: 5, Term: 1}) {
		t.Errorf("after a restart: %+v", got)
	}
}

func TestTableSendsOwnSightingsOnly(t *testing.T) {
	t.Parallel()
	table := openTable(t, t.TempDir())
	table.Learn(them, Run{Count: 1, ID: 1}, []Row{{Member: them, Group: 1, Mark: raftfsm.Mark{Term: 7}}})
	table.Marks(2).Add(them, raftfsm.Mark{Term: 1, Index: 1})
	rows, version := table.Since(0)
	if len(rows) != 1 || rows[0].Group != 2 {
		t.Errorf("got %+v, want what was seen here", rows)
	}
	table.Marks(2).Add(them, raftfsm.Mark{Term: 1, Index: 1})
	if rows, _ := table.Since(version); len(rows) != 0 {
		t.Errorf("sent again: %+v", rows)
	}
	if rows := table.Of(them); len(rows) != 2 {
		t.Errorf("got %+v of the peer, want what was seen and what was told", rows)
	}
}

func TestLostMemberCountsAgainAfterRebirth(t *testing.T) {
	t.Parallel()
	table := openTable(t, t.TempDir())
	marks, k := table.Marks(1), raftfsm.Mark{Life: 2, Term: 3, Index: 9}
	marks.Add(them, k)
	marks.Behind(them, k)
	if _, sound := marks.Known(them); sound || len(table.Lost()) != 1 {
		t.Errorf("sound %v, lost %v", sound, table.Lost())
	}
	table.Reborn(them, 1, 4)
	if got, sound := marks.Known(them); !sound || got != (raftfsm.Mark{Life: 4}) || len(table.Lost()) != 0 {
		t.Errorf("after its next life: %+v, sound %v, lost %v", got, sound, table.Lost())
	}
	old := id.Member("old")
	marks.Add(old, k)
	marks.Behind(old, k)
	table.Forgive(Row{Member: old, Group: 1, Mark: k})
	if got, sound := marks.Known(old); !sound || got != (raftfsm.Mark{}) {
		t.Errorf("after it was forgiven: %+v, sound %v", got, sound)
	}
}

func TestReplacedProcessTellsNoMarks(t *testing.T) {
	t.Parallel()
	table := openTable(t, t.TempDir())
	rows := func(index uint64) []Row {
		return []Row{{Member: them, Group: 1, Mark: raftfsm.Mark{Term: 7, Index: index}}}
	}
	f := func(r Run, index uint64, latest bool, want uint64) {
		t.Helper()
		if _, got := table.Learn(them, r, rows(index)); got != latest {
			t.Errorf("run %+v: latest %v, want %v", r, got, latest)
		}
		if k, _ := table.Marks(1).Known(them); k.Index != want {
			t.Errorf("run %+v: index %d, want %d", r, k.Index, want)
		}
	}
	f(Run{}, 5, true, 5) // not on its disk yet
	f(Run{Count: 4, ID: 1, Round: 1}, 10, true, 10)
	f(Run{Count: 5, ID: 2, Round: 1}, 11, true, 11) // replaces the one before
	f(Run{Count: 4, ID: 1, Round: 2}, 20, false, 11)
	f(Run{}, 21, false, 11)
	f(Run{Count: 5, ID: 3, Round: 1}, 22, false, 11) // a second copy
	f(Run{Count: 5, ID: 2, Round: 2}, 12, true, 12)
}

func TestTableIsBounded(t *testing.T) {
	t.Parallel()
	table := openTable(t, t.TempDir())
	for i := range rowsMax + 10 {
		table.Marks(id.Shard(i%60)).Add(id.Member(strings.Repeat("m", 1)+string(rune('0'+i))), raftfsm.Mark{Term: 1})
	}
	if rows, _ := table.Since(0); len(rows) != rowsMax {
		t.Errorf("%d rows, want %d", len(rows), rowsMax)
	}
	table.Drop(func(id.Member) bool { return true })
	if rows, _ := table.Since(0); len(rows) != 0 {
		t.Errorf("%d rows after all members went", len(rows))
	}
}
