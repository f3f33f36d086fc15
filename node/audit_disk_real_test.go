package node_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"facet/internal/must"
	"facet/raftfsm/metafsm"
)

// spoolDisk is a file system of its own for the audit spool of a node.
type spoolDisk struct{ path string }

// mountSpool stops a node, and starts it again with its spool on a small disk of its own.
func (a *audited) mountSpool(t *testing.T, i int) spoolDisk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting needs root: run the tests as root")
	}
	a.cluster.Stop(i)
	d := spoolDisk{filepath.Join(a.cluster.Nodes[i].Config.Dir, "audit")}
	image := filepath.Join(t.TempDir(), "image")
	f, err := os.Create(image)
	if err == nil {
		err = f.Truncate(32 << 20)
	}
	if err == nil {
		err = f.Close()
	}
	must.Do(t, err)
	must.Do(t, os.RemoveAll(d.path))
	must.Do(t, os.Mkdir(d.path, 0o700))
	d.run(t, "mkfs.ext4", "-q", "-m", "0", image)
	d.run(t, "mount", "-o", "loop", image, d.path)
	t.Cleanup(func() {
		a.cluster.Stop(i)
		d.run(t, "umount", d.path)
	})
	a.cluster.Restart(i)
	a.cluster.WaitReady()
	return d
}

// unrecorded returns how many answers have no record on the majority after a minute at the latest.
func (a *audited) unrecorded(t *testing.T) (left int) {
	t.Helper()
	for late := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		a.mu.Lock()
		missing := maps.Clone(a.seen)
		a.mu.Unlock()
		last := time.Now().After(late)
		for _, r := range a.read(t, 1) {
			delete(missing, fmt.Sprintf("%x", r.ID))
		}
		if len(missing) == 0 || last {
			return len(missing)
		}
	}
}

// fill takes all room of the disk. empty gives it back.
func (d spoolDisk) fill(t *testing.T) (empty func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(d.path, "ballast"))
	must.Do(t, err)
	defer f.Close()
	for _, part := range []int{1 << 20, 1 << 12} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, part))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(f.Name()); err != nil {
			t.Error(err)
		}
	}
}

func (d spoolDisk) run(t *testing.T, name string, args ...string) {
	t.Helper()
	if text, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v %s", name, args, err, text)
	}
}

// A node answers requests of best effort although the disk of its spool is full or hangs: the majority has their
// records.
func TestHungSpoolLeavesMajority(t *testing.T) {
	a := startAudited(t)
	d := a.mountSpool(t, 0)
	if mode := a.cluster.Nodes[0].Node.Router().Audit(a.tenant).Mode; mode != metafsm.AuditBestEffort {
		t.Fatalf("the mode is %v", mode)
	}
	var sound time.Duration
	f := func(what string, n int) {
		t.Helper()
		var times []time.Duration
		for range n {
			began := time.Now()
			answer := a.call(t, 0, http.MethodGet, "/api/galleries", nil)
			for late := began.Add(time.Minute); answer.Status == http.StatusInternalServerError && time.Now().Before(late); {
				began = time.Now() // a busy machine may lose a leader
				answer = a.call(t, 0, http.MethodGet, "/api/galleries", nil)
			}
			if answer.Status != http.StatusOK {
				t.Fatalf("%s: %d %s", what, answer.Status, answer.Body)
			}
			times = append(times, time.Since(began))
		}
		if left := a.unrecorded(t); left > 0 {
			t.Errorf("%s: the majority has no record of %d answers", what, left)
		}
		slices.Sort(times)
		if sound == 0 {
			sound = times[n/2]
		}
		// An answer that waits for the disk waits until the test thaws it.
		if usual := times[n/2]; usual > 5*(sound+time.Second) {
			t.Errorf("%s: half of the answers took %v or more, with a sound disk %v", what, usual, sound)
		}
	}
	spooled := func() int {
		files, err := filepath.Glob(filepath.Join(d.path, "*.spool"))
		must.Do(t, err)
		return len(files)
	}
	f("a sound disk", 5)
	if spooled() == 0 {
		t.Fatal("the spool is elsewhere")
	}
	empty := d.fill(t)
	f("a full disk", 50)
	empty()
	defer func() { _ = exec.Command("fsfreeze", "-u", d.path).Run() }() // if the test ends early
	hang := func(what string) {
		t.Helper()
		d.run(t, "fsfreeze", "-f", d.path)
		f(what, 5)
		d.run(t, "fsfreeze", "-u", d.path)
		f("the disk is back", 3)
	}
	hang("a hung disk")
	a.cluster.Stop(0)
	a.cluster.Restart(0)
	a.cluster.WaitReady()
	hang("a disk that hung before the first record")
}
