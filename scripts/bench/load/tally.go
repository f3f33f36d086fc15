package load

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"facet/scripts/bench/https"
	"facet/scripts/bench/machine"
)

// Tally counts the requests of a load by their outcome. Its fields may be read when the
// load has ended; Served may be called before.
type Tally struct {
	Good, Refused machine.Sample // from the due time of a request to its answer
	Others        map[string]int
	FirstBad      error
	Dials, Unsent int // new connections; requests that found no connection free
	Elapsed       time.Duration

	mu sync.Mutex
}

func (t *Tally) add(a https.Answer, err error, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil:
		t.other("no answer")
		if t.FirstBad == nil {
			t.FirstBad = err
		}
	case a.Good():
		t.Good = append(t.Good, took)
	case a.Refused():
		t.Refused = append(t.Refused, took)
	default:
		t.other(fmt.Sprint(a.Status))
	}
}

func (t *Tally) other(what string) {
	if t.Others == nil {
		t.Others = map[string]int{}
	}
	t.Others[what]++
}

// Sum returns the number of requests sent.
func (t *Tally) Sum() int {
	n := len(t.Good) + len(t.Refused)
	for _, other := range t.Others {
		n += other
	}
	return n
}

// Rate returns the number of requests served per second.
func (t *Tally) Rate() float64 { return float64(len(t.Good)) / t.Elapsed.Seconds() }

// Served returns the number of requests served so far.
func (t *Tally) Served() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.Good)
}

// AllServed returns an error unless every request was sent and served.
func (t *Tally) AllServed() error {
	if len(t.Good) == t.Sum() && t.Unsent == 0 {
		return nil
	}
	return errors.Join(fmt.Errorf("%d of %d requests served, %d refused, %d not sent, others %v",
		len(t.Good), t.Sum()+t.Unsent, len(t.Refused), t.Unsent, t.Others), t.FirstBad)
}
