package raftfsm

import (
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

// Bootstrap sets the first members of a new group. Every first voter calls it with the
// same list. It does nothing on a member that has state.
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
	g.transport.Founded()
	err := g.raft.BootstrapCluster(c).Error()
	if err != nil && !errors.Is(err, raft.ErrCantBootstrap) {
		return fmt.Errorf("bootstrap group %d: %w", g.cfg.Group, err)
	}
	return nil
}

// HasState reports whether this member was ever part of a group.
func (g *Group) HasState() bool {
	has, err := raft.HasExistingState(g.logs, g.stable, g.snapshots)
	return has || err != nil
}

// servers converts a configuration of raft.
func servers(c raft.Configuration) []Server {
	list := make([]Server, 0, len(c.Servers))
	for _, s := range c.Servers {
		list = append(list, Server{Member: id.Member(s.ID), Voter: s.Suffrage == raft.Voter})
	}
	return list
}

// Servers returns the members of the newest configuration that was applied here, and the
// index of that configuration. Before the first is applied, it returns the members by the
// log, and index 0.
func (g *Group) Servers() ([]Server, uint64, error) {
	if err := g.health.Failed(); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrClosed, err)
	}
	if list, index := g.fsm.configuration(); index > 0 {
		return slices.Clone(list), index, nil
	}
	return servers(g.raft.GetConfiguration().Configuration()), 0, nil
}

// Electors returns the voters of the newest configuration in this member's log, whether it
// is committed or not. Raft elects by them. After a start, Servers may be older: a member
// learns from the next leader what is committed.
func (g *Group) Electors() []id.Member {
	var list []id.Member
	for _, s := range servers(g.raft.GetConfiguration().Configuration()) {
		if s.Voter {
			list = append(list, s.Member)
		}
	}
	return list
}

// AddNonvoter adds member to the group without a vote. prevIndex is the index of the
// configuration that the caller has seen (Servers). If the configuration has changed
// since, the error is ErrConfigurationChanged. Only the leader can change the members.
func (g *Group) AddNonvoter(ctx context.Context, member id.Member, prevIndex uint64) error {
	return g.change(ctx, "add non-voter", member, prevIndex, func(wait time.Duration) raft.IndexFuture {
		return g.raft.AddNonvoter(raft.ServerID(member), raft.ServerAddress(member), prevIndex, wait)
	})
}

// AddVoter adds member to the group with a vote, or gives a non-voter a vote. The
// non-voter should have caught up before.
func (g *Group) AddVoter(ctx context.Context, member id.Member, prevIndex uint64) error {
	return g.change(ctx, "add voter", member, prevIndex, func(wait time.Duration) raft.IndexFuture {
		return g.raft.AddVoter(raft.ServerID(member), raft.ServerAddress(member), prevIndex, wait)
	})
}

// Demote takes the vote of a voter, which stays a member and receives the log.
func (g *Group) Demote(ctx context.Context, member id.Member, prevIndex uint64) error {
	return g.change(ctx, "demote", member, prevIndex, func(wait time.Duration) raft.IndexFuture {
		return g.raft.DemoteVoter(raft.ServerID(member), prevIndex, wait)
	})
}

// Remove removes member from the group. A leader that removes itself steps down when the
// removal is committed.
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

// await runs a call into raft, which knows no context, and stops waiting for the call when
// ctx ends. wait is how long raft may take to accept the call.
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
