package calls

import (
	"context"
	"errors"
	"time"

	"facet/internal/id"
	"facet/internal/trace"
	"facet/raftfsm"
)

const (
	// leaderWaitMax is the longest time that a request waits for a group to have a
	// leader.
	leaderWaitMax = 5 * time.Second
	// attemptMax is the longest time for one try at one member. A paused leader
	// keeps its connections, but the group has another leader long before the
	// deadline.
	attemptMax = 4 * time.Second
	// LeaderMax is about the longest time of a call to a leader.
	LeaderMax = leaderWaitMax + attemptMax
	// The pause between tries grows from retryPauseMin to retryPauseMax.
	retryPauseMin = 5 * time.Millisecond
	retryPauseMax = 150 * time.Millisecond
	// redirectsMax is the most times that a leader named by another member is
	// called without a pause.
	redirectsMax = 3
	// RetryLater is the Retry-After when a group has no leader.
	RetryLater = 2 * time.Second
	// RetryBusy is the Retry-After when a group has too many commands in progress.
	RetryBusy = time.Second
)

// CallLeader carries out m at the leader of group, on this node or on a peer. It
// searches for the leader until leaderWaitMax has passed without one. It may carry
// out m twice. Reads have no effect, and the shards remember the outcome of a write
// by its operation.
func CallLeader[H, Q, A any](ctx context.Context, c *Caller, m Method[H, Q, A], group id.Shard, q Q) (A, error) {
	var a, none A
	err := c.lead(ctx, group, func(ctx context.Context, member id.Member) (err error) {
		a, err = CallAt(ctx, c, m, group, member, q)
		return err
	})
	if err != nil {
		return none, err
	}
	return a, nil
}

// lead calls call with members of group until one of them, the leader, gives no error.
func (c *Caller) lead(ctx context.Context, group id.Shard, call func(context.Context, id.Member) error) error {
	var last error
	pause := retryPauseMin
	start := time.Now()
	var waiting trace.Running
	waits := false
	defer func() { waiting.End(last) }()
	for try := 0; ; try++ {
		changed := c.leaders.changed(group)
		member, known := c.leaders.guess(group, try)
		if known {
			err := c.attempt(ctx, group, member, call)
			if err == nil {
				c.leaders.confirm(group, member)
				last = nil
				return nil
			}
			again, elsewhere := c.leaders.learn(group, member, err)
			if !again {
				return err
			}
			if last = err; elsewhere && try < redirectsMax {
				continue
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(start) > leaderWaitMax {
			if omitted, ok := c.leaderless.Next(); ok {
				c.log.WarnContext(ctx, "group has no leader that answers", append([]any{"group", group, "err", last}, omitted...)...)
			}
			return noLeader(last)
		}
		if !waits {
			waits = true
			_, waiting = trace.Start(ctx, trace.Stage{Name: trace.NoLeader, Group: group})
		}
		if err := sleep(ctx, pause, changed); err != nil {
			return err
		}
		pause = min(2*pause, retryPauseMax)
	}
}

// noLeader returns the error for the client when leaderWaitMax has passed. last is that of the last
// try.
func noLeader(last error) error {
	message := "a part of the service has no leader; try again"
	if errors.Is(last, raftfsm.ErrClosed) {
		message = "a part of the service is out of service; try again, and tell the service's operators if it stays so"
	}
	return &Error{Kind: Unavailable, Message: message, RetryAfter: RetryLater}
}

// attempt tries call once at member.
func (c *Caller) attempt(ctx context.Context, group id.Shard, member id.Member, call func(context.Context, id.Member) error) error {
	try, cancel := context.WithTimeout(ctx, attemptMax)
	defer cancel()
	defer c.leaders.watch(try, group, member, cancel)()
	err := call(try, member)
	if err != nil && try.Err() != nil && ctx.Err() == nil {
		err = errSlow
	}
	return err
}

// CallAt carries out m at member, which may be this node.
func CallAt[H, Q, A any](ctx context.Context, c *Caller, m Method[H, Q, A], group id.Shard, member id.Member, q Q) (A, error) {
	ctx, call := trace.Start(ctx, trace.Stage{Name: trace.Call, Method: m.Name, Group: group, Member: member})
	a, err := callAt(ctx, c, m, group, member, q)
	call.End(err)
	return a, err
}

func callAt[H, Q, A any](ctx context.Context, c *Caller, m Method[H, Q, A], group id.Shard, member id.Member, q Q) (A, error) {
	if member == c.peers.Self() {
		here, ok := c.methods[m.Name].(served[H, Q, A])
		if !ok {
			panic("bug: router: nobody carries out " + m.Name)
		}
		return here.here(ctx, c, group, q)
	}
	return CallMember(ctx, c, m, group, member, q)
}
