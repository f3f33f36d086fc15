package node_test

import (
	"fmt"
	"testing"

	"facet/node/nodetest"
)

// BenchmarkScrape is one scrape of a node with 4 or 16 shards, TLS and reading included.
func BenchmarkScrape(b *testing.B) {
	for _, shards := range []int{4, 16} {
		b.Run(fmt.Sprint(shards), func(b *testing.B) {
			c := nodetest.Start(b, nodetest.Options{Shards: shards})
			for b.Loop() {
				scrape(b, c.Nodes[0])
			}
		})
	}
}
