package raftfsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/must"
	"facet/raftfsm/logstore"
)

func TestFailedWriteTakesMemberOut(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		old := c.leader()
		rest := c.others(old)
		waiting := make(chan error, 1)
		go func() { waiting <- old.WaitApplied(context.Background(), 1<<40) }()
		synctest.Wait()
		old.disk.breakDown(errors.New("input/output error"))
		if _, err := old.Propose(t.Context(), []byte("lost?")); !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("propose on a broken disk: got %v, want ErrOutcomeUnknown", err)
		}
		if err := <-old.fatal; !strings.Contains(err.Error(), "input/output error") {
			t.Errorf("Fatal got %v, want the disk's error", err)
		}
		if err := <-waiting; !errors.Is(err, ErrClosed) {
			t.Errorf("who waited for an index: got %v, want ErrClosed", err)
		}
		if got := old.Status().State; got != "Failed" || old.IsLeader() {
			t.Errorf("state %s, leads %v", got, old.IsLeader())
		}
		c.propose("goes on", rest...)
		c.agree(rest...)
		applied := old.Applied()
		time.Sleep(10 * time.Second)
		if got := old.Applied(); got != applied {
			t.Errorf("the failed member went on from index %d to %d", applied, got)
		}
		c.stop(old.name)
		select {
		case err := <-old.fatal:
			t.Errorf("Fatal was called again: %v", err)
		default:
		}
		c.open(old.name) // with a new disk it is a member again
		c.agree()
	})
}

func TestHungDiskBecomesFatal(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		m := c.members[c.others(c.leader())[0]]
		release, reached := m.disk.hang()
		defer release()
		c.propose("y")
		<-reached
		start := time.Now()
		<-m.fatal
		if took := time.Since(start); took < 29*time.Second || took > 31*time.Second {
			t.Errorf("Fatal after %s, want 30 s", took)
		}
		release()
	})
}

// flip changes one bit of the file: the lowest of the byte at offset.
func flip(t *testing.T, path string, offset int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must.Do(t, err)
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], offset); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b[:], offset); err != nil {
		t.Fatal(err)
	}
}

// flipAll flips a bit in every copy of text. bbolt may hold old copies.
func flipAll(t *testing.T, path string, text []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	must.Do(t, err)
	n := 0
	for at := 0; ; n++ {
		i := bytes.Index(b[at:], text)
		if i < 0 {
			break
		}
		at += i + len(text)
		flip(t, path, int64(at-1))
	}
	if n == 0 {
		t.Fatalf("%q is not in %s", text, filepath.Base(path))
	}
}

func TestFlippedBitIsFoundAtOpen(t *testing.T) {
	f := func(what, file string, text []byte) {
		t.Run(what, func(t *testing.T) {
			inGroup(t, names(1), nil, func(t *testing.T, c *cluster) { findFlippedBit(t, c, file, text) })
		})
	}
	f("a command", logstore.File, []byte("needle"))
	f("a configuration", logstore.File, []byte("Suffrage"))
	f("the vote", logstore.File, []byte("\x05hmember-a"))
	f("the state of a snapshot", "state.bin", []byte("needle"))
	f("the header of a snapshot", "state.bin", []byte("FACETSN1"))
	f("the description of a snapshot", "meta.json", []byte("\"Version"))
	f("the index in it", "meta.json", []byte("\"Index\":INDEX"))
	f("the configuration in it", "meta.json", []byte("\"ID\":\"member-a"))
	f("the checksum in it", "meta.json", []byte("\"CRC\":\""))
}

func findFlippedBit(t *testing.T, c *cluster, file string, text []byte) {
	c.propose("the needle of this test")
	if file != logstore.File {
		c.snapshot("member-a")
	}
	index := fmt.Sprint(c.members["member-a"].Status().Snapshot)
	c.stop("member-a")
	path := filepath.Join(c.dir, "member-a", file)
	if file != logstore.File {
		found, err := filepath.Glob(filepath.Join(c.dir, "member-a", "snapshots", "*", file))
		if err != nil || len(found) != 1 {
			t.Fatalf("snapshots: %v, %v", found, err)
		}
		path = found[0]
	}
	flipAll(t, path, bytes.Replace(text, []byte("INDEX"), []byte(index), 1))
	if _, err := c.tryOpen("member-a"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("open gives %v, want ErrCorrupt", err)
	}
}

func TestLeaderWithUnreadableLogStepsAside(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		c.propose("the needle of this test")
		c.agree()
		old := c.leader()
		away := c.others(old)[0]
		c.stop(away)
		must.Do(t, os.RemoveAll(filepath.Join(c.dir, string(away))))
		for i := range logCacheEntries + 10 { // so that the log must be read from disk
			c.propose(fmt.Sprint("later ", i))
		}
		flipAll(t, filepath.Join(c.dir, string(old.name), logstore.File), []byte("needle"))
		c.open(away) // a member that lost its disk asks for everything; a test may do that
		if err := <-old.fatal; !errors.Is(err, ErrCorrupt) {
			t.Errorf("Fatal got %v, want ErrCorrupt", err)
		}
		c.stop(old.name)
		c.propose("goes on")
		c.agree()
	})
}

func TestSecondProcessIsRefused(t *testing.T) {
	inGroup(t, names(1), nil, func(t *testing.T, c *cluster) {
		if _, err := c.tryOpen("member-a"); err == nil {
			t.Error("the folder was opened twice")
		}
	})
}

func TestSnapshotWithoutLogIsRefused(t *testing.T) {
	inGroup(t, names(1), nil, func(t *testing.T, c *cluster) {
		c.snapshot("member-a")
		c.stop("member-a")
		must.Do(t, os.Remove(filepath.Join(c.dir, "member-a", logstore.File)))
		if _, err := c.tryOpen("member-a"); !errors.Is(err, ErrGone) {
			t.Errorf("got %v, want ErrGone: a member that forgot its votes must not vote", err)
		}
	})
}

func TestUnreadableEntryStopsGroupOnly(t *testing.T) {
	f := func(what string, entry []byte, corrupt bool) {
		t.Run(what, func(t *testing.T) {
			inGroup(t, names(1), nil, func(t *testing.T, c *cluster) {
				m := c.leader()
				synctest.Wait() // the marker of the new leader may come after the first command
				want, at := m.journal.Digest(), m.Applied()
				m.raft.Apply(entry, 0) // bypasses Propose, which proposes valid entries
				if err := <-m.fatal; errors.Is(err, ErrCorrupt) != corrupt {
					t.Errorf("Fatal got %v", err)
				}
				m.raft.Apply(encodeEntry(7, kindCommand, []byte("after it")), 0)
				time.Sleep(time.Second)
				if m.journal.Digest() != want || m.Applied() != at {
					t.Errorf("the machine went on to index %d", m.Applied())
				}
				if err := m.Snapshot(); !errors.Is(err, ErrClosed) {
					t.Errorf("snapshot gives %v, want ErrClosed", err)
				}
			})
		})
	}
	damaged := encodeEntry(7, kindCommand, []byte("damaged"))
	damaged[8] ^= 1
	f("a damaged entry", damaged, true)
	f("an entry of a newer release", encodeEntry(7, 9, []byte("new")), false)
}

func TestMemberRefusesDamagedEntries(t *testing.T) {
	haunted(t, func(t *testing.T, m *member, g *ghost) {
		damaged := command(2)
		damaged.Data[6] ^= 1
		if a, err := g.append(5, command(1), damaged); err == nil {
			t.Errorf("damaged entries: got %+v, want an error", a)
		}
		if got := m.Status().Last; got != 0 {
			t.Errorf("%d of the damaged entries were kept", got)
		}
		if a, err := g.append(5, command(1), command(2)); err != nil || !a.Success {
			t.Errorf("the same entries sent again: %+v, %v", a, err)
		}
	})
}
