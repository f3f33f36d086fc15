package calls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
)

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

// errUnreachable is returned when a peer gave no answer. It may or may not have
// carried out the request.
var errUnreachable = errors.New("router: peer did not answer")

// Unreachable wraps the error of a call without an answer, so that the caller tries
// again.
func Unreachable(err error) error { return fmt.Errorf("%w: %w", errUnreachable, err) }
