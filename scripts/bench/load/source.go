package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"facet/scripts/bench/https"
	"facet/scripts/bench/machine"
)

// connectionsMax is the most connections of a source. An open loop does not send a
// request that finds no free connection, but counts it.
const connectionsMax = 1000

// Source sends requests of one client to one node, over connections that it keeps.
type Source struct {
	client *https.Client
	url    string
	idle   chan *https.Connection
}

// NewSource returns a source without connections. Close closes the connections that the
// source opens.
func NewSource(c *https.Client, url string) *Source {
	return &Source{client: c, url: url, idle: make(chan *https.Connection, connectionsMax)}
}

// Close closes the connections. None of them may carry a request any more.
func (s *Source) Close() {
	for {
		select {
		case k := <-s.idle:
			k.Close()
		default:
			return
		}
	}
}

// Warm opens n connections.
func (s *Source) Warm(n int) error {
	for range n {
		k, err := s.client.Dial(s.url, nil)
		if err != nil {
			return err
		}
		s.idle <- k
	}
	return nil
}

// Do makes one request over a free connection, or over a new one. dialled reports
// whether the connection is new.
func (s *Source) Do(o https.Operation) (a https.Answer, dialled bool, err error) {
	var k *https.Connection
	select {
	case k = <-s.idle:
	default:
		dialled = true
		if k, err = s.client.Dial(s.url, nil); err != nil {
			return a, dialled, err
		}
	}
	a, err = k.Do(o)
	if err != nil || a.Closes {
		k.Close()
	} else {
		s.idle <- k
	}
	return a, dialled, err
}

// Send makes one request and counts it.
func (s *Source) Send(t *Tally, o https.Operation, due time.Time) {
	a, dialled, err := s.Do(o)
	t.add(a, err, time.Since(due))
	if dialled {
		t.mu.Lock()
		t.Dials++
		t.mu.Unlock()
	}
}

// Closed runs n workers that each send one request after the other for the time d.
func (s *Source) Closed(ctx context.Context, o https.Operation, n int, d time.Duration) *Tally {
	t := new(Tally)
	r, _ := Closed(ctx, n, d, func(int, int) error { // this do never fails
		s.Send(t, o, time.Now())
		return nil
	})
	t.Elapsed = r.Elapsed
	return t
}

// Many sends n requests from several workers, the operations in turn.
func (s *Source) Many(ctx context.Context, operations []https.Operation, workers, n int) *Tally {
	t := new(Tally)
	var next atomic.Int64
	var work sync.WaitGroup
	for range workers {
		work.Go(func() {
			for i := next.Add(1); i <= int64(n) && ctx.Err() == nil; i = next.Add(1) {
				s.Send(t, operations[i%int64(len(operations))], time.Now())
			}
		})
	}
	work.Wait()
	return t
}

// Open sends each request when it is due, whether earlier ones are answered or not, and
// counts it in t.
func (s *Source) Open(ctx context.Context, t *Tally, o https.Operation, due []time.Duration) {
	slots := make(chan struct{}, connectionsMax)
	var sending sync.WaitGroup
	began := time.Now()
	for _, at := range due {
		if ctx.Err() != nil {
			break
		}
		time.Sleep(at - time.Since(began))
		select {
		case slots <- struct{}{}:
			sending.Go(func() {
				s.Send(t, o, began.Add(at))
				<-slots
			})
		default:
			t.Unsent++
		}
	}
	t.Elapsed = time.Since(began)
	sending.Wait()
}

// Alone sends one request after the other for the time d and returns their times. It
// returns an error unless every request is served.
func Alone(c *https.Client, url string, o https.Operation, pause, d time.Duration) (machine.Sample, error) {
	k, err := c.Dial(url, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	defer k.Close()
	var took machine.Sample
	for began := time.Now(); time.Since(began) < d; time.Sleep(pause) {
		err := took.Time(func() error {
			a, err := k.Do(o)
			if err == nil && !a.Good() {
				err = &https.StatusError{Target: o.Target, Answer: a}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(took) == 0 {
		return nil, errors.New("no request was made")
	}
	return took, nil
}

// Even returns the times of arrivals with equal distances.
func Even(rate float64, d time.Duration) []time.Duration {
	return schedule(rate, d, func() float64 { return 1 })
}

// Random returns the times of arrivals of a Poisson process, the same in each run.
func Random(rate float64, d time.Duration) []time.Duration {
	return schedule(rate, d, rand.New(rand.NewPCG(7, 7)).ExpFloat64)
}

func schedule(rate float64, d time.Duration, gap func() float64) (at []time.Duration) {
	for t := 0.0; t < d.Seconds(); t += gap() / rate {
		at = append(at, time.Duration(t*1e9))
	}
	return at
}
