package traffic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	// retryPause is the pause between two tries of a request.
	retryPause = 50 * time.Millisecond
	// failedMax is the most failures that are recorded.
	failedMax = 1_000_000
)

// Sender signs requests of one gallery and sends them to the nodes of a cluster. It
// is safe for concurrent use.
type Sender interface {
	// Nodes returns the names of the nodes that belong to the cluster now.
	Nodes() []string
	// Try sends a request once to the n-th of the nodes, modulo their number.
	Try(ctx context.Context, n int, r Request) (Answer, error)
}

// Request is one request.
type Request struct {
	Method, Target string
	Body           any    // JSON; nil for none
	Key            string // its Idempotency-Key, empty for none
	Purpose        string // its signed header x-purpose, empty for none
}

// Answer is the answer of a node.
type Answer struct {
	Status int
	Body   []byte
	Node   string
	ID     string // the request id

	// began is when the try that brought the answer started. tries is the number of
	// tries before it, which got no answer, 5xx or 429. refused is the number of those
	// that got 5xx or 429.
	began          time.Duration
	tries, refused int
}

// errGivenUp is returned when the time ended before there was an answer.
var errGivenUp = errors.New("no answer before the end")

// Insist sends a request to the nodes in turn, starting with node number first, until
// one answers with anything but 408, 429 and 5xx. A node that was paused while it read a
// request answers 408.
func Insist(ctx context.Context, s Sender, first int, r Request) (Answer, error) {
	return insist(ctx, s, first, r, func() time.Duration { return 0 }, func(Failure) {})
}

// Failure is a try of a request that got no answer, or one with 5xx.
type Failure struct {
	Began time.Duration // since the beginning
	Err   error
}

func insist(ctx context.Context, s Sender, first int, r Request, now func() time.Duration, failed func(Failure)) (Answer, error) {
	refused := 0
	for try := 0; ; try++ {
		began := now()
		a, err := s.Try(ctx, first+try, r)
		if err == nil && a.Status < http.StatusInternalServerError && a.Status != http.StatusTooManyRequests && a.Status != http.StatusRequestTimeout {
			a.began, a.tries, a.refused = began, try, refused
			return a, nil
		}
		if err == nil {
			refused++
			err = fmt.Errorf("%s: %d %s", a.Node, a.Status, bytes.TrimSpace(a.Body))
		}
		if a.Status != http.StatusTooManyRequests && ctx.Err() == nil {
			failed(Failure{began, fmt.Errorf("%s %s after %s: %w", r.Method, r.Target, now()-began, err)})
		}
		select {
		case <-ctx.Done():
			return Answer{}, fmt.Errorf("%s %s: %w: %w", r.Method, r.Target, errGivenUp, err)
		case <-time.After(retryPause):
		}
	}
}

// do is Insist with this traffic's clock.
func (t *Traffic) do(ctx context.Context, s Sender, first int, r Request) (Answer, error) {
	return insist(ctx, s, first, r, t.Now, func(f Failure) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(t.Failed) < failedMax {
			t.Failed = append(t.Failed, f)
		}
	})
}

// Now returns the time since the beginning. Each call returns a later time than the one
// before, so that the order of calls shows in virtual time, too.
func (t *Traffic) Now() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tick()
}

// tick does the work of Now. The caller holds mu.
func (t *Traffic) tick() time.Duration {
	t.last = max(t.last+1, time.Since(t.start))
	return t.last
}
