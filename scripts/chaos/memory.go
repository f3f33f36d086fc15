package main

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	"facet/cmd/facet/config"
	"facet/internal/testkit/launch"
)

const (
	// ballastOf is how many people nobody changes are enrolled for each shard with -cold: a slice of
	// fewer than some hundred events keeps all exact rows in memory.
	ballastOf = 700
	// squeezeEvery is how long a node has little memory, and how long it then has enough.
	squeezeEvery = 4 * time.Second

	coldMetric, eventsMetric = "facet_memory_templates_on_disk", "facet_memory_events_bytes"
)

// squeezer changes the memory of all nodes again and again, so that exact rows of templates leave it and
// come back.
type squeezer struct {
	cluster *cluster
	gauge   func(p *process, name string) (float64, error)

	mu         sync.Mutex // guards left and back
	left, back int        // rows
}

// memoryFile returns the configuration file of a node, which sets nothing but its memory.
func (p *process) memoryFile() string { return p.Log + ".yaml" }

// giveMemory sets the memory of a node in MiB; 0 is the default.
func (p *process) giveMemory(mib int) error {
	return config.Write(p.memoryFile(), map[string]any{"memory": mib})
}

// run squeezes all nodes until ctx ends, and then gives all of them enough memory.
func (q *squeezer) run(ctx context.Context) error {
	var work sync.WaitGroup
	squeezed := map[*process]bool{}
	for ctx.Err() == nil {
		for _, p := range q.cluster.members() {
			if !squeezed[p] { // a node may have joined
				squeezed[p] = true
				work.Go(func() { q.squeeze(ctx, p) })
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(squeezeEvery):
		}
	}
	work.Wait()
	if q.left == 0 || q.back == 0 {
		return fmt.Errorf("%d exact rows left the memory, and %d came back: the run shows nothing about them", q.left, q.back)
	}
	return nil
}

// squeeze squeezes one node.
func (q *squeezer) squeeze(ctx context.Context, p *process) {
	var of *launch.Process
	before := 0
	for tight := true; ctx.Err() == nil; tight = !tight {
		now := p.Process()
		cold, err := q.gauge(p, coldMetric)
		used, failed := q.gauge(p, eventsMetric)
		if now != nil && err == nil && failed == nil {
			if now == of {
				q.count(int(cold) - before)
			}
			of, before = now, int(cold)
			mib := int(used) >> 20
			if !tight {
				mib = 4 * (mib + 1)
			}
			// It serves the metrics, so SIGHUP does not end it any more.
			if p.giveMemory(max(1, mib)) == nil {
				now.Signal(syscall.SIGHUP)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(squeezeEvery):
		}
	}
	_ = p.giveMemory(0) // else the node refuses registrations for longer
	if now := p.Process(); now != nil && now == of {
		now.Signal(syscall.SIGHUP)
	}
}

func (q *squeezer) count(more int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if more > 0 {
		q.left += more
	} else {
		q.back -= more
	}
}

// squeezed runs a squeezer until stop ends, if the settings want one. The returned function waits for it.
func (s settings) squeezed(stop context.Context, n *nemesis) (wait func() error) {
	if !s.cold {
		return func() error { return nil }
	}
	q, done := &squeezer{cluster: n.cluster, gauge: n.gauge}, make(chan error, 1)
	go func() { done <- q.run(stop) }()
	return func() error {
		err := <-done
		n.say("exact rows: %d left the memory, %d came back", q.left, q.back)
		return err
	}
}
