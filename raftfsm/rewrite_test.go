package raftfsm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/internal/must"
)

// roll is a cluster whose members b and c lose what they acknowledged after a copy of
// their files was made.
type roll struct {
	*cluster
	copies string
}

func newRoll(t *testing.T) *roll {
	r := &roll{cluster: newCluster(t, newWires(), nil), copies: t.TempDir()}
	r.found(names(3)...)
	r.write("before", 10)
	r.agree()
	return r
}

func (r *roll) write(what string, n int) {
	r.t.Helper()
	for i := range n {
		r.propose(fmt.Sprint(what, i))
	}
}

// copy keeps a copy of the files of b and c.
func (r *roll) copy() {
	r.t.Helper()
	for _, name := range names(3)[1:] {
		r.stop(name)
		must.Do(r.t, os.CopyFS(filepath.Join(r.copies, string(name)), os.DirFS(filepath.Join(r.dir, string(name)))))
		r.open(name)
	}
}

// rollBack stops all members, puts the copies in place of the files, and starts b and c.
func (r *roll) rollBack() {
	r.t.Helper()
	r.close()
	for _, name := range names(3)[1:] {
		folder := filepath.Join(r.dir, string(name))
		must.Do(r.t, errors.Join(os.RemoveAll(folder), os.Rename(filepath.Join(r.copies, string(name)), folder)))
		r.open(name)
	}
}

// last returns the last entry in the files of a stopped member.
func (r *roll) last(name id.Member) uint64 {
	r.t.Helper()
	s, err := OpenStopped(Config{Group: 7, Self: name, Dir: filepath.Join(r.dir, string(name))}, newJournal())
	must.Do(r.t, err)
	must.Do(r.t, s.Close())
	return s.Last
}

// pass hands the leadership on until the members have another term than the lost entries.
func (r *roll) pass(lost uint64, rest []id.Member) {
	r.t.Helper()
	for m := r.leader(rest...); m.Status().Term <= lost; m = r.leader(rest...) {
		must.Do(r.t, m.Transfer(r.t.Context(), ""))
	}
}

// A member that comes back to a majority with old copies keeps its log and says so.
func TestRewrittenHistoryIsRefused(t *testing.T) {
	f := func(what string, others func(r *roll, lost uint64, rest []id.Member)) {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) { refuseRewrite(t, others) })
		})
	}
	f("a shorter log", func(r *roll, lost uint64, rest []id.Member) { r.pass(lost, rest); r.write("other", 1) })
	f("a shorter log of the same term", func(r *roll, _ uint64, _ []id.Member) { r.write("other", 1) })
	f("a longer log", func(r *roll, lost uint64, rest []id.Member) { r.pass(lost, rest); r.write("other", 40) })
	f("a snapshot", func(r *roll, lost uint64, rest []id.Member) {
		r.pass(lost, rest)
		r.write("other", 1)
		for _, name := range rest {
			m := r.members[name]
			must.Do(r.t, errors.Join(m.Snapshot(), m.snapshots.CutLog(time.Now().Add(time.Hour))))
		}
	})
}

func refuseRewrite(t *testing.T, others func(r *roll, lost uint64, rest []id.Member)) {
	r := newRoll(t)
	r.copy()
	r.write("lost", 20)
	r.agree()
	time.Sleep(2 * commitTick) // for the commit index on the disk
	status := r.members["member-a"].Status()
	r.rollBack()
	before, rest := r.last("member-a"), names(3)[1:]
	others(r, status.Term, rest)
	a := r.open("member-a")
	r.propose("with all", rest...)
	var err error
	select {
	case err = <-a.fatal:
	case <-time.After(time.Minute):
	}
	var rewrite *RewriteError
	if !errors.As(err, &rewrite) {
		t.Fatalf("got %v, want a RewriteError", err)
	}
	if rewrite.Commit != status.Commit || rewrite.From > rewrite.Commit {
		t.Errorf("entries %d to %d, and %d were committed", rewrite.From, rewrite.Commit, status.Commit)
	}
	r.propose("goes on", rest...)
	r.close()
	if last := r.last("member-a"); last != before {
		t.Errorf("the log ends at %d, want %d", last, before)
	}
}

// The commit index is on the disk soon after the last write.
func TestCommitIndexIsSaved(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		time.Sleep(2 * commitTick)
		synctest.Wait()
		for _, m := range c.members {
			if got := m.disk.Record().Commit; got != m.Status().Commit {
				t.Errorf("%s: the disk has %d, want %d", m.name, got, m.Status().Commit)
			}
		}
	})
}

// A member whose snapshots are gone has forgotten what they held.
func TestMemberWithoutSnapshotsIsRefused(t *testing.T) {
	f := func(what string, cut bool, want error) {
		t.Run(what, func(t *testing.T) {
			inGroup(t, names(1), nil, func(t *testing.T, c *cluster) {
				m := c.leader()
				c.snapshot("member-a")
				if cut {
					must.Do(t, m.snapshots.CutLog(time.Now().Add(time.Hour)))
				} else {
					c.propose("behind the snapshot")
				}
				c.stop("member-a")
				must.Do(t, os.RemoveAll(filepath.Join(c.dir, "member-a", "snapshots")))
				if _, err := c.tryOpen("member-a"); !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			})
		})
	}
	f("the log has nothing else", true, ErrGone)
	f("the log has all", false, nil)
}
