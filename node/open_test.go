package node_test

import (
	"testing"

	"facet/node/nodetest"
	"facet/node/wire"
)

func TestStatusShowsPartsAndRounds(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
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
	})
}
