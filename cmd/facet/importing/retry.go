package importing

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"facet.internal/client"
)

const (
	// rowTries is how often one request is sent while others succeed, beside those that
	// get 429.
	rowTries = 12
	// stallMax is how long an import goes on without a good answer.
	stallMax               = 2 * time.Minute
	backoffMin, backoffMax = 100 * time.Millisecond, 5 * time.Second
	// stallShown is how long no request has had a final answer when the progress says why.
	stallShown = 5 * time.Second
)

// temporary reports whether another try of a request may succeed.
func temporary(err error) bool {
	e, answered := errors.AsType[*client.Error](err)
	if !answered {
		return true // no answer
	}
	if e.Reason == "Quota" && e.RetryAfter == 0 {
		return false
	}
	return e.Status >= http.StatusInternalServerError || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

// openError is a request's error that leaves its outcome unknown.
type openError struct{ err error }

// Error returns the text of the cause, and what to do.
func (e *openError) Error() string { return e.err.Error() + ": the same command goes on" }

// Unwrap returns the cause.
func (e *openError) Unwrap() error { return e.err }

func isOpen(err error) bool {
	_, open := errors.AsType[*openError](err)
	return open
}

// stranger reports whether err rejects a node's certificate.
func stranger(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// hopeless reports whether err is the same for every further row.
func hopeless(err error) bool {
	if stranger(err) || errors.Is(err, errNoExternalIDs) {
		return true
	}
	e, answered := errors.AsType[*client.Error](err)
	return answered && (errors.Is(e, client.ErrGalleryFull) || errors.Is(e, client.ErrForbidden) || e.Reason == "Quota" && e.RetryAfter == 0)
}

// sender sends requests until they have an answer. It is safe for concurrent use.
type sender struct {
	nodes    int // of the client
	words    func(error) error
	gate     *gate
	answered atomic.Int64           // when a request was last answered, Unix nanoseconds
	why      atomic.Pointer[string] // the last refusal since then, in words
	stop     context.CancelCauseFunc
}

// begin sets what the requests of an import need, but for stop.
func (s *sender) begin(cfg Config) {
	s.nodes, s.words, s.gate = len(cfg.Client.BaseURLs), cfg.Words, newGate(len(cfg.Client.BaseURLs), cfg.AtOnce)
	s.answered.Store(time.Now().UnixNano())
}

// insist sends a request until its answer is final. The client takes another node for
// each try. An *openError says that no answer is final.
func (s *sender) insist(ctx context.Context, send func(context.Context) error) error {
	tried := 0 // without those that a busy service refused
	for try := 1; ; try++ {
		err := send(ctx)
		if err == nil || !temporary(err) {
			s.why.Store(nil)
			s.answered.Store(time.Now().UnixNano())
			return err
		}
		if ctx.Err() != nil {
			return &openError{context.Cause(ctx)}
		}
		why := s.reason(err)
		s.why.Store(&why)
		if stranger(err) && try >= s.nodes {
			return err
		}
		if s.silence() > stallMax {
			stalled := fmt.Errorf("no node has taken a photo for %v: %w", stallMax, s.words(err))
			s.stop(stalled)
			return &openError{stalled}
		}
		if !errors.Is(err, client.ErrBusy) {
			tried++
		}
		if tried == rowTries {
			return &openError{s.words(err)}
		}
		s.wait(ctx, try, err)
	}
}

// silence returns how long no request has had a final answer.
func (s *sender) silence() time.Duration { return time.Since(time.Unix(0, s.answered.Load())) }

// stall is how long nothing has been answered finally, and why. Without why there is none.
type stall struct {
	lasted time.Duration
	why    string
}

// stall returns the present stall, for the progress.
func (s *sender) stall() stall {
	why, silence := s.why.Load(), s.silence()
	if why == nil || silence < stallShown {
		return stall{}
	}
	return stall{silence, *why}
}

// reason returns a temporary error in words that are the same for each request.
func (s *sender) reason(err error) string {
	if e, answered := errors.AsType[*client.Error](err); answered {
		return strings.TrimSuffix(s.words(err).Error(), " (request "+e.RequestID+")")
	}
	dial, ok := errors.AsType[*net.OpError](err)
	if cause, known := errors.AsType[syscall.Errno](err); ok && known && dial.Addr != nil {
		return fmt.Sprintf("%v does not answer: %v", dial.Addr, cause)
	}
	return "a node does not answer: " + err.Error()
}

// wait pauses before the next try: at least as long as the service asks, and longer each time.
func (s *sender) wait(ctx context.Context, try int, err error) {
	pause, least := min(backoffMin<<min(try, 10), backoffMax), time.Duration(0)
	e, answered := errors.AsType[*client.Error](err)
	switch {
	case answered && errors.Is(e, client.ErrBusy):
		s.gate.busy()
		least = e.RetryAfter
	case answered:
		least = e.RetryAfter
	case try <= s.nodes:
		pause = 2 // at once, at another node
	}
	select {
	case <-time.After(max(least, pause/2) + rand.N(pause/2)):
	case <-ctx.Done():
	}
}
