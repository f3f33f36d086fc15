package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"facet/internal/must"
	"facet/raftfsm/transport"
)

func TestPartitionedGroupLosesNoCommand(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		for i := range 400 {
			c.propose(fmt.Sprint("before ", i))
		}
		old := c.leader()
		rest := c.others(old)
		c.wires.part(1, old.name)
		for i := range 400 {
			c.propose(fmt.Sprint("while cut ", i), rest...)
		}
		time.Sleep(2 * leaseDefault)
		if old.IsLeader() {
			t.Error("the member that was cut off still thinks that it leads")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := old.Propose(ctx, []byte("lost")); !errors.As(err, new(*NotLeaderError)) {
			t.Errorf("propose on the cut member: got %v, want NotLeaderError", err)
		}
		c.wires.part(0, old.name)
		for i := range 200 {
			c.propose(fmt.Sprint("healed ", i))
		}
		c.agree()
		for name, m := range c.members {
			// A command whose answer was lost may be applied twice. None may be missing.
			if got := m.journal.count(); got < 1000 {
				t.Errorf("%s applied %d commands, want at least 1000", name, got)
			}
		}
	})
}

func TestTransferSkipsDeadVoters(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		for range 5 { // whoever leads, and whoever is away
			old := c.leader()
			rest := c.others(old)
			c.stop(rest[0])
			if err := old.Transfer(t.Context(), ""); err != nil {
				t.Errorf("transfer: %v", err)
			}
			if got := c.leader().name; got != rest[1] {
				t.Errorf("%s leads, want %s", got, rest[1])
			}
			c.open(rest[0])
			c.propose("y")
			c.agree()
		}
		last := c.leader()
		if err := last.Transfer(t.Context(), "member-z"); !errors.Is(err, ErrNotMember) {
			t.Errorf("transfer to a stranger: got %v, want ErrNotMember", err)
		}
		for _, name := range c.others(last) {
			c.stop(name)
		}
		if err := last.Transfer(t.Context(), ""); !errors.Is(err, ErrNotMember) && !errors.As(err, new(*NotLeaderError)) {
			t.Errorf("transfer when all others are away: got %v, want ErrNotMember", err)
		}
	})
}

func TestMembersJoinAndLeave(t *testing.T) {
	inGroup(t, names(1), nil, joinAndLeave)
}

func joinAndLeave(t *testing.T, c *cluster) {
	c.open("member-b")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	a, b := c.members["member-a"], c.members["member-b"]
	index := func() uint64 {
		t.Helper()
		at, err := a.ReadIndex(ctx)
		must.Do(t, err)
		must.Do(t, a.WaitApplied(ctx, at))
		_, config, err := a.Servers()
		if err != nil || config == 0 {
			t.Fatalf("servers: index %d, %v", config, err)
		}
		return config
	}
	first := index()
	must.Do(t, a.AddNonvoter(ctx, "member-b", first))
	if err := a.AddVoter(ctx, "member-b", first); !errors.Is(err, ErrConfigurationChanged) {
		t.Errorf("change from an old configuration: got %v, want ErrConfigurationChanged", err)
	}
	if err := a.AddVoter(ctx, "member-b", 0); !errors.Is(err, ErrConfigurationChanged) {
		t.Errorf("change from no configuration: got %v, want ErrConfigurationChanged", err)
	}
	c.agree()
	must.Do(t, a.AddVoter(ctx, "member-b", index()))
	if err := b.AddVoter(ctx, "member-c", 1); !errors.As(err, new(*NotLeaderError)) {
		t.Errorf("change by a follower: got %v, want NotLeaderError", err)
	}
	must.Do(t, a.Transfer(ctx, "member-b"))
	c.propose("y", "member-b")
	c.agree()
	_, config, _ := b.Servers()
	must.Do(t, b.Remove(ctx, "member-a", config))
	c.propose("z", "member-b")
	list, _, err := b.Servers()
	if err != nil || len(list) != 1 || list[0] != (Server{Member: "member-b", Voter: true}) {
		t.Errorf("servers: got %v, %v, want member-b alone", list, err)
	}
}

func TestProposeReportsOutcome(t *testing.T) {
	inGroup(t, names(1), nil, reportOutcomes)
}

func reportOutcomes(t *testing.T, c *cluster) {
	g := c.leader()
	if _, err := g.Propose(t.Context(), make([]byte, CommandBytesMax+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large command: got %v, want ErrTooLarge", err)
	}
	if _, err := g.Propose(t.Context(), make([]byte, CommandBytesMax)); err != nil {
		t.Errorf("the largest command: %v", err)
	}
	release, _ := g.disk.hang()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := g.Propose(ctx, []byte("late"))
	if !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("out of time: got %v, want ErrOutcomeUnknown and DeadlineExceeded", err)
	}
	if err := g.WaitApplied(ctx, 1<<40); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait for an index far away: got %v, want DeadlineExceeded", err)
	}
	release()
	c.propose("after")
	if got := g.journal.count(); got != 4 {
		t.Errorf("applied %d commands, want 4: the late one too", got)
	}
	waited := make(chan error, 1)
	go func() { waited <- g.WaitApplied(t.Context(), 1<<40) }()
	c.stop("member-a")
	if err := <-waited; !errors.Is(err, ErrClosed) {
		t.Errorf("wait while closing: got %v, want ErrClosed", err)
	}
	if _, err := g.Propose(t.Context(), []byte("x")); !errors.As(err, new(*NotLeaderError)) && !errors.Is(err, ErrClosed) {
		t.Errorf("propose after Close: got %v, want NotLeaderError or ErrClosed", err)
	}
	if err := g.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestCloseAnswersEveryProposal(t *testing.T) {
	inGroup(t, names(1), nil, func(t *testing.T, c *cluster) {
		g := c.leader()
		g.disk.slow(50 * time.Millisecond)
		const callers = 200
		errs := make(chan error, callers)
		for i := range callers {
			go func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				_, err := g.Propose(context.Background(), fmt.Append(nil, "c", i))
				errs <- err
			}()
		}
		time.Sleep(callers / 2 * time.Millisecond)
		c.stop("member-a")
		acknowledged := uint64(1)
		for range callers {
			switch err := <-errs; {
			case err == nil:
				acknowledged++
			case !errors.Is(err, ErrClosed) && !errors.As(err, new(*NotLeaderError)):
				t.Errorf("proposal while closing: %v", err)
			}
		}
		if acknowledged == 1 || acknowledged > callers {
			t.Errorf("%d of %d commands were acknowledged, so this shows nothing", acknowledged-1, callers)
		}
		again := c.open("member-a")
		c.agree()
		if got := again.journal.count(); got != acknowledged {
			t.Errorf("%d commands are there, %d were acknowledged", got, acknowledged)
		}
	})
}

func TestCloseIgnoresSilentMembers(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		gone := c.others(c.leader())
		for _, name := range gone {
			c.stop(name)
		}
		// A listener in their place accepts every stream and never answers.
		var mute []transport.StreamLayer
		var held sync.WaitGroup
		for _, name := range gone {
			l := c.wires.listen(string(name))
			mute = append(mute, l)
			held.Go(func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					held.Go(func() {
						io.Copy(io.Discard, conn)
						conn.Close()
					})
				}
			})
		}
		m := slices.Collect(maps.Values(c.members))[0]
		lost := make(chan error, 1)
		go func() { _, err := m.Propose(context.Background(), []byte("without a quorum")); lost <- err }()
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		c.stop(m.name)
		if took := time.Since(start); took > 2*time.Second { // the lease, and a little
			t.Errorf("Close took %s", took)
		}
		if err := <-lost; err == nil {
			t.Error("a command was acknowledged without a quorum")
		}
		for _, l := range mute {
			l.Close()
		}
		held.Wait()
	})
}
