package replicas

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
)

func outagesIn(t *testing.T, dir string) *outages {
	t.Helper()
	o, err := openOutages(dir)
	must.Do(t, err)
	return o
}

func TestDamagedReplicaStaysOut(t *testing.T) {
	t.Parallel()
	f := func(number id.Shard, err error, fatal, now, restarted bool) {
		t.Helper()
		dir := t.TempDir()
		o := outagesIn(t, dir)
		if got := o.note(number, err); (got != nil) != fatal {
			t.Errorf("%v in group %d: got %v, want fatal %v", err, number, got, fatal)
		}
		why, out := o.get(number)
		if _, after := outagesIn(t, dir).get(number); out != now || after != restarted {
			t.Errorf("%v in group %d: out %v, after a restart %v; want %v, %v", err, number, out, after, now, restarted)
		}
		if !out {
			return
		}
		if err := o.end(number, why); err != nil {
			t.Error(err)
		}
		if _, after := outagesIn(t, dir).get(number); after || len(o.all()) != 0 {
			t.Errorf("%v in group %d: out after its end", err, number)
		}
	}
	f(1, fmt.Errorf("entry 5: %w", raftfsm.ErrCorrupt), false, true, true)
	f(1, fmt.Errorf("open: %w", raftfsm.ErrGone), false, true, true)
	f(12, ErrDiverged, false, true, true)
	f(3, &raftfsm.RewriteError{From: 5, Commit: 9}, false, true, true)
	f(1, &os.PathError{Op: "write", Path: "raft.db", Err: syscall.ENOSPC}, false, true, false) // its files are good
	f(1, &os.PathError{Op: "sync", Path: "raft.db", Err: syscall.EIO}, true, false, false)
	f(id.Meta, raftfsm.ErrCorrupt, true, false, false)
}

func TestOlderOutageEndsNoNewer(t *testing.T) {
	t.Parallel()
	o := outagesIn(t, t.TempDir())
	must.Do(t, o.note(1, raftfsm.ErrCorrupt))
	first, _ := o.get(1)
	must.Do(t, o.note(1, ErrDiverged))
	must.Do(t, o.end(1, first))
	if why, out := o.get(1); !out || why.Reason != ErrDiverged.Error() {
		t.Errorf("out %v because of %q", out, why.Reason)
	}
}

func TestSetAsideFolderIsRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		o, group := outagesIn(t, dir), Folder(dir, 1)
		must.Do(t, os.Mkdir(group, 0o700))
		aside, err := o.setAside(group, outage{})
		must.Do(t, err)
		f := func(wait time.Duration, want int) {
			t.Helper()
			time.Sleep(wait)
			if err := o.clear(time.Hour); err != nil {
				t.Error(err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != want || len(o.alarms(shared)) != want {
				t.Errorf("%s later: %q, alarms %q, %v; want %d", wait, left, o.alarms(shared), err, want)
			}
		}
		f(time.Hour, 1)
		if _, err := os.Stat(aside); err != nil {
			t.Error(err)
		}
		f(time.Millisecond, 0)
		if _, err := o.setAside(group, outage{}); err != nil { // there is none
			t.Error(err)
		}
	})
}

// A folder with replaced entries stays until an operator removes it, also after a crash
// before the replica has state again.
func TestRewrittenFolderIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		o, group := outagesIn(t, dir), Folder(dir, 1)
		must.Do(t, o.note(1, &raftfsm.RewriteError{From: 5, Commit: 9}))
		kept := ""
		for i := range 2 {
			if got := o.rewritten(); got != 1 {
				t.Errorf("start %d: %d groups were rewritten, want 1", i, got)
			}
			why, _ := o.get(1)
			err := os.Mkdir(group, 0o700)
			aside, failed := o.setAside(group, why)
			must.Do(t, errors.Join(err, failed))
			if i == 0 {
				kept = aside
			}
			o = outagesIn(t, dir)
		}
		why, _ := o.get(1)
		time.Sleep(1000 * time.Hour)
		must.Do(t, errors.Join(o.end(1, why), o.clear(time.Hour)))
		if got, err := Rewritten(kept); err != nil || *got != (raftfsm.RewriteError{From: 5, Commit: 9}) {
			t.Errorf("the folder says %v, %v", got, err)
		}
		if got := o.rewritten(); got != 1 || len(o.alarms(shared)) != 1 || !strings.Contains(o.alarms(shared)[0], "entries 5 to 9") {
			t.Errorf("%d groups were rewritten, alarms %q; want 1", got, o.alarms(shared))
		}
		must.Do(t, os.RemoveAll(kept))
		if got := o.rewritten(); got != 0 || len(o.alarms(shared)) != 0 {
			t.Errorf("the folder is gone: %d groups, alarms %q", got, o.alarms(shared))
		}
	})
}

func TestFullDiskReplicaRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := true
		r := &Replicas{
			cfg:     Config{DiskFull: func() bool { return full }, Log: slog.New(slog.DiscardHandler)},
			outages: outagesIn(t, t.TempDir()), state: metafsm.New(),
		}
		r.Damage(1, &os.PathError{Op: "write", Path: "raft.db", Err: syscall.ENOSPC})
		f := func(what string, wait time.Duration, want bool) {
			t.Helper()
			time.Sleep(wait)
			if (Repairer{r}).Step(t.Context()); r.Out(1) != want {
				t.Errorf("%s: out %v, want %v", what, r.Out(1), want)
			}
		}
		f("at once", 0, true)
		f("while the disk is full", time.Minute, true)
		full = false
		f("with space", 0, false)
		r.Damage(1, errors.Join(syscall.ENOSPC))
		f("full again, a moment later", outRetry-1, true)
		f("and then", 1, false)
	})
}

// shared reports, as the parts of a node do, that no shard here is the only replica.
func shared(id.Shard) bool { return false }
