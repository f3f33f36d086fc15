package main

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	guessTime    = 5 * time.Second
	guessers     = 8
	guessPause   = 20 * time.Millisecond  // of one bad client
	honestPause  = 100 * time.Millisecond // health is served ten times a second
	failuresFree = 20                     // wrong signatures at once of a key and address
	// slowedBy is the most that a good client's p99 may grow beside bad ones: the machine
	// has two cores, and these clients run on it.
	slowedBy = 250 * time.Millisecond
	// promptly is the longest that a refusal may take: a node must not hold a connection.
	promptly = 2 * time.Second

	timings    = 600
	timingMore = 3   // times as many, when the first ones leave a doubt
	timingMost = 4.5 // |t|
)

// guessing sends wrong signatures.
type guessing struct{ *attack }

// guess sends wrong signatures from one address, as bad clients behind a gateway do,
// beside good clients behind the same gateway.
func (a guessing) guess(c *tally) error {
	v, gateway := a.victim, address{8, 1}
	alone, err := a.honest(c, v.only, gateway)
	if err != nil {
		return err
	}
	for _, bad := range []badClient{
		{"its own key", func(int64) string { return v.biometric.Signer.AccessKey }, true},
		{"the good client's key", func(int64) string { return v.only.Signer.AccessKey }, true},
		{"an unknown key", func(int64) string { return "FACETUNKNOWN00000000" }, true},
		// Each key has a counter of its own. The cluster is asked about many keys at once.
		{"a new unknown key each time", func(n int64) string { return fmt.Sprintf("FACETUNKNOWN%08d", n) }, false},
	} {
		if err := a.beside(c, bad, gateway, alone); err != nil {
			return err
		}
	}
	return a.unproven(c)
}

// badClient sends wrong signatures.
type badClient struct {
	what      string
	accessKey func(n int64) string
	slowed    bool // after its first failures
}

// beside runs bad clients and a good one at one address, and compares the good one's times
// with those that it has alone.
func (a guessing) beside(c *tally, bad badClient, gateway address, alone []time.Duration) error {
	stop, work := make(chan struct{}), sync.WaitGroup{}
	var n, slowed, free, longest atomic.Int64
	for range guessers {
		work.Go(func() {
			l := line{target: a.target, from: gateway}
			defer l.close()
			for {
				select {
				case <-stop:
					return
				case <-time.After(guessPause):
				}
				c.try()
				got, err := l.do(a.sign(0, credentialsOf(bad.accessKey(n.Add(1)), "wrong"), http.MethodGet, "/v1.1/health", nil).raw())
				longest.Store(max(longest.Load(), got.took.Milliseconds())) // one update may be lost
				switch {
				case err == nil && got.status == http.StatusTooManyRequests && got.header.Get("Retry-After") != "":
					slowed.Add(1)
				case err == nil && got.status == http.StatusForbidden:
					free.Add(1)
				default:
					c.got("a wrong signature with %s: %s, %v", bad.what, got, err)
				}
			}
		})
	}
	began := time.Now()
	beside, err := a.honest(c, a.victim.only, gateway)
	close(stop)
	work.Wait()
	if err != nil {
		return err
	}
	c.note("bad client with %s: %d × 403, %d × 429, longest %d ms; good client p50 %s, p99 %s (alone %s, %s)", bad.what, free.Load(), slowed.Load(),
		longest.Load(), short(at(beside, .5)), short(at(beside, .99)), short(at(alone, .5)), short(at(alone, .99)))
	// Tries that are on their way at the twentieth failure are not slowed yet.
	if most := int64(failuresFree + 2*guessers + time.Since(began).Seconds()/3 + 2); bad.slowed && (free.Load() > most || slowed.Load() == 0) {
		c.got("a bad client with %s is not slowed: %d × 403, want at most %d, %d × 429", bad.what, free.Load(), most, slowed.Load())
	}
	if longest.Load() > promptly.Milliseconds() {
		c.got("a refusal took %d ms", longest.Load())
	}
	if late := at(beside, .99); late > at(alone, .99)+slowedBy {
		c.got("a good client beside a bad one with %s: p99 %v, alone %v", bad.what, late, at(alone, .99))
	}
	return nil
}

// honest makes requests of a good client and returns their sorted times. Each must be
// served.
func (a guessing) honest(c *tally, who credentials, from address) (times []time.Duration, err error) {
	l := line{target: a.target, from: from}
	defer l.close()
	for late := time.Now().Add(guessTime); time.Now().Before(late); time.Sleep(honestPause) {
		got, err := l.do(a.sign(0, who, http.MethodGet, "/v1.1/health", nil).raw())
		if err != nil {
			return nil, err
		}
		if got.status != http.StatusOK {
			c.got("a good client was refused: %s", got)
		}
		times = append(times, got.took)
	}
	slices.Sort(times)
	return times, nil
}

// at returns a quantile of sorted times.
func at(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// short returns a time for the table: an answer over loopback takes less than a millisecond.
func short(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// unproven shows the limit of the promise: a client whose key and address failed too often
// before it first proved itself has to wait.
func (a guessing) unproven(c *tally) error {
	gateway := address{8, 2}
	for range failuresFree + 5 {
		c.try()
		if _, err := a.send(1, gateway, a.sign(1, credentialsOf(a.thief.only.Signer.AccessKey, "wrong"), http.MethodGet, "/v1.1/health", nil)); err != nil {
			return err
		}
	}
	got, err := a.send(1, gateway, a.sign(1, a.thief.only, http.MethodGet, "/v1.1/health", nil))
	if err != nil {
		return err
	}
	c.note("a right signature with a key that failed too often at this address before its first success: %d %s", got.status, got.header.Get("Retry-After"))
	other, err := a.send(1, address{8, 3}, a.sign(1, a.thief.only, http.MethodGet, "/v1.1/health", nil))
	if err == nil && other.status != http.StatusOK {
		c.got("the same key at another address: %s", other)
	}
	return err
}

// sample holds the sums of measurements.
type sample struct{ n, sum, squares float64 }

func (s *sample) add(x float64) { s.n, s.sum, s.squares = s.n+1, s.sum+x, s.squares+x*x }

func (s *sample) mean() float64 { return s.sum / s.n }

func (s *sample) variance() float64 { return (s.squares/s.n - s.mean()*s.mean()) * s.n / max(s.n-1, 1) }

// timing compares the times of refusals for known and unknown access keys: they must not
// tell which keys exist.
func (a guessing) timing(c *tally) error {
	r := rand.New(rand.NewPCG(a.seed, 2))
	var known, unknown sample
	t := 0.
	for n := range timings * (1 + timingMore) {
		if n == timings && t < timingMost {
			break
		}
		s, key := &known, a.victim.admin.Signer.AccessKey
		if r.IntN(2) == 0 { // a fixed order would be seen in the gate's intervals
			s, key = &unknown, fmt.Sprintf("%s%08d", a.victim.admin.Signer.AccessKey[:len(a.victim.admin.Signer.AccessKey)-8], n)
		}
		c.try()
		q := a.sign(n%nodes, credentialsOf(key, "wrong"), http.MethodGet, "/v1.1/health", nil)
		l := line{target: a.target, node: n % nodes, from: address{byte(100 + n>>10), byte(n >> 2)}}
		var err error
		if l.conn, err = a.dial(l.node, l.from); err != nil {
			return err
		}
		l.in = bufio.NewReader(l.conn)
		got, err := l.do(q.raw())
		l.close()
		if err != nil || got.status != http.StatusForbidden || !strings.Contains(got.body, "signature") {
			c.got("a wrong signature: %s, %v", got, err)
		}
		s.add(float64(got.took) / float64(time.Millisecond))
		t = math.Abs(known.mean()-unknown.mean()) / math.Sqrt(known.variance()/known.n+unknown.variance()/unknown.n)
	}
	c.note("known %.2f ms, unknown %.2f ms, |t| %.2f", known.mean(), unknown.mean(), t)
	if t >= timingMost {
		c.got("the time tells which access keys exist: known %.2f ms, unknown %.2f ms, |t| %.1f", known.mean(), unknown.mean(), t)
	}
	return nil
}
