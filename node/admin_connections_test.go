package node_test

import (
	"errors"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/node/nodetest"
	"facet/node/wire"
)

// Two addresses open silent connections to the admin port, more than they may have. A
// third address still gets its answer.
func TestAdminConnectionsAreBounded(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, c *nodetest.Cluster) {
		address := c.Nodes[0].Config.AdminAddress
		const opened, perAddress = 100, 64
		flood := func(from string) {
			t.Helper()
			var held atomic.Int64
			var work sync.WaitGroup
			for range opened {
				conn, err := c.Network.Host(from).Dial(t.Context(), address)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = conn.Close() })
				if err := conn.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
					t.Fatal(err)
				}
				work.Go(func() {
					if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
						held.Add(1)
					}
				})
			}
			work.Wait()
			if held.Load() != perAddress {
				t.Errorf("%s holds %d connections of %d, want %d", from, held.Load(), opened, perAddress)
			}
		}
		for _, from := range []string{"10.0.9.2", "10.0.9.3"} {
			flood(from)
		}
		if status, text := adminGet(t, c.Nodes[0], wire.PathLive); status != http.StatusOK {
			t.Errorf("liveness during the flood: %d %s", status, text)
		}
	})
}
