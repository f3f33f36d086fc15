//go:build long

package e2e

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/internal/testkit/launch"
)

// oldBinary is the environment variable with the build of facet that the cluster
// runs first. scripts/upgrade.sh sets it.
const oldBinary = "FACET_OLD_BINARY"

// calmTime is how long clients write before and after each replacement.
const calmTime = 3 * time.Second

// The test replaces the software of a cluster node by node while clients write. It
// downgrades one node and upgrades it again.
func TestRollingUpgradeLosesNothing(t *testing.T) {
	old := os.Getenv(oldBinary)
	if old == "" {
		t.Fatalf("%s names no older build: run scripts/upgrade.sh", oldBinary)
	}
	c := serve(t, old, 3, 4)
	k := c.client(t, 200_000) // its gallery lies on all shards
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	all := writeUntil(ctx, t, k, 3)
	time.Sleep(calmTime)
	to := func(n *launch.Node, binary string) {
		t.Helper()
		n.Signal(syscall.SIGTERM)
		c.Binary = binary
		c.start(t, n)
		waitSettled(t, c, len(c.nodes), 10) // the writers go on
		time.Sleep(calmTime)
	}
	to(c.nodes[0], program())
	to(c.nodes[1], program())
	to(c.nodes[1], old) // some nodes are still old: one step back is possible
	to(c.nodes[1], program())
	to(c.nodes[2], program())
	stop()
	want := all()
	if len(want) < 10 {
		t.Fatalf("only %v were written", want)
	}
	t.Logf("%d registrations were acknowledged meanwhile", len(want))
	for node := range c.nodes {
		if d := cmp.Diff(want, k.active(t, node)); d != "" {
			t.Errorf("node %d, - acknowledged, + listed: %s", node, d)
		}
	}
	acknowledged := map[string]bool{}
	for s := range want {
		acknowledged[s] = true
	}
	searchFindsOnly(t, k, []map[string]bool{acknowledged}, []string{encoded(t, biden)})
}

// writeUntil registers with n writers until ctx ends. The returned function waits
// for them and returns the subjects that they registered.
func writeUntil(ctx context.Context, t *testing.T, k *client, n int) func() map[string]int {
	t.Helper()
	wait := write(ctx, k, n, []string{encoded(t, biden)}, false, func(operation) {})
	return func() map[string]int {
		subjects := map[string]int{}
		for _, w := range wait(t) {
			for _, op := range w.done {
				subjects[op.subject]++
			}
		}
		return subjects
	}
}
