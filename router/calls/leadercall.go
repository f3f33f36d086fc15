package calls

import (
	"context"
	"errors"
	"fmt"
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
	// watchPause is how often a long try checks whether its member still leads.
	watchPause = 100 * time.Millisecond
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
	var none A
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
			a, err := attempt(ctx, c, m, group, member, q)
			if err == nil {
				c.leaders.confirm(group, member)
				last = nil
				return a, nil
			}
			again, elsewhere := c.leaders.learn(group, member, err)
			if !again {
				return none, err
			}
			if last = err; elsewhere && try < redirectsMax {
				continue
			}
		}
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
		if time.Since(start) > leaderWaitMax {
			if omitted, ok := c.leaderless.Next(); ok {
				c.log.WarnContext(ctx, "group has no leader that answers", append([]any{"group", group, "err", last}, omitted...)...)
			}
			return none, noLeader(last)
		}
		if !waits {
			waits = true
			_, waiting = trace.Start(ctx, trace.Stage{Name: trace.NoLeader, Group: group})
		}
		if err := sleep(ctx, pause, changed); err != nil {
			return none, err
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

// attempt tries m once at member.
func attempt[H, Q, A any](ctx context.Context, c *Caller, m Method[H, Q, A], group id.Shard, member id.Member, q Q) (A, error) {
	try, cancel := context.WithTimeout(ctx, attemptMax)
	defer cancel()
	defer c.leaders.watch(try, group, member, cancel)()
	a, err := CallAt(try, c, m, group, member, q)
	if err != nil && try.Err() != nil && ctx.Err() == nil {
		err = errSlow
	}
	return a, err
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

// here carries out m on this node. If its replica is out of service, perhaps since m found a file that
// can't be read, the error wraps raftfsm.ErrClosed: another member may answer.
func (m served[H, Q, A]) here(ctx context.Context, c *Caller, group id.Shard, q Q) (A, error) {
	g, here := c.groups.Group(group)
	a, err := m.Run(ctx, m.host, group, q)
	if leader, again := retryable(err); err == nil || leader != "" || KindOf(err) != 0 || !here && !again {
		return a, err
	}
	if here && raftfsm.Closed(g) != nil || c.groups.Out(group) {
		err = fmt.Errorf("%w: %w", raftfsm.ErrClosed, err)
	}
	return a, err
}

// errSlow is returned when a member gave no answer within attemptMax.
var errSlow = errors.New("router: no answer in time")

// retryable reports whether a retry may succeed after err, at another member or a
// little later at the same one. leader is the member to try, if the error names it.
func retryable(err error) (leader id.Member, again bool) {
	if e, ok := errors.AsType[*raftfsm.NotLeaderError](err); ok {
		return e.Leader, true
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return "", e.Kind == Unavailable
	}
	return "", errors.Is(err, errSlow) || errors.Is(err, errUnreachable) ||
		errors.Is(err, raftfsm.ErrOutcomeUnknown) || errors.Is(err, raftfsm.ErrClosed)
}

// Again reports whether a request may be sent again after err, to the same member or to
// another one.
func Again(err error) bool {
	_, again := retryable(err)
	return again
}

// sleep waits for d, or until changed is closed. A nil changed never is.
func sleep(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
