package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// outcome is what a load did and cost.
type outcome struct {
	done    int64
	elapsed time.Duration
	cpu     time.Duration // of the measured process
	own     time.Duration // of this process, which asks
}

func (o *outcome) add(m outcome) {
	o.done += m.done
	o.elapsed += m.elapsed
	o.cpu += m.cpu
	o.own += m.own
}

// rate is per second of the clock, perCore per second of processor time.
func (o outcome) rate() float64    { return float64(o.done) / o.elapsed.Seconds() }
func (o outcome) perCore() float64 { return float64(o.done) / o.cpu.Seconds() }

// most is the rate at which both processes would fill the cores, whatever else ran
// meanwhile.
func (o outcome) most(cores int) float64 {
	return float64(cores) * float64(o.done) / (o.cpu + o.own).Seconds()
}

// closedLoop has n workers that each do one after the other for a while, and
// measures the process pid meanwhile.
func closedLoop(d time.Duration, n, pid int, open func() (do func() error, end func(), err error)) (outcome, error) {
	var done atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, n)
	before, err1 := cpu(pid)
	ownBefore, err2 := cpu(os.Getpid())
	if err := errors.Join(err1, err2); err != nil {
		return outcome{}, err
	}
	start := time.Now()
	for i := range n {
		wg.Go(func() {
			do, end, err := open()
			if err != nil {
				errs[i] = err
				return
			}
			defer end()
			for time.Since(start) < d && errs[i] == nil {
				errs[i] = do()
				done.Add(1)
			}
		})
	}
	wg.Wait()
	m := outcome{done: done.Load(), elapsed: time.Since(start)}
	after, err1 := cpu(pid)
	ownAfter, err2 := cpu(os.Getpid())
	m.cpu, m.own = after-before, ownAfter-ownBefore
	return m, errors.Join(append(errs, err1, err2)...)
}

// arrivals says when requests arrive.
type arrivals int

const (
	// even arrivals have equal distances.
	even arrivals = iota
	// random arrivals are a Poisson process.
	random
)

func (a arrivals) schedule(rate float64, d time.Duration) []time.Duration {
	gaps := rand.New(rand.NewPCG(7, 7))
	var at []time.Duration
	for t := 0.0; t < d.Seconds(); {
		at = append(at, time.Duration(t*1e9))
		gap := 1.0
		if a == random {
			gap = gaps.ExpFloat64()
		}
		t += gap / rate
	}
	return at
}

const openConnections = 64

// openLoop sends requests when they are due, whether earlier ones are answered or
// not, and returns how long each took from when it was due.
func openLoop(ctx context.Context, c *client, o operation, due []time.Duration) (sample, error) {
	idle := make(chan *connection, openConnections)
	for range openConnections {
		k, err := c.dial()
		if err != nil {
			return nil, err
		}
		defer k.close()
		idle <- k
	}
	took, errs := make(sample, len(due)), make([]error, len(due))
	var wg sync.WaitGroup
	start := time.Now()
	for i, at := range due {
		time.Sleep(at - time.Since(start))
		var k *connection
		select {
		case k = <-idle:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		wg.Go(func() {
			_, errs[i] = k.do(o)
			took[i] = time.Since(start) - at
			idle <- k
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("open loop: %w", err)
	}
	return took, nil
}

// queue returns the times that requests due then would take at servers that serve
// in order, each for exactly the given time: what no service of this throughput
// can beat.
func queue(due []time.Duration, servers int, service time.Duration) sample {
	free := make([]time.Duration, servers)
	took := make(sample, len(due))
	for i, at := range due {
		next := 0
		for s := range free {
			if free[s] < free[next] {
				next = s
			}
		}
		free[next] = max(free[next], at) + service
		took[i] = free[next] - at
	}
	return took
}
