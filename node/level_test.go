package node_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"facet/node"
	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
)

// upgraded starts a node again as software that knows another level.
func upgraded(t *testing.T, c *nodetest.Cluster, i int, level uint32) {
	t.Helper()
	c.Stop(i)
	c.Nodes[i].Config.Level = level
	c.Restart(i)
	c.WaitReady()
}

// waitLevel waits until a node sees the cluster's level, or its records' levels.
func waitLevel(t *testing.T, n *node.Node, what string, want uint32, of func(*node.Node) uint32) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); of(n) != want; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%s is %d, want %d", what, of(n), want)
		}
	}
}

// New forms are used only when all nodes know them, and then for good.
func TestNewFormsWaitForAllNodes(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 4, Founders: 3, Shards: 1, Level: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		c := cluster.Client("bank")
		gallery(t, c, cluster.Nodes[0].URL, "staff", 100)
		recorded := func(n *node.Node) (sum uint32) {
			for _, level := range n.RecordedLevels() {
				sum += level
			}
			return sum
		}
		level := func(n *node.Node) uint32 { return n.Status(t.Context()).Level }
		for i, sum := range []uint32{4, 5} {
			upgraded(t, cluster, i, 2)
			waitLevel(t, cluster.Nodes[i].Node, "the sum of what nodes know", sum, recorded)
			if got := level(cluster.Nodes[i].Node); got != 1 {
				t.Fatalf("with %d of 3 nodes upgraded the level is %d", i+1, got)
			}
			enrol(t, c, cluster.Nodes[2].URL, fmt.Sprint("person ", i))
		}
		// One step back is possible as long as not all have gone forward.
		upgraded(t, cluster, 1, 1)
		waitLevel(t, cluster.Nodes[1].Node, "the sum of what nodes know", 4, recorded)
		upgraded(t, cluster, 1, 2)
		upgraded(t, cluster, 2, 2)
		for i := range 3 {
			waitLevel(t, cluster.Nodes[i].Node, "the level", 2, level)
		}
		cluster.Restart(3)
		select {
		case <-cluster.Nodes[3].Node.Done():
			if err := cluster.Nodes[3].Node.Err(); !errors.Is(err, metafsm.ErrLevel) {
				t.Errorf("an old node that would join stops because of %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("an old node that would join waits for ever")
		}
		upgraded(t, cluster, 3, 2)
		cluster.Stop(0)
		old := cluster.Nodes[0].Config
		old.Level = 1
		if n, err := node.Open(t.Context(), old); !errors.Is(err, metafsm.ErrLevel) {
			t.Errorf("an old node opens the new data: %v, %v", n, err)
		}
		cluster.Restart(0)
		cluster.WaitReady()
		for i := range 2 {
			if got := find(t, c, cluster.Nodes[3].URL, fmt.Sprint("person ", i)); len(got) != 1 {
				t.Errorf("person %d: %v", i, got)
			}
		}
	})
}
