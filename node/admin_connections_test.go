package node_test

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"runtime"
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
	t.Parallel()
	c := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 1})
	address := c.Nodes[0].Config.AdminAddress
	const opened, perAddress = 100, 64
	flood := func(from string) {
		t.Helper()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		var held atomic.Int64
		var work sync.WaitGroup
		for range opened {
			conn, err := dialer.DialContext(t.Context(), "tcp", address)
			if err != nil && runtime.GOOS != "linux" {
				t.Skipf("needs the address %s (on macOS: ifconfig lo0 alias %s): %v", from, from, err)
			}
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
	for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
		flood(from)
	}
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	answer, err := client.Get("https://" + address + wire.PathLive)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("liveness during the flood: %d, %v", answer.StatusCode, err)
	}
}
