package metafsm

import (
	"fmt"
	"math"
	"testing"

	"facet/internal/codec"
	"facet/internal/id"
)

// BenchmarkScaleMap plans the map anew after a node was lost. It reports the bytes of the command that
// replaces the map, and of a node's and a grant's record. An entry of the log has at most 256 KiB.
func BenchmarkScaleMap(b *testing.B) {
	f := func(nodes, shards, replicas int) {
		b.Run(fmt.Sprintf("nodes=%d/shards=%d/replicas=%d", nodes, shards, replicas), func(b *testing.B) {
			seats := make([]Seat, nodes)
			for i := range seats {
				node := id.Node{UUID: id.Random([16]byte{byte(i), byte(i >> 8)})}
				seats[i] = Seat{Member: id.NewMember(node, 1), Zone: fmt.Sprint("zone-", i%3)}
			}
			now := Place(seats, shards, replicas)
			var plan []ShardVoters
			for b.Loop() {
				plan = Replan(now, seats[1:], replicas, nil)
			}
			b.ReportMetric(float64(len(PutShardsOp.Encode(PutShards{Previous: 1, Shards: plan}))), "B/map")
		})
	}
	f(64, 64, 3)
	f(192, 64, 3)
	f(192, 1024, 3)
	f(192, 1700, 3)
	f(192, 1024, 5)
	node := Node{
		ID: id.Node{UUID: id.Random([16]byte{1})}, Member: id.NewMember(id.Node{UUID: id.Random([16]byte{1})}, 1),
		Name: "node-192", Joined: math.MaxInt32 << 10, Zone: "zone-1", Level: Level,
	}
	grant := ShardGrant{Shard: 64, Total: math.MaxInt32 / 64, Reclaimed: 4096}
	b.Run("records", func(b *testing.B) {
		var sizes [2]int
		for b.Loop() {
			sizes = [2]int{len(codec.Encode(headNode, node)), len(codec.Encode(headGrants, grant)) - 2} // less the head
		}
		b.ReportMetric(float64(sizes[0]), "B/node")
		b.ReportMetric(float64(sizes[1]), "B/grant")
	})
}
