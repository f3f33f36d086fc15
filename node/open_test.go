package node_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"facet/node"
	"facet/node/nodetest"
	"facet/node/wire"
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

func TestStatusShowsPartsAndRounds(t *testing.T) {
	t.Parallel()
	cluster := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 1})
	n := cluster.Nodes[0].Node
	eventually(t, n, "a round of each part", func(s wire.Status) bool {
		rounds := map[string]bool{}
		for _, p := range s.Nodes[0].Parts {
			rounds[p.Name] = p.Running && !p.Last.IsZero() && p.Error == ""
		}
		for _, name := range []string{"access", "audit", "audit logs", "checks", "claims", "codes", "controller", "expiry", "identity", "keys", "limits", "links", "merges", "purges", "rollbacks", "room", "rounds of erasure", "sizes", "uses of keys", "warmer"} {
			if !rounds[name] {
				return false
			}
		}
		return len(rounds) == 20
	})
}
