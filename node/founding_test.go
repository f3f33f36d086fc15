package node_test

import (
	"testing"
	"time"

	"facet/node/nodetest"
)

// TestJoinersDoNotHinderFounding has a node that only joins meet the
// first founder while the second one is not there yet.
func TestJoinersDoNotHinderFounding(t *testing.T) {
	t.Parallel()
	c := nodetest.Prepare(t, nodetest.Options{Nodes: 3, Founders: 2, Shards: 1})
	joins := c.Nodes[2]
	joins.Config.Expect = 0
	c.Restart(0)
	c.Restart(2)
	for late := time.Now().Add(20 * time.Second); c.Nodes[0].Node.Seen() < 2 || joins.Node.Seen() < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("the nodes do not meet")
		}
	}
	c.Restart(1)
	c.WaitReady()
}
