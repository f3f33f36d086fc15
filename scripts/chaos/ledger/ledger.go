package ledger

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"facet/internal/tiles"
	"facet/scripts/chaos/traffic"
)

const (
	purposePrefix = "try "
	lookPause     = 2 * time.Second
)

// unrecorded is a part of the answer that a client gets when a record is not durable in time.
const unrecorded = "audit log did not record the request in time"

// try is one try of a request.
type try struct {
	operation string // method and target
	node      string
	// status is that of the answer, or 0 if none came. id is the answer's request id.
	status   int
	id       string
	withheld bool
	// ended is when the answer came.
	ended time.Time
}

// String describes a try in a problem.
func (t try) String() string {
	return fmt.Sprintf("%s at %s, answered %d at %s with request id %s", t.operation, t.node, t.status, t.ended.Format("15:04:05.000"), t.id)
}

// Ledger has the tries of a tenant's clients, and the checkpoints of its log that an auditor saw.
type Ledger struct {
	auditor traffic.Sender
	// key is of the goroutine that watches, and then of the one that checks.
	key string

	mu          sync.Mutex // guards the fields below
	tries       []try
	checkpoints []tiles.Checkpoint
}

// New returns a Ledger. auditor sends requests with an access key of the tenant's auditor.
func New(auditor traffic.Sender) *Ledger { return &Ledger{auditor: auditor} }

// Sender returns a sender whose tries the ledger has.
func (l *Ledger) Sender(s traffic.Sender) traffic.Sender { return sender{s, l} }

type sender struct {
	traffic.Sender
	*Ledger
}

// Try sends a request once (traffic.Sender).
func (s sender) Try(ctx context.Context, n int, r traffic.Request) (traffic.Answer, error) {
	s.mu.Lock()
	number := len(s.tries)
	s.tries = append(s.tries, try{operation: r.Method + " " + r.Target})
	s.mu.Unlock()
	r.Purpose = purposePrefix + strconv.Itoa(number)
	a, err := s.Sender.Try(ctx, n, r)
	if err != nil {
		return a, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.tries[number]
	t.node, t.status, t.id, t.ended = a.Node, a.Status, a.ID, time.Now()
	t.withheld = a.Status == http.StatusInternalServerError && bytes.Contains(a.Body, []byte(unrecorded))
	return a, nil
}

// numberOf returns the number of the try that a purpose names.
func numberOf(purpose string) (int, bool) {
	text, ok := strings.CutPrefix(purpose, purposePrefix)
	n, err := strconv.Atoi(text)
	return n, ok && err == nil
}

// Watch fetches the log's signed checkpoint from the nodes in turn until ctx ends. Check compares each of
// them with the log. It holds no lock meanwhile: virtual time stands still while a goroutine waits for one.
func (l *Ledger) Watch(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		if err := l.look(ctx, n); err != nil {
			return err
		}
		select {
		case <-time.After(lookPause):
		case <-ctx.Done():
		}
	}
	return nil
}

// look fetches a checkpoint from a node. A node that does not answer is asked later.
func (l *Ledger) look(ctx context.Context, n int) error {
	a, err := l.auditor.Try(ctx, n, traffic.Request{Method: http.MethodGet, Target: "/api/audit/checkpoint"})
	if err != nil || a.Status != http.StatusOK {
		return nil //nolint:nilerr // a broken node gives none
	}
	if l.key == "" {
		key, err := l.auditor.Try(ctx, n, traffic.Request{Method: http.MethodGet, Target: "/api/audit/key"})
		if err != nil || key.Status != http.StatusOK {
			return nil //nolint:nilerr // as above
		}
		l.key = strings.TrimSpace(string(key.Body))
	}
	c, _, err := tiles.Open(a.Body, l.key)
	if err != nil {
		return fmt.Errorf("the checkpoint of %s: %w", a.Node, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checkpoints = append(l.checkpoints, c)
	return nil
}
