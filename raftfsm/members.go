package raftfsm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/id"
	"facet/raftfsm/transport"
)

// Bootstrap gives a new group its first members. Every first voter calls it with
// the same list; where there is state already it does nothing.
func (g *Group) Bootstrap(first []Server) error {
	if err := g.enter(); err != nil {
		return err
	}
	defer g.calls.Done()
	list := slices.Clone(first)
	slices.SortFunc(list, func(a, b Server) int { return strings.Compare(string(a.Member), string(b.Member)) })
	var c raft.Configuration
	for _, s := range list {
		suffrage := raft.Nonvoter
		if s.Voter {
			suffrage = raft.Voter
		}
		c.Servers = append(c.Servers, raft.Server{
			Suffrage: suffrage, ID: raft.ServerID(s.Member), Address: raft.ServerAddress(s.Member),
		})
	}
	err := g.raft.BootstrapCluster(c).Error()
	if err != nil && !errors.Is(err, raft.ErrCantBootstrap) {
		return fmt.Errorf("bootstrap group %d: %w", g.cfg.Group, err)
	}
	return nil
}

// HasState tells whether this member was ever part of a group.
func (g *Group) HasState() bool {
	has, err := raft.HasExistingState(g.logs, g.stable, g.snapshots)
	return has || err != nil
}

// servers gives raft's configuration as ours.
func servers(c raft.Configuration) []Server {
	list := make([]Server, 0, len(c.Servers))
	for _, s := range c.Servers {
		list = append(list, Server{Member: id.Member(s.ID), Voter: s.Suffrage == raft.Voter})
	}
	return list
}

// Servers gives the members by the newest configuration that was applied here, and
// its index. Before the first one is, it gives what the log says, and index 0.
func (g *Group) Servers() ([]Server, uint64, error) {
	if err := g.health.Failed(); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrClosed, err)
	}
	if list, index := g.fsm.configuration(); index > 0 {
		return slices.Clone(list), index, nil
	}
	return servers(g.raft.GetConfiguration().Configuration()), 0, nil
}

// AddNonvoter makes member a member without a vote. prevIndex is the index of the
// configuration that the caller has seen (Servers): after any other change the
// error is ErrConfigurationChanged. Leader only, like all changes of members.
func (g *Group) AddNonvoter(ctx context.Context, member id.Member, prevIndex uint64) error {
	return g.change(ctx, "add non-voter", member, prevIndex, func(wait time.Duration) raft.IndexFuture {
		return g.raft.AddNonvoter(raft.ServerID(member), raft.ServerAddress(member), prevIndex, wait)
	})
}

// AddVoter gives member a vote, whether or not it is a member already. Let a
// non-voter catch up first.
func (g *Group) AddVoter(ctx context.Context, member id.Member, prevIndex uint64) error {
	return g.change(ctx, "add voter", member, prevIndex, func(wait time.Duration) raft.IndexFuture {
		return g.raft.AddVoter(raft.ServerID(member), raft.ServerAddress(member), prevIndex, wait)
	})
}

// Demote takes a voter's vote; it stays a member that receives the log.
func (g *Group) Demote(ctx context.Context, member id.Member, prevIndex uint64) error {
	return g.change(ctx, "demote", member, prevIndex, func(wait time.Duration) raft.IndexFuture {
		return g.raft.DemoteVoter(raft.ServerID(member), prevIndex, wait)
	})
}

// Remove takes member out of the group. A leader that removes itself steps down
// once that is committed.
func (g *Group) Remove(ctx context.Context, member id.Member, prevIndex uint64) error {
	return g.change(ctx, "remove", member, prevIndex, func(wait time.Duration) raft.IndexFuture {
		return g.raft.RemoveServer(raft.ServerID(member), prevIndex, wait)
	})
}

func (g *Group) change(ctx context.Context, what string, member id.Member, prevIndex uint64,
	request func(wait time.Duration) raft.IndexFuture,
) error {
	if prevIndex == 0 { // raft takes 0 for "whatever it is now"
		return fmt.Errorf("%s %s: no configuration index: %w", what, member, ErrConfigurationChanged)
	}
	err := g.await(ctx, func(wait time.Duration) error { return request(wait).Error() })
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, member, err)
	}
	return nil
}

// Transfer hands the leadership to a voter and returns when this member no longer
// leads. The new leader may be another one if to was too slow: ask Leader. An empty
// to stands for a voter that answers and has caught up, which is waited for; when
// there is no other voter, or none answers, the error is ErrNotMember. From the
// moment that a voter is chosen nothing is written until the new leader is there.
func (g *Group) Transfer(ctx context.Context, to id.Member) error {
	list, _, err := g.Servers()
	if err != nil {
		return err
	}
	if to == "" {
		if to, err = g.successor(ctx, nil); err != nil {
			return fmt.Errorf("look for a successor: %w", err)
		}
	}
	if !slices.Contains(list, Server{Member: to, Voter: true}) {
		return fmt.Errorf("transfer to %s: %w", to, ErrNotMember)
	}
	if to == g.cfg.Self {
		return nil
	}
	err = g.await(ctx, func(time.Duration) error {
		defer g.transport.Hurry(to)()
		err := g.raft.LeadershipTransferToServer(raft.ServerID(to), raft.ServerAddress(to)).Error()
		if err != nil {
			// Raft takes no command until its part of a transfer has ended, which may wait for
			// an append to the target long after it has said so: none may be held before.
			g.mark()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("transfer to %s: %w", to, err)
	}
	return nil
}

const (
	// successorBehind is how many entries a voter that is to lead may have to catch
	// up: nothing is written meanwhile.
	successorBehind = 64
	// successorPause is how long it takes until voters that have not caught up are
	// asked again, and how long answers are waited for when one has.
	successorPause = 20 * time.Millisecond
)

// Resign gives the leadership to others, now and for good: a leadership that this
// member has goes to a voter that answers and has caught up, and it takes none any
// more. It returns when another leads, or when this member did not, or with an error
// when ctx ends or nobody else answers. Call it before Close, so that a stop costs no
// election.
func (g *Group) Resign(ctx context.Context) error {
	g.transport.Resign()
	var failed []id.Member
	for g.raft.State() == raft.Leader {
		changed := g.LeaderChanged()
		to, err := g.successor(ctx, failed)
		if err == nil {
			if err = g.Transfer(ctx, to); err == nil {
				return g.followed(ctx, changed)
			}
			failed = append(failed, to) // it was too slow, or has just died, or stops as well
		}
		if errors.Is(err, ErrClosed) || ctx.Err() != nil || to == "" && len(failed) == 0 {
			return err
		}
		if to == "" {
			failed = nil
		}
		g.cfg.Log.Info("the leadership was not handed over, trying again", "err", err)
		select {
		case <-time.After(successorPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// followed waits until this member knows of another leader: then it can tell who
// asks. changed is LeaderChanged's of before.
func (g *Group) followed(ctx context.Context, changed <-chan struct{}) error {
	for {
		if leader, known := g.Leader(); known && leader != g.cfg.Self {
			return nil
		}
		select {
		case <-changed:
			changed = g.LeaderChanged()
		case <-ctx.Done():
			return fmt.Errorf("wait for the next leader: %w", ctx.Err())
		case <-g.stop:
			return ErrClosed
		}
	}
}

// successor finds a voter that follows us now and has caught up, but none of those. Raft would choose by
// the log alone, and may choose one that has just died. Groups choose differently
// where they can, so that not all leaderships of a node go to one other.
func (g *Group) successor(ctx context.Context, but []id.Member) (id.Member, error) {
	if g.raft.State() != raft.Leader {
		return "", g.notLeader()
	}
	list, _, err := g.Servers()
	if err != nil {
		return "", err
	}
	list = slices.DeleteFunc(list, func(s Server) bool {
		return !s.Voter || s.Member == g.cfg.Self || slices.Contains(but, s.Member)
	})
	if err := g.enter(); err != nil {
		return "", err
	}
	defer g.calls.Done()
	for {
		last := g.raft.LastIndex()
		logs := g.followers(ctx, list, last)
		var ready []id.Member
		for m, at := range logs {
			if at+successorBehind >= last {
				ready = append(ready, m)
			}
		}
		if len(ready) > 0 {
			return slices.MinFunc(ready, func(a, b id.Member) int {
				return cmp.Compare(transport.Spread(g.cfg.Group, a), transport.Spread(g.cfg.Group, b))
			}), nil
		}
		if len(logs) == 0 {
			return "", errors.Join(ErrNotMember, ctx.Err())
		}
		select { // they are on their way
		case <-time.After(successorPause):
		case <-ctx.Done():
			return "", ctx.Err()
		case <-g.stop:
			return "", ErrClosed
		}
	}
}

// followers gives how far the logs go of the members of list that follow us now. It
// returns when all have answered, or a little after one that has reached enough.
func (g *Group) followers(ctx context.Context, list []Server, enough uint64) map[id.Member]uint64 {
	type answer struct {
		member id.Member
		last   uint64
		ok     bool
	}
	term := g.raft.CurrentTerm()
	answers := make(chan answer, len(list))
	for _, s := range list {
		g.asks.Go(func() { // ends with its RPC
			last, ok := g.transport.Follows(s.Member, term)
			answers <- answer{s.Member, last, ok}
		})
	}
	logs := make(map[id.Member]uint64)
	var late <-chan time.Time
	for range list {
		select {
		case a := <-answers:
			if a.ok {
				logs[a.member] = a.last
			}
			if a.ok && a.last+successorBehind >= enough && late == nil {
				late = time.After(successorPause)
			}
		case <-late:
			return logs
		case <-ctx.Done():
			return logs
		}
	}
	return logs
}

// await runs a call into raft that knows no context, and stops waiting for it when
// ctx ends. wait is how long raft may take to begin.
func (g *Group) await(ctx context.Context, call func(wait time.Duration) error) error {
	if g.raft.State() != raft.Leader {
		return g.notLeader()
	}
	wait := transport.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline))
	}
	if wait <= 0 || ctx.Err() != nil {
		return context.DeadlineExceeded
	}
	if err := g.enter(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { // owned by calls
		defer g.calls.Done()
		done <- call(wait)
	}()
	select {
	case err := <-done:
		if err == nil {
			return nil
		}
		if strings.HasPrefix(err.Error(), "configuration changed since") { // raft has no value for it
			return fmt.Errorf("%w: %w", ErrConfigurationChanged, err)
		}
		return g.outcome(err)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, ctx.Err())
	case <-g.health.Broken():
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, ErrClosed)
	}
}
