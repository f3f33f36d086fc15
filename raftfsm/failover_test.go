package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/id"
	"facet/internal/must"
)

// A member is away for awayEntries entries, one each awayPause: for each of them its
// leader's append fails.
const (
	awayEntries = 500
	awayPause   = 50 * time.Millisecond
)

// since returns how long it takes until done holds.
func since(t *testing.T, done func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !done() {
		if time.Since(start) > time.Minute {
			t.Fatal("not within a minute")
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(start)
}

func TestStockStarvesReturnedMember(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWires()
		all := openStocks(t, w)
		leader := leaderOf(t, all, nil)
		away := all[slices.IndexFunc(all, func(s *stock) bool { return s != leader })]
		w.part(1, away.name)
		for i := range awayEntries {
			must.Do(t, leader.Apply(fmt.Append(nil, i), 0).Error())
			time.Sleep(awayPause)
		}
		w.part(0, away.name)
		took := since(t, func() bool { return away.LastIndex() >= leader.LastIndex() })
		t.Logf("caught up after %s", took)
		if took < 2*time.Second {
			t.Errorf("stock raft brings a member up to date after %s: the wrapper is no longer needed", took)
		}
	})
}

func TestReturnedMemberCatchesUpAtOnce(t *testing.T) {
	f := func(what string, trailing uint64) {
		t.Run(what, func(t *testing.T) {
			inGroup(t, names(3), func(cfg *Config) { cfg.TrailingLogs = trailing }, returnsAtOnce)
		})
	}
	f("entries", 2048)
	f("snapshot", 5)
}

func returnsAtOnce(t *testing.T, c *cluster) {
	leader := c.leader()
	away := c.members[c.others(leader)[0]]
	c.wires.part(1, away.name)
	for i := range awayEntries {
		c.propose(fmt.Sprint(i), leader.name)
		time.Sleep(awayPause)
	}
	c.snapshot(leader.name)
	c.wires.part(0, away.name)
	took := since(t, func() bool { return away.Applied() >= leader.Applied() })
	if took > heartbeatDefault { // raft tries a lost member again every half of that
		t.Errorf("up to date %s after its return", took)
	}
	if leader.name != c.leader().name {
		t.Error("its return cost an election")
	}
}

func TestLeaderWithDeadMemberStillTransfers(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		leader := c.leader()
		dead := c.others(leader)[0]
		c.stop(dead)
		c.propose("while it is dead: its appends are held")
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for range 3 { // a transfer to a dead member does not begin
			start := time.Now()
			if err := leader.Transfer(ctx, dead); !errors.Is(err, errSilent) {
				t.Errorf("a transfer to a dead member: got %v, want %v", err, errSilent)
			}
			c.propose("after a transfer that did not begin", leader.name)
			if took := time.Since(start); took > 100*time.Millisecond {
				t.Errorf("a transfer that did not begin held writes for %s", took)
			}
		}
		// As if the member had died after it was asked.
		start := time.Now()
		if err := (handover{leader.Group}).transfer(ctx, dead); err == nil {
			t.Error("the leadership went to a dead member")
		}
		c.propose("after a transfer that failed", leader.name)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("a transfer that failed held writes for %s", took)
		}
		// Remove the member: Close would wait for it.
		_, index, err := leader.Servers()
		if err == nil {
			err = leader.Remove(ctx, dead, index)
		}
		must.Do(t, err)
	})
}

// failover ends the leader's process, and returns the time until another member
// acknowledges a write.
func failover(t *testing.T, c *cluster) time.Duration {
	t.Helper()
	old := c.leader()
	rest := c.others(old)
	start := time.Now()
	c.stop(old.name)
	c.propose("after the leader's end", rest...)
	took := time.Since(start)
	c.open(old.name)
	c.agree()
	return took
}

func TestFollowersReplaceExitedLeaderEarly(t *testing.T) {
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n, " members"), func(t *testing.T) {
			inGroup(t, nodeNames(n), nil, func(t *testing.T, c *cluster) { failsOver(t, c, 10, "") })
		})
		t.Run(fmt.Sprint(n, " without nodes"), func(t *testing.T) {
			inGroup(t, names(n), nil, func(t *testing.T, c *cluster) {
				if took := failover(t, c); took < heartbeatDefault/2 {
					t.Errorf("timers alone: %s", took)
				}
			})
		})
	}
}

// A vote is on disk before it is given. Members with slow disks wait for the votes of the
// first candidate before they stand for election themselves.
func TestSlowVotersElectFirstCandidate(t *testing.T) {
	inGroup(t, nodeNames(3), nil, func(t *testing.T, c *cluster) {
		for delay := 50 * time.Millisecond; delay <= 150*time.Millisecond; delay += 25 * time.Millisecond {
			for _, m := range c.members {
				m.disk.slow(delay)
			}
			if took := failover(t, c); took > heartbeatDefault {
				t.Errorf("disks that take %s: a write %s after the leader's end", delay, took)
			}
		}
	})
}

func TestCutOffFollowerDeposesNobody(t *testing.T) {
	inGroup(t, nodeNames(3), nil, func(t *testing.T, c *cluster) {
		leader := c.leader()
		term := leader.Status().Term
		c.wires.sever(leader.name, c.others(leader)[0]) // its address refuses, too
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			c.propose("on and on", leader.name)
		}
		if now := leader.Status(); now.Term != term || now.State != "Leader" {
			t.Errorf("%s of term %d became %s of term %d", leader.name, term, now.State, now.Term)
		}
	})
}

func TestResigningLeaderPicksCaughtUpVoter(t *testing.T) {
	inGroup(t, nodeNames(3), nil, func(t *testing.T, c *cluster) {
		time.Sleep(3 * electionDefault) // a member that lost the first election takes no leadership before
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for round := range 2 { // whichever of the two is behind
			old := c.leader()
			rest := c.others(old)
			behind, ready := rest[round], rest[1-round]
			c.wires.part(1, behind)
			for i := range 3 * successorBehind {
				c.propose(fmt.Sprint(i), old.name)
			}
			c.members[behind].disk.slow(300 * time.Millisecond) // it answers, and can't lead
			c.wires.part(0, behind)
			time.Sleep(200 * time.Millisecond)
			start := time.Now()
			must.Do(t, old.Resign(ctx))
			if leader, _ := old.Leader(); leader != ready {
				t.Errorf("round %d: %s leads, want %s", round, leader, ready)
			}
			if took := time.Since(start); took > 200*time.Millisecond {
				t.Errorf("round %d: handed over in %s", round, took)
			}
			// A refused transfer must not stop writes.
			if err := c.members[ready].Transfer(ctx, old.name); err == nil {
				t.Error("a member that resigned took the leadership")
			}
			c.propose("y", ready)
			c.members[behind].disk.slow(0)
			c.stop(old.name)
			c.open(old.name)
			c.agree()
		}
	})
}

// Without the refusal the transfer, and all writes, would wait for the election timeout.
func TestLosingCandidateRefusesTransferAtOnce(t *testing.T) {
	inGroup(t, nodeNames(3), nil, func(t *testing.T, c *cluster) {
		time.Sleep(3 * electionDefault)
		old := c.leader()
		rest := c.others(old)
		for _, m := range rest { // both stand for election in the same term: neither has recorded its vote when the other starts
			c.members[m].disk.slow(20 * time.Millisecond)
			go func() { _ = old.timeoutNow(m) }()
		}
		time.Sleep(200 * time.Millisecond)
		winner := c.leader()
		var loser *member
		for _, m := range rest {
			if m != winner.name {
				loser = c.members[m]
			}
		}
		if got := loser.raft.State(); got != raft.Candidate {
			t.Fatalf("the losing candidate is a %s", got)
		}
		start := time.Now()
		if err := winner.Transfer(t.Context(), loser.name); err == nil {
			t.Error("the losing candidate took the leadership")
		}
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("the transfer was refused after %s", took)
		}
		time.Sleep(3 * electionDefault)
		if err := winner.Transfer(t.Context(), loser.name); err != nil {
			t.Errorf("transfer after the election: %v", err)
		}
	})
}

func TestLastMemberResignsAtOnce(t *testing.T) {
	inGroup(t, nodeNames(3), nil, func(t *testing.T, c *cluster) {
		for range 3 {
			var m *member
			for _, m = range c.members {
				if m.raft.State() == raft.Leader {
					break
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			start := time.Now()
			if err := m.Resign(ctx); err != nil && !errors.Is(err, ErrNotMember) && !errors.As(err, new(*NotLeaderError)) {
				t.Errorf("%s resigns: %v", m.name, err)
			}
			cancel()
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("%s needed %s to resign with %d others", m.name, took, len(c.members)-1)
			}
			c.stop(m.name)
		}
	})
}

// A cluster that stops as a whole has nobody to hand over to.
func TestMembersResignTogether(t *testing.T) {
	inGroup(t, nodeNames(3), nil, func(t *testing.T, c *cluster) {
		c.leader()
		time.Sleep(3 * electionDefault)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		var resigning sync.WaitGroup
		for _, m := range c.members {
			resigning.Go(func() {
				if err := m.Resign(ctx); err != nil && !errors.Is(err, ErrNotMember) && !errors.As(err, new(*NotLeaderError)) {
					t.Errorf("%s resigns: %v", m.name, err)
				}
			})
		}
		resigning.Wait()
		if took := time.Since(start); took > time.Second {
			t.Errorf("resigned within %s", took)
		}
	})
}

// Otherwise a second transfer could wait in raft for good, because the leadership is lost before the member is free.
func TestBusyMemberIsOfferedTheLeadOnce(t *testing.T) {
	inGroup(t, nodeNames(3), func(cfg *Config) { cfg.TrailingLogs = 5 }, func(t *testing.T, c *cluster) {
		old := c.leader()
		time.Sleep(3 * electionDefault)
		busy, free := c.others(old)[0], c.others(old)[1]
		c.wires.part(1, busy)
		for range 40 {
			c.propose("x", old.name, free)
		}
		must.Do(t, old.Snapshot())
		c.members[busy].disk.slow(20 * time.Second) // it follows, and installs the snapshot for so long
		c.wires.part(0, busy)
		time.Sleep(2 * time.Second)
		for try := range 3 {
			err := old.Transfer(t.Context(), busy)
			if want := errSilent; err == nil || errors.Is(err, want) != (try > 0) {
				t.Errorf("try %d: %v", try, err)
			}
		}
		must.Do(t, old.timeoutNow(free))
		for old.raft.State() == raft.Leader {
			time.Sleep(100 * time.Millisecond)
		}
		c.members[busy].disk.slow(0)
		time.Sleep(30 * time.Second)
		for _, name := range []id.Member{busy, old.name} {
			must.Do(t, c.leader().Transfer(t.Context(), name))
			c.propose("y")
		}
	})
}

// timeoutNow tells a member to stand for election, as a transfer does.
func (m *member) timeoutNow(to id.Member) error {
	q := raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(m.name), Addr: []byte(m.name)}}
	return m.transport.TimeoutNow(raft.ServerID(to), raft.ServerAddress(to), &q, new(raft.TimeoutNowResponse))
}

func TestLeaderChangeWakesWaiters(t *testing.T) {
	inGroup(t, nodeNames(3), nil, func(t *testing.T, c *cluster) {
		old := c.leader()
		follower := c.members[c.others(old)[0]]
		told := make(chan id.Member)
		go func() {
			for {
				changed := follower.LeaderChanged()
				if leader, known := follower.Leader(); known && leader != old.name {
					told <- leader
					return
				}
				<-changed
			}
		}()
		synctest.Wait()
		must.Do(t, old.Resign(t.Context()))
		if got, want := <-told, c.leader().name; got != want {
			t.Errorf("told of %s, want %s", got, want)
		}
	})
}

func TestWipedNodeIsNotItsFormerMember(t *testing.T) {
	inGroup(t, nodeNames(3), nil, func(t *testing.T, c *cluster) {
		leader := c.leader()
		lost, away := c.others(leader)[0], c.others(leader)[1]
		c.stop(away)
		empty := c.wipe(lost)
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := leader.Propose(ctx, []byte("y")); err == nil {
				t.Error("an empty member's word counts for that of the one whose node it has")
			}
			if _, err := leader.ReadIndex(ctx); err == nil {
				t.Error("an empty member confirms a leader in the name of the one whose node it has")
			}
			cancel()
			time.Sleep(500 * time.Millisecond)
		}
		c.open(away)
		c.propose("z")
		c.addNonvoter(empty)
	})
}
