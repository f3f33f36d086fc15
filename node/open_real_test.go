package node_test

import (
	"context"
	"errors"
	"testing"

	"facet/node"
	"facet/node/nodetest"

	"go.uber.org/goleak"
)

// Not parallel: goroutines of other tests would be taken for leaks.
func TestCancelledStartLeavesNoGoroutine(t *testing.T) {
	cluster := nodetest.Prepare(t, nodetest.Options{Nodes: 1, Shards: 1, Bucket: "file://" + t.TempDir()})
	before := goleak.IgnoreCurrent()
	// It sleeps for 10 s before it sees that its server has been closed.
	cleaner := goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2")
	for _, last := range node.PartNames() {
		ctx, cancel := context.WithCancel(t.Context())
		n, err := node.OpenTelling(ctx, cluster.Nodes[0].Config, func(name string) {
			if name == last {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || n != nil {
			t.Errorf("cancelled at %s: %v, %v", last, n, err)
		}
		if err := goleak.Find(before, cleaner); err != nil {
			t.Errorf("cancelled at %s: %v", last, err)
		}
	}
	cluster.Restart(0) // what was opened is free again
	cluster.WaitReady()
	cluster.Stop(0)
	if err := goleak.Find(before, cleaner); err != nil {
		t.Errorf("after a stop: %v", err)
	}
}
