package node_test

import (
	"testing"
	"time"

	"facet/internal/id"
	"facet/node/nodetest"
	"facet/node/wire"
)

// TestJoinersDoNotHinderFounding has a node that only joins meet the
// first founder while the second one is not there yet.
func TestJoinersDoNotHinderFounding(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
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
	})
}

// Five of seven founders vote in meta, and the others receive its log.
func TestSevenNodesFoundTogether(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 7, Shards: 1}, func(t *testing.T, c *nodetest.Cluster) {
		eventually(t, c.Nodes[0].Node, "five voters of meta among seven nodes", func(s wire.Status) bool {
			voters := 0
			for _, m := range s.Nodes {
				if votesIn(m, id.Meta) {
					voters++
				}
			}
			return len(s.Nodes) == 7 && voters == 5
		})
	})
}
