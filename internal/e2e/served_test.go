package e2e

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"facet/cmd/facet/dev"
	"facet/internal/must"
	"facet/internal/ports"
	"facet/internal/testkit/launch"
	"facet/node/wire"
)

// served is a cluster of `facet serve` processes, as an operator runs one. It has
// any size and no tenant at first.
type served struct {
	launch.Cluster
	nodes   []*launch.Node
	tenants int // number of tenants created
}

// serve founds a cluster and waits until it is healthy.
func serve(t *testing.T, binary string, nodes, shards int, extra ...string) *served {
	t.Helper()
	c := &served{Cluster: launch.Cluster{Dir: t.TempDir(), Binary: binary, Founders: nodes, Shards: shards, Args: extra}}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			n.Signal(syscall.SIGKILL)
			if t.Failed() {
				t.Logf("end of %s's log:\n%s", n.Name, launch.Tail(n.Log))
			}
		}
	})
	must.Do(t, c.Open("e2e"))
	for range nodes {
		c.add(t)
	}
	for _, n := range c.nodes {
		c.start(t, n)
	}
	c.waitWhole(t)
	return c
}

// facet runs a command, which must succeed.
func (c *served) facet(t *testing.T, args ...string) string {
	t.Helper()
	out, err := facet(args...)
	if err != nil {
		t.Fatalf("facet %v: %v\n%s", args, err, out)
	}
	return out
}

// running returns the nodes that run.
func (c *served) running() []*launch.Node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(n *launch.Node) bool { return n.Process() == nil })
}

// where returns the flags that name the cluster for a command.
func (c *served) where() []string { return c.Where(c.running()) }

// add adds a node with an empty disk. It does not start the node.
func (c *served) add(t *testing.T) *launch.Node {
	t.Helper()
	n := &launch.Node{Name: fmt.Sprintf("n%d", len(c.nodes)+1), Founder: len(c.nodes) < c.Founders}
	must.Do(t, c.Prepare(n))
	c.nodes = append(c.nodes, n)
	return n
}

func (c *served) start(t *testing.T, n *launch.Node) {
	t.Helper()
	must.Do(t, c.Run(n, c.nodes, starter.Start))
}

// freeAddress returns an address of loopback that no other process of these tests gets.
func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := ports.Take(1)
	must.Do(t, err)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(free[0]))
}

// waitWhole waits until the running nodes answer and all groups have a leader and
// no lag.
func (c *served) waitWhole(t *testing.T) {
	t.Helper()
	waitSettled(t, c, len(c.running()), 0)
}

// leader returns the node that leads a group.
func (c *served) leader(t *testing.T, group int) *launch.Node {
	t.Helper()
	return c.nodes[leaderOf(t, c, group)]
}

// keyless returns a client with a tenant's keys.
func (c *served) keyless(t *testing.T, keys wire.KeyPair) *client {
	t.Helper()
	return connect(t, c.info()).with(keys)
}

// info returns what a client needs to know about the cluster.
func (c *served) info() dev.Info {
	i := dev.Info{CAFile: c.Certs.CA()}
	for _, n := range c.nodes {
		i.BaseURLs = append(i.BaseURLs, n.URL())
		i.Nodes = append(i.Nodes, dev.NodeInfo{Name: n.Name, URL: n.URL(), Dir: n.Data})
	}
	return i
}

// client creates a tenant and returns a client with a gallery.
func (c *served) client(t *testing.T, size int) *client {
	t.Helper()
	name := "bank"
	if c.tenants++; c.tenants > 1 {
		name = fmt.Sprintf("bank-%d", c.tenants)
	}
	k := c.keyless(t, tenantOf(t, c, name))
	k.gallery(t, map[string]any{"name": "staff", "description": "e2e", "faceMinimumQualityScore": 0.45, "size": size})
	return k
}
