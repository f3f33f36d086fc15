package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/nodetest"
	"facet/node/transport"
	"facet/node/wire"
)

const (
	// restSettle is the time until leaders have handed over to the members that the map names first.
	restSettle = 15 * time.Second
	restWatch  = 20 * time.Second
)

// meter counts the bytes that nodes send to nodes, TLS and gossip included.
type meter struct {
	transport.OS
	sent *atomic.Int64
}

func (m meter) Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := m.OS.Listen(ctx, address)
	return meteredListener{l, m.sent}, err
}

func (m meter) Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := m.OS.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return meteredConn{c, m.sent}, nil
}

func (m meter) ListenPacket(ctx context.Context, address string) (net.PacketConn, error) {
	c, err := m.OS.ListenPacket(ctx, address)
	return meteredPackets{c, m.sent}, err
}

type meteredListener struct {
	net.Listener
	sent *atomic.Int64
}

func (l meteredListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return meteredConn{c, l.sent}, nil
}

type meteredConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c meteredConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

type meteredPackets struct {
	net.PacketConn
	sent *atomic.Int64
}

func (c meteredPackets) WriteTo(b []byte, to net.Addr) (int, error) {
	n, err := c.PacketConn.WriteTo(b, to)
	c.sent.Add(int64(n))
	return n, err
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bytesIn returns the bytes of the files in a folder.
func bytesIn(b *testing.B, dir string) (sum int64) {
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	must.Do(b, err)
	return sum
}

// BenchmarkScaleAtRest watches a cluster without data, all nodes in this process. The figures are those
// of all nodes together: processor time of a second, bytes sent in a second, goroutines, Go heap and
// stacks; and the bytes of a status. Two lines differ by the replicas of 60 shards, or by nodes.
func BenchmarkScaleAtRest(b *testing.B) {
	for _, of := range []struct{ nodes, shards int }{{3, 4}, {3, 64}, {12, 4}} {
		b.Run(fmt.Sprintf("nodes=%d/shards=%d", of.nodes, of.shards), func(b *testing.B) {
			for b.Loop() {
				before := runtime.NumGoroutine()
				c := nodetest.Prepare(b, nodetest.Options{Nodes: of.nodes, Founders: 3, Shards: of.shards})
				m := meter{sent: new(atomic.Int64)}
				for i := range c.Nodes {
					c.Nodes[i].Config.Network = m
					c.Restart(i)
					if i >= 2 { // the others join
						c.WaitReady()
					}
				}
				time.Sleep(restSettle)
				took, sent := processorTime(b), m.sent.Load()
				time.Sleep(restWatch)
				took, sent = processorTime(b)-took, m.sent.Load()-sent
				status, err := json.Marshal(c.Nodes[0].Node.Status(b.Context()))
				must.Do(b, err)
				runtime.GC()
				var memory runtime.MemStats
				runtime.ReadMemStats(&memory)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(took.Seconds()/restWatch.Seconds(), "cores")
				b.ReportMetric(float64(sent)/restWatch.Seconds()/1e3, "kB/s")
				b.ReportMetric(float64(runtime.NumGoroutine()-before), "goroutines")
				b.ReportMetric(float64(memory.HeapAlloc+memory.StackInuse)/1e6, "MB")
				b.ReportMetric(float64(len(status))/1e3, "kB-status")
				c.Close()
			}
		})
	}
}

// BenchmarkScaleRebuild takes the replicas of events off a node's disk, and reports how long the node takes
// from its start until it votes with all of them again, and the bytes of the replicas. Two lines differ by
// the bytes.
func BenchmarkScaleRebuild(b *testing.B) {
	for _, events := range []int{10_000, 190_000} {
		b.Run(fmt.Sprintf("events=%d", events), func(b *testing.B) {
			c := nodetest.Start(b, nodetest.Options{})
			fillByRegistrations(b, c, events)
			folder := func(number int) string { return filepath.Join(c.Nodes[2].Config.Dir, fmt.Sprint("group-", number)) }
			for b.Loop() {
				c.Stop(2)
				for number := 1; number <= 4; number++ {
					must.Do(b, os.RemoveAll(folder(number)))
				}
				begin := time.Now()
				c.Restart(2)
				c.WaitReady()
				eventually(b, c.Nodes[0].Node, "all replicas of the node vote", allVote)
				took, n := time.Since(begin), int64(0)
				for number := 1; number <= 4; number++ {
					n += bytesIn(b, folder(number))
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(took.Seconds(), "s")
				b.ReportMetric(float64(n)/1e6, "MB")
			}
			c.Close()
		})
	}
}

// allVote reports whether each node votes in shards 1 to 4.
func allVote(s wire.Status) bool {
	for _, m := range s.Nodes {
		for number := id.Shard(1); number <= 4; number++ {
			if !votesIn(m, number) {
				return false
			}
		}
	}
	return !warned(s, "out of service")
}
