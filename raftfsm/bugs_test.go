package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"facet/internal/id"
	"facet/internal/must"
)

// These tests run in virtual time: disks and streams answer at once unless a test
// holds them up, so the bugs appear every time and no load of the machine matters.

func pause() { time.Sleep(10 * time.Millisecond) }

// bubble runs a test in virtual time, beside other tests. At its end the timers of closed
// members run out.
func bubble(t *testing.T, do func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) })
		do(t)
	})
}

// inGroup runs a test in a bubble with a new group, whose voters have a command.
func inGroup(t *testing.T, voters []id.Member, tune func(*Config), do func(t *testing.T, c *cluster)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, newWires(), tune)
		c.found(voters...)
		c.propose("x")
		c.agree()
		do(t, c)
	})
}

// The recipe of #697: entries that only a deposed leader has, a snapshot of the
// others that ends inside that range, and hardly any log before it.
const (
	lostEntries = 600
	keptEntries = 300
	livelock    = 6 // the number of installs of one snapshot that proves a livelock
)

func TestStockReinstallsSnapshotForever(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWires()
		all := openStocks(t, w)
		old := leaderOf(t, all, nil)
		must.Do(t, old.Barrier(0).Error())
		w.part(1, old.name)
		for i := range lostEntries {
			old.Apply(fmt.Append(nil, "lost ", i), 0)
		}
		now := leaderOf(t, all, old)
		for i := range keptEntries {
			must.Do(t, now.Apply(fmt.Append(nil, "kept ", i), 0).Error())
		}
		for _, s := range all {
			if s != old {
				must.Do(t, s.Raft.Snapshot().Error())
			}
		}
		enough := make(chan struct{})
		old.journal.onRestore = func(times int32) {
			if times == livelock {
				close(enough)
			}
		}
		w.part(0, old.name)
		select { // in the livelock, virtual time stands still
		case <-enough:
		case <-time.After(time.Minute):
			t.Errorf("stock raft healed after %d installs: the wrapper is no longer needed", old.journal.restored.Load())
		}
	})
}

func TestInstalledSnapshotReplacesLog(t *testing.T) {
	inGroup(t, names(3), func(cfg *Config) { cfg.TrailingLogs = 5 }, func(t *testing.T, c *cluster) {
		old := c.leader()
		c.wires.part(1, old.name)
		ctx, cancel := context.WithCancel(t.Context())
		for i := range lostEntries {
			go old.Propose(ctx, fmt.Append(nil, "lost ", i))
		}
		synctest.Wait()
		cancel()
		if got := old.Status().Last; got < lostEntries {
			t.Fatalf("the deposed leader has %d entries, want %d", got, lostEntries)
		}
		rest := c.others(old)
		for i := range keptEntries {
			c.propose(fmt.Sprint("kept ", i), rest...)
		}
		c.snapshot(rest...)
		c.wires.part(0, old.name)
		c.propose("healed", rest...)
		c.agree()
		if got := old.journal.restored.Load(); got != 1 {
			t.Errorf("installed %d snapshots, want 1", got)
		}
		// The log that it kept must be valid: let it lead and bring the others up to date.
		third := rest[0]
		c.stop(third)
		c.propose("while one is away", rest[1], old.name)
		c.lead(old.name)
		c.open(third)
		c.propose("handed on")
		c.agree()
	})
}

func TestStockLeaderKeepsLeadingDuringStall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		all := openStocks(t, newWires())
		old := leaderOf(t, all, nil)
		release, reached := old.disk.hang()
		t.Cleanup(release)
		old.Apply([]byte("stuck"), 0)
		<-reached
		time.Sleep(20 * time.Second)
		for _, s := range all {
			if s != old && s.State() == raft.Leader {
				t.Fatal("stock raft has elected another leader: the watch is no longer needed")
			}
		}
	})
}

func TestStalledLeaderIsReplaced(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		old := c.leader()
		rest := c.others(old)
		release, reached := old.disk.hang()
		defer release()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		stuck := make(chan error, 1)
		go func() { _, err := old.Propose(ctx, []byte("stuck")); stuck <- err }()
		<-reached
		start := time.Now()
		c.propose("goes on", rest...)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("the first write after the disk hung took %s, want at most 5 s", took)
		}
		if old.IsLeader() {
			t.Error("the member whose disk hangs says that it leads")
		}
		release()
		if err := <-stuck; !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("the write that was stuck: got %v, want ErrOutcomeUnknown", err)
		}
		c.propose("healed", rest...)
		c.agree()
	})
}

func TestStalledFollowerCatchesUp(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		slow := c.members[c.others(c.leader())[0]]
		release, reached := slow.disk.hang()
		defer release()
		c.propose("without it")
		<-reached
		for i := range 50 {
			c.propose(fmt.Sprint("without it ", i))
			time.Sleep(200 * time.Millisecond)
		}
		release()
		start := time.Now()
		c.agree()
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("catching up took %s", took)
		}
	})
}

func TestSlowDisksCostNoElection(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		term := c.leader().Status().Term
		for _, m := range c.members {
			m.disk.slow(1200 * time.Millisecond) // more than twice the heartbeat timeout
		}
		for i := range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if _, err := c.leader().Propose(ctx, fmt.Append(nil, i)); err != nil {
				t.Errorf("write %d: %v", i, err)
			}
			cancel()
		}
		if got := c.leader().Status().Term; got != term {
			t.Errorf("term went from %d to %d", term, got)
		}
	})
}

// ghost sends messages to a member as the leader of any term.
type ghost struct {
	*raft.NetworkTransport
	name id.Member
	to   id.Member
}

func newGhost(t *testing.T, w *wires, to id.Member) *ghost {
	t.Helper()
	const name = id.Member("member-x")
	g := &ghost{name: name, to: to, NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: bare{w.listen(string(name))}, MaxPool: 3, Timeout: time.Minute, Logger: hclog.NewNullLogger(),
	})}
	t.Cleanup(func() {
		g.Close()
		g.CloseStreams()
	})
	return g
}

// haunted runs a test in a bubble with a member and its ghost.
func haunted(t *testing.T, do func(t *testing.T, m *member, g *ghost)) {
	bubble(t, func(t *testing.T) {
		w := newWires()
		m := newCluster(t, w, nil).open("member-a")
		do(t, m, newGhost(t, w, m.name))
	})
}

// command returns a sound entry of term 5.
func command(index uint64) *raft.Log {
	return &raft.Log{Index: index, Term: 5, Type: raft.LogCommand, Data: encodeEntry(7, kindCommand, []byte("x"))}
}

func (g *ghost) append(term uint64, entries ...*raft.Log) (raft.AppendEntriesResponse, error) {
	q := raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte(g.name), Addr: []byte(g.name)},
		Term:      term, Entries: entries,
	}
	var a raft.AppendEntriesResponse
	err := g.AppendEntries(raft.ServerID(g.to), raft.ServerAddress(g.to), &q, &a)
	return a, err
}

// overtaken lets a heartbeat of term 6 arrive while an append of term 5 is being
// written. It returns the member's term when the member answers the append with success.
func overtaken(t *testing.T, g *ghost, r *raft.Raft, d *slowDisk) (term uint64) {
	t.Helper()
	release, reached := d.hang()
	type answer struct {
		raft.AppendEntriesResponse
		err error
	}
	appended, beaten := make(chan answer, 1), make(chan answer, 1)
	go func() { a, err := g.append(5, command(1)); appended <- answer{a, err} }()
	<-reached
	go func() { a, err := g.append(6); beaten <- answer{a, err} }()
	synctest.Wait()
	term = r.CurrentTerm()
	release()
	if a := <-appended; a.err != nil || !a.Success || a.Term != 5 {
		t.Errorf("append of term 5: %+v, %v", a.AppendEntriesResponse, a.err)
	}
	if a := <-beaten; a.err != nil || !a.Success || a.Term != 6 {
		t.Errorf("heartbeat of term 6: %+v, %v", a.AppendEntriesResponse, a.err)
	}
	if got := r.CurrentTerm(); got != 6 {
		t.Errorf("afterwards the term is %d, want 6", got)
	}
	return term
}

func TestStockAcknowledgesAppendOfLeftTerm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWires()
		s := openStock(t, w, "member-a", nil)
		if got := overtaken(t, newGhost(t, w, s.name), s.Raft, s.disk); got != 6 {
			t.Errorf("stock raft was in term %d when it acknowledged term 5: the wrapper is no longer needed", got)
		}
	})
}

func TestHeartbeatNeverOvertakesAppend(t *testing.T) {
	haunted(t, func(t *testing.T, m *member, g *ghost) {
		if got := overtaken(t, g, m.raft, m.disk); got != 5 {
			t.Errorf("in term %d when the append of term 5 was acknowledged", got)
		}
	})
}

func TestHeartbeatIsAnsweredDuringStall(t *testing.T) {
	haunted(t, func(t *testing.T, m *member, g *ghost) {
		if a, err := g.append(5); err != nil || !a.Success {
			t.Fatalf("first heartbeat: %+v, %v", a, err)
		}
		release, reached := m.disk.hang()
		appended := make(chan error, 1)
		go func() { _, err := g.append(5, command(1)); appended <- err }()
		<-reached
		for range 5 {
			if a, err := g.append(5); err != nil || !a.Success || a.Term != 5 {
				t.Errorf("heartbeat while the disk hangs: %+v, %v", a, err)
			}
		}
		old := make(chan bool, 1)
		go func() { a, err := g.append(4); old <- err == nil && !a.Success && a.Term == 5 }()
		synctest.Wait()
		release()
		if err := <-appended; err != nil {
			t.Error(err)
		}
		if !<-old {
			t.Error("a heartbeat of an earlier term was not refused")
		}
	})
}
