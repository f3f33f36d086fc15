//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// connectionsMax bounds the connections of an open loop: what finds none free is not
// offered, and told.
const connectionsMax = 1000

// tally is what became of a load.
type tally struct {
	mu       sync.Mutex
	good     sample // from when each was due to its answer
	refused  sample
	others   map[string]int
	dials    int
	unsent   int
	elapsed  time.Duration
	firstBad error
}

func (t *tally) add(a answer, err error, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil:
		t.other("no answer")
		if t.firstBad == nil {
			t.firstBad = err
		}
	case a.good():
		t.good = append(t.good, took)
	case a.refused():
		t.refused = append(t.refused, took)
	default:
		t.other(fmt.Sprint(a.status))
	}
}

func (t *tally) other(what string) {
	if t.others == nil {
		t.others = map[string]int{}
	}
	t.others[what]++
}

func (t *tally) sum() int {
	n := len(t.good) + len(t.refused)
	for _, other := range t.others {
		n += other
	}
	return n
}

// rate is of the requests that were served.
func (t *tally) rate() float64 { return float64(len(t.good)) / t.elapsed.Seconds() }

// source has connections of one client.
type source struct {
	client *client
	idle   chan *connection
	slots  chan struct{}
}

func newSource(c *client) *source {
	return &source{client: c, idle: make(chan *connection, connectionsMax), slots: make(chan struct{}, connectionsMax)}
}

func (s *source) close() {
	for {
		select {
		case k := <-s.idle:
			k.close()
		default:
			return
		}
	}
}

// send does one request over a connection that is free, or a new one.
func (s *source) send(t *tally, o operation, due time.Time) {
	var k *connection
	var err error
	select {
	case k = <-s.idle:
	default:
		t.mu.Lock()
		t.dials++
		t.mu.Unlock()
		k, err = s.client.dial(nil)
	}
	var a answer
	if err == nil {
		a, err = k.do(o)
	}
	t.add(a, err, time.Since(due))
	if k == nil {
		return
	}
	if err != nil || a.closes {
		k.close()
		return
	}
	s.idle <- k
}

// closed has n workers that each send one request after the other for a while.
func closed(c *client, o operation, n int, d time.Duration) *tally {
	t, s := new(tally), newSource(c)
	defer s.close()
	var workers sync.WaitGroup
	began := time.Now()
	for range n {
		workers.Go(func() {
			for time.Since(began) < d {
				s.send(t, o, time.Now())
			}
		})
	}
	workers.Wait()
	t.elapsed = time.Since(began)
	return t
}

// served counts the requests that were served so far.
func (t *tally) served() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.good)
}

// open sends requests when they are due, whether earlier ones are answered or not.
func open(ctx context.Context, c *client, o operation, rate float64, d time.Duration) *tally {
	t := new(tally)
	t.open(ctx, c, o, rate, d)
	return t
}

func (t *tally) open(ctx context.Context, c *client, o operation, rate float64, d time.Duration) {
	s := newSource(c)
	defer s.close()
	var sending sync.WaitGroup
	began := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		due := began.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		if due.Sub(began) >= d {
			break
		}
		time.Sleep(time.Until(due))
		select {
		case s.slots <- struct{}{}:
			sending.Go(func() {
				s.send(t, o, due)
				<-s.slots
			})
		default:
			t.unsent++
		}
	}
	t.elapsed = time.Since(began)
	sending.Wait()
}

// lone sends one request after the other for a while and gives their times; every one
// must be served.
func lone(c *client, o operation, pause, d time.Duration) (sample, error) {
	k, err := c.dial(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	defer func() { k.close() }()
	var took sample
	for began := time.Now(); time.Since(began) < d; time.Sleep(pause) {
		due := time.Now()
		a, err := k.do(o)
		if err != nil {
			return nil, err
		}
		if !a.good() {
			return nil, fmt.Errorf("a lone request got %d %s", a.status, a.body)
		}
		took = append(took, time.Since(due))
	}
	if len(took) == 0 {
		return nil, errors.New("no request was made")
	}
	return took, nil
}
