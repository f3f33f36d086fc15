package raftfsm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/id"
	"facet/raftfsm/transport"
)

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
		if to, err = (handover{g}).successor(ctx, nil); err != nil {
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
		to, err := handover{g}.successor(ctx, failed)
		if err == nil {
			if err = g.Transfer(ctx, to); err == nil {
				return handover{g}.followed(ctx, changed)
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

// handover finds the next leader for a group's leader.
type handover struct{ g *Group }

// followed waits until this member knows of another leader: then it can tell who
// asks. changed is LeaderChanged's of before.
func (h handover) followed(ctx context.Context, changed <-chan struct{}) error {
	for {
		if leader, known := h.g.Leader(); known && leader != h.g.cfg.Self {
			return nil
		}
		select {
		case <-changed:
			changed = h.g.LeaderChanged()
		case <-ctx.Done():
			return fmt.Errorf("wait for the next leader: %w", ctx.Err())
		case <-h.g.stop:
			return ErrClosed
		}
	}
}

// successor finds a voter that follows us now and has caught up, but none of those. Raft would choose by
// the log alone, and may choose one that has just died. Groups choose differently
// where they can, so that not all leaderships of a node go to one other.
func (h handover) successor(ctx context.Context, but []id.Member) (id.Member, error) {
	if h.g.raft.State() != raft.Leader {
		return "", h.g.notLeader()
	}
	list, _, err := h.g.Servers()
	if err != nil {
		return "", err
	}
	list = slices.DeleteFunc(list, func(s Server) bool {
		return !s.Voter || s.Member == h.g.cfg.Self || slices.Contains(but, s.Member)
	})
	if err := h.g.enter(); err != nil {
		return "", err
	}
	defer h.g.calls.Done()
	for {
		last := h.g.raft.LastIndex()
		logs := h.followers(ctx, list, last)
		var ready []id.Member
		for m, at := range logs {
			if at+successorBehind >= last {
				ready = append(ready, m)
			}
		}
		if len(ready) > 0 {
			return slices.MinFunc(ready, func(a, b id.Member) int {
				return cmp.Compare(transport.Spread(h.g.cfg.Group, a), transport.Spread(h.g.cfg.Group, b))
			}), nil
		}
		if len(logs) == 0 {
			return "", errors.Join(ErrNotMember, ctx.Err())
		}
		select { // they are on their way
		case <-time.After(successorPause):
		case <-ctx.Done():
			return "", ctx.Err()
		case <-h.g.stop:
			return "", ErrClosed
		}
	}
}

// followers gives how far the logs go of the members of list that follow us now. It
// returns when all have answered, or a little after one that has reached enough.
func (h handover) followers(ctx context.Context, list []Server, enough uint64) map[id.Member]uint64 {
	type answer struct {
		member id.Member
		last   uint64
		ok     bool
	}
	term := h.g.raft.CurrentTerm()
	answers := make(chan answer, len(list))
	for _, s := range list {
		h.g.asks.Go(func() { // ends with its RPC
			last, ok := h.g.transport.Follows(s.Member, term)
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
