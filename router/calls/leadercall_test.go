package calls

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/internal/trace"
	"facet/raftfsm"
)

// noGroups is a node without any replica.
type noGroups struct{ members []id.Member }

func (noGroups) Group(id.Shard) (*raftfsm.Group, bool) { return nil, false }
func (e noGroups) Members(id.Shard) []id.Member        { return e.members }
func (noGroups) Out(id.Shard) bool                     { return false }

// network answers calls by a function of the member called.
type network func(ctx context.Context, to id.Member) ([]byte, error)

func (network) Self() id.Member { return "self" }
func (n network) Call(ctx context.Context, to id.Member, _ string, _ []byte) ([]byte, error) {
	return n(ctx, to)
}

var echo = Method[struct{}, string, string]{"test.echo", func(_ context.Context, _ struct{}, _ id.Shard, q string) (string, error) { return q, nil }}

func newCaller(n network) *Caller {
	return New(Config{Groups: noGroups{[]id.Member{"a", "b", "c"}}, Peers: n, Log: slog.New(slog.DiscardHandler), Meter: &counted{}})
}

func fine(answer string) []byte {
	body, err := wireEnc.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return body
}

func TestCallFindsAndRemembersTheLeader(t *testing.T) {
	t.Parallel()
	var called []id.Member
	c := newCaller(func(_ context.Context, to id.Member) ([]byte, error) {
		called = append(called, to)
		if to != "c" {
			return nil, DecodeFault(EncodeFault(&raftfsm.NotLeaderError{Leader: "c"}))
		}
		return fine("yes"), nil
	})
	for range 2 {
		if got, err := CallLeader(t.Context(), c, echo, 3, "?"); err != nil || got != "yes" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if got := fmt.Sprint(called); got != "[a c c]" {
		t.Errorf("called %s, want a once and then the leader it named", got)
	}
}

// A call succeeds when its first members are dead, or paused with open connections.
func TestCallOutlivesDeadAndPausedLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		leads := func() id.Member {
			if time.Since(start) < 2*time.Second {
				return "a"
			}
			return "b"
		}
		c := newCaller(func(ctx context.Context, to id.Member) ([]byte, error) {
			switch {
			case to == "a": // paused: it takes the request and says nothing
				<-ctx.Done()
				return nil, Unreachable(ctx.Err())
			case to == leads():
				return fine("yes"), nil
			case to == "c":
				return nil, Unreachable(errors.New("connection refused"))
			default:
				return nil, &raftfsm.NotLeaderError{}
			}
		})
		if got, err := CallLeader(t.Context(), c, echo, 3, "?"); err != nil || got != "yes" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// The call ends with Unavailable after leaderWaitMax.
func TestCallWithoutLeaderFailsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCaller(func(context.Context, id.Member) ([]byte, error) { return nil, &raftfsm.NotLeaderError{} })
		start := time.Now()
		_, err := CallLeader(t.Context(), c, echo, 3, "?")
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Kind != Unavailable || e.RetryAfter == 0 {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took < leaderWaitMax || took > leaderWaitMax+time.Second {
			t.Errorf("it took %s, want about %s", took, leaderWaitMax)
		}
	})
}

func TestOtherErrorsAreNotRetried(t *testing.T) {
	t.Parallel()
	calls := 0
	c := newCaller(func(context.Context, id.Member) ([]byte, error) {
		calls++
		return nil, DecodeFault(EncodeFault(Errorf(NotFound, "why", "no such thing")))
	})
	_, err := CallLeader(t.Context(), c, echo, 3, "?")
	if e, ok := errors.AsType[*Error](err); !ok || e.Kind != NotFound || e.Reason != "why" || calls != 1 {
		t.Errorf("got %v after %d calls", err, calls)
	}
}

func TestFaultsKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	for _, want := range []error{raftfsm.ErrOutcomeUnknown, raftfsm.ErrClosed} {
		if got := DecodeFault(EncodeFault(fmt.Errorf("wrapped: %w", want))); !errors.Is(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	// The peer itself had to ask another member, and got no answer.
	for _, is := range []error{context.DeadlineExceeded, context.Canceled, errSlow, Unreachable(errors.New("connection refused"))} {
		if got := DecodeFault(EncodeFault(fmt.Errorf("wrapped: %w", is))); !Again(got) {
			t.Errorf("a peer's %v: got %v, which is not retried", is, got)
		}
	}
	if got := DecodeFault([]byte{0xff}); got == nil {
		t.Error("garbage is no error")
	}
}

func TestOverloadLeavesLinesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := newCaller(func(context.Context, id.Member) ([]byte, error) {
			return nil, DecodeFault(EncodeFault(&raftfsm.NotLeaderError{}))
		})
		c.log = slog.New(slog.NewTextHandler(&log, nil))
		const requests = 500
		var work sync.WaitGroup
		for range requests {
			work.Go(func() {
				if _, err := CallLeader(t.Context(), c, echo, 3, "?"); err == nil {
					t.Error("a group without a leader answered")
				}
			})
		}
		work.Wait()
		for range requests {
			c.logAnswered(t.Context(), "test.echo", 3, slowHelp, nil, nil)
		}
		for _, kind := range []string{"no leader", "slow answer"} {
			if n := strings.Count(log.String(), kind); n == 0 || n > requests/10 {
				t.Errorf("%d requests have %d lines with %q", requests, n, kind)
			}
		}
		time.Sleep(time.Second)
		c.logAnswered(t.Context(), "test.echo", 3, slowHelp, nil, nil)
		if !strings.Contains(log.String(), " omitted=") {
			t.Error("no line says how many were left out")
		}
	})
}

// A member that is not the leader names another one, which has lost its leadership, too.
func TestWaitForLeaderIsStageAfterRedirect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := newCaller(func(_ context.Context, to id.Member) ([]byte, error) {
			switch calls++; {
			case to == "a" && calls == 1:
				return nil, DecodeFault(EncodeFault(&raftfsm.NotLeaderError{Leader: "b"}))
			case calls < 10:
				return nil, DecodeFault(EncodeFault(&raftfsm.NotLeaderError{}))
			}
			return fine("yes"), nil
		})
		ctx, stages := trace.New(t.Context())
		if _, err := CallLeader(ctx, c, echo, 3, "?"); err != nil {
			t.Fatal(err)
		}
		if text := stages.Stages(0); !strings.Contains(text, trace.NoLeader) {
			t.Errorf("stages %q", text)
		}
	})
}
