package node_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"facet/internal/id"
	"facet/node/nodetest"
	"facet/node/wire"
)

func TestReadyWaitsForTemplates(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 4}, func(t *testing.T, cluster *nodetest.Cluster) {
		c, m := cluster.Client("bank"), cluster.Nodes[0]
		gallery(t, c, m.URL, "staff", 1000)
		for i := range 120 {
			enrol(t, c, m.URL, fmt.Sprint(i))
		}
		for range 3 {
			cluster.Stop(0)
			cluster.Restart(0)
			opened := false
			for waiting := true; waiting; time.Sleep(20 * time.Millisecond) {
				select {
				case <-m.Node.Ready():
					waiting = false
				default:
				}
				if status, text := adminGet(t, m, wire.PathReady); status == http.StatusOK {
					opened = true
				} else if opened {
					t.Errorf("after it was ready it says %d %s", status, text)
				}
			}
			held := 0
			for number := range 4 {
				s, here := m.Node.ShardHere(id.Shard(number + 1))
				if !here {
					t.Fatalf("shard %d is not open on a node that is ready", number+1)
				}
				held += s.Slots().Stats().Active
				if cold := s.Cold(); len(cold) > 0 {
					t.Errorf("shard %d of a node that is ready has closed templates: %v", number+1, cold)
				}
			}
			if held != 120 {
				t.Errorf("a node that is ready has %d events of 120", held)
			}
		}
	})
}
