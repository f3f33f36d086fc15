package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"facet/scripts/bench/https"
	"facet/scripts/bench/machine"
)

// The statuses of a search that finds somebody, and of one that finds nobody.
const (
	statusFound = http.StatusOK
	statusNone  = http.StatusNotFound
)

func wordsOf(answer []byte) []string { return strings.Split(string(answer), `"`) }

// result is what a load took.
type result struct {
	times   machine.Sample
	elapsed time.Duration
}

func (r *result) rate() float64 { return float64(len(r.times)) / r.elapsed.Seconds() }

// closed has n workers that each do one thing after the other for a while. do gets the
// worker's number and how many it has done. The first error ends all.
func closed(ctx context.Context, n int, d time.Duration, do func(worker, i int) error) (r result, err error) {
	var mu sync.Mutex
	var workers sync.WaitGroup
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	began := time.Now()
	for w := range n {
		workers.Go(func() {
			var times machine.Sample
			for i := 0; ctx.Err() == nil; i++ {
				begin := time.Now()
				if failure := do(w, i); failure != nil {
					mu.Lock()
					err = failure
					mu.Unlock()
					cancel()
					return
				}
				times = append(times, time.Since(begin))
			}
			mu.Lock()
			r.times = append(r.times, times...)
			mu.Unlock()
		})
	}
	workers.Wait()
	r.elapsed = time.Since(began)
	return r, err
}

// clients are connections to all nodes, one to each for every worker.
type clients struct {
	urls  []string
	conns [][]*https.Connection
}

func dialAll(c *https.Client, urls []string, workers int) (*clients, error) {
	k := &clients{urls: urls}
	for range workers {
		var mine []*https.Connection
		for _, url := range urls {
			conn, err := c.Dial(url, nil)
			if err != nil {
				k.close()
				return nil, err
			}
			mine = append(mine, conn)
		}
		k.conns = append(k.conns, mine)
	}
	return k, nil
}

// do sends a worker's request to the next node.
func (k *clients) do(worker, i int, o https.Operation) (https.Answer, error) {
	return k.conns[worker][(worker+i)%len(k.urls)].Do(o)
}

func (k *clients) close() {
	for _, mine := range k.conns {
		for _, conn := range mine {
			conn.Close()
		}
	}
}
