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

// Transfer hands the leadership to the voter to, and returns when this member no longer
// leads. If to is too slow, another member may have become the leader: ask Leader.
//
// If to is empty, Transfer waits for a voter that answers and has caught up. It returns
// ErrNotMember if there is no other voter or none answers. During the transfer nothing is
// written, and raft gives it up only after Timing.Election. So Transfer first asks whether
// to follows this member.
func (g *Group) Transfer(ctx context.Context, to id.Member) error {
	list, _, err := g.Servers()
	if err != nil {
		return err
	}
	if to == g.cfg.Self {
		return nil
	}
	if to == "" {
		if to, err = (handover{g}).successor(ctx, nil); err != nil {
			return fmt.Errorf("look for a successor: %w", err)
		}
	} else if !slices.Contains(list, Server{Member: to, Voter: true}) {
		return fmt.Errorf("transfer to %s: %w", to, ErrNotMember)
	} else if err := (handover{g}).follows(ctx, to); err != nil {
		return fmt.Errorf("transfer to %s: %w", to, err)
	}
	return handover{g}.transfer(ctx, to)
}

const (
	// successorBehind is the most entries that the next leader may still lack: nothing
	// is written while it receives them.
	successorBehind = 64
	// successorPause is how long the leader waits before it asks the voters again, if none
	// has caught up. If one has caught up, the leader waits as long for the answers of
	// others.
	successorPause = 20 * time.Millisecond
)

// Resign makes this member give up the leadership for good: it hands the leadership that
// it has to a voter that answers and has caught up, and never takes it again. Resign
// returns when another member leads, or at once if this member did not lead. It returns
// an error when ctx ends, and ErrNotMember when no other voter answers or those that
// answer have resigned, too. Call Resign before Close, so that a stop costs no election.
func (g *Group) Resign(ctx context.Context) error {
	g.transport.Resign()
	var failed, resigned []id.Member
	for g.raft.State() == raft.Leader {
		changed := g.LeaderChanged()
		to, err := handover{g}.successor(ctx, slices.Concat(failed, resigned))
		if err == nil {
			if err = (handover{g}).transfer(ctx, to); err == nil {
				return handover{g}.followed(ctx, changed)
			}
			if transport.Resigned(err) {
				resigned = append(resigned, to)
				continue
			}
			failed = append(failed, to) // it was too slow, or has just died
		}
		if errors.Is(err, ErrClosed) || ctx.Err() != nil || to == "" && len(failed) == 0 {
			return err
		}
		if to == "" {
			failed = nil
		}
		g.cfg.Log.InfoContext(ctx, "the leadership was not handed over, trying again", "err", err)
		select {
		case <-time.After(successorPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// offer is a transfer that failed.
type offer struct {
	term uint64 // of the leader
	last uint64 // its last index when the transfer had failed
}

// handover finds the member that takes over from this leader.
type handover struct{ g *Group }

// errSilent is returned for a transfer to a voter that does not follow this leader now, or has not
// caught up since another transfer to it failed.
var errSilent = errors.New("raftfsm: the voter does not answer as a follower")

// follows returns an error if a voter does not follow this leader now.
func (h handover) follows(ctx context.Context, to id.Member) error {
	if h.g.raft.State() != raft.Leader {
		return h.g.notLeader()
	}
	if err := h.g.enter(); err != nil {
		return err
	}
	defer h.g.calls.Done()
	at, ok := h.followers(ctx, []Server{{Member: to}}, 0)[to]
	if !ok || !h.free(to, at) {
		return errors.Join(errSilent, ctx.Err())
	}
	return nil
}

// free reports whether a transfer to a member with the last index at may begin. A transfer asks
// raft's replicator of its target, which has room for one question. If one of this term failed,
// its question may still wait there, and another one would wait in raft for good when the
// leadership is lost meanwhile: raft would then refuse every later command of this process.
// A replicator has room again when its target has what the log had then.
func (h handover) free(to id.Member, at uint64) bool {
	h.g.mu.Lock()
	defer h.g.mu.Unlock()
	o := h.g.offered[to]
	return o.term != h.g.raft.CurrentTerm() || at >= o.last
}

// transfer hands the leadership to the voter to.
func (h handover) transfer(ctx context.Context, to id.Member) error {
	term := h.g.raft.CurrentTerm()
	err := h.g.await(ctx, func(time.Duration) error {
		defer h.g.transport.Hurry(to)()
		err := h.g.raft.LeadershipTransferToServer(raft.ServerID(to), raft.ServerAddress(to)).Error()
		if err != nil {
			// raft accepts no command until it has ended the transfer. The call may return
			// long before that, while an append to the target is still open.
			h.g.mark()
		}
		return err
	})
	if err != nil {
		h.g.mu.Lock()
		h.g.offered[to] = offer{term, h.g.raft.LastIndex()}
		h.g.mu.Unlock()
		return fmt.Errorf("transfer to %s: %w", to, err)
	}
	return nil
}

// followed waits until this member knows the next leader, so that it can name it to
// clients. changed is the channel that LeaderChanged returned before the transfer.
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

// successor returns a voter that follows this leader now, has caught up, and is not in but.
// raft would choose by the log alone, and might choose a member that has just died. Groups
// choose differently (transport.Spread), so that the leaderships of a node don't all move
// to the same other node.
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
			if at+successorBehind >= last && h.free(m, at) {
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

// followers asks the members of list, and returns the last log index of every member that
// follows this leader now. It returns when all have answered. If a member lacks at most
// successorBehind entries of enough, followers waits only successorPause for the others.
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
