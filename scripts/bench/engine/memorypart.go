package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"facet/engine"
	"facet/scripts/bench/table"
)

const (
	memoryGoal    = 1.05 // × of the second quarter
	memoryReports = 20
	memoryPixels  = 250 * 250
)

// memoryPart sends many requests and looks at the node's memory.
func memoryPart(ctx context.Context, o options, _ *engine.Engine) error {
	data, err := readPhoto(o.assets)
	if err != nil {
		return err
	}
	if data, err = resized(data, memoryPixels, 90); err != nil {
		return err
	}
	n, err := startNode(ctx, o, "")
	if err != nil {
		return err
	}
	return errors.Join(measureMemory(ctx, o, n, data), n.close())
}

func measureMemory(ctx context.Context, o options, n *node, data []byte) error {
	c, err := newClient(n.info)
	if err != nil {
		return err
	}
	photo := encoded(data)
	search, err1 := newOperation("/v1.1/face/search", map[string]any{"probe": photo})
	extract, err2 := newOperation("/v1.1/face/extract", map[string]any{"faces": photo})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "\nMemory over %d requests (search and extract in turn)\n", o.requests)
	var used []float64
	for i := range memoryReports {
		if err := many(ctx, c, o.requests/memoryReports, search, extract); err != nil {
			return err
		}
		mb, err := resident(n.pid())
		if err != nil {
			return err
		}
		used = append(used, mb)
		fmt.Fprintf(o.out, "  %7d  %.0f MB\n", (i+1)*o.requests/memoryReports, mb)
	}
	const quarter = memoryReports / 4
	return table.Print(o.out, "Memory", []table.Row{
		{What: "last quarter / second quarter", Value: most(used[3*quarter:]) / most(used[quarter:2*quarter]), Unit: "×", Goal: memoryGoal, Most: true},
	})
}

func most(list []float64) float64 {
	m := list[0]
	for _, v := range list {
		m = max(m, v)
	}
	return m
}

// many sends n requests, the operations in turn, over a few connections.
func many(ctx context.Context, c *client, n int, operations ...operation) error {
	workers := perCore * runtime.GOMAXPROCS(0)
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() {
			var k *connection
			defer func() { k.close() }()
			for i := next.Add(1); i <= int64(n) && errs[w] == nil && ctx.Err() == nil; i = next.Add(1) {
				k, errs[w] = c.persist(k, operations[i%int64(len(operations))])
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}
