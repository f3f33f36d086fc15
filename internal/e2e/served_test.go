package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"facet/internal/ports"
)

// served is a cluster of `facet serve` processes, as an operator runs one. It has
// any size and no tenant at first.
type served struct {
	dir    string
	binary string
	extra  []string // settings of all nodes
	nodes  []*servedNode

	tenants int // number of tenants created
}

// servedNode is one process.
type servedNode struct {
	name, data, log string
	args            []string
	peer, url       string
	admin           string

	cmd    *exec.Cmd // nil while it is not running
	exited chan struct{}
}

// serve founds a cluster and waits until it is healthy.
func serve(t *testing.T, binary string, nodes, shards int, extra ...string) *served {
	t.Helper()
	c := &served{dir: t.TempDir(), binary: binary, extra: extra}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			n.end(syscall.SIGKILL)
			if t.Failed() {
				t.Logf("end of %s's log:\n%s", n.name, logEnd(n.log))
			}
		}
	})
	c.facet(t, "certs", "init", "--dir", c.certificates(""), "--cluster", "e2e")
	for range nodes {
		c.add(t)
	}
	for _, n := range c.nodes {
		n.args = append(n.args, "--bootstrap-expect", fmt.Sprint(nodes), "--shards", fmt.Sprint(shards))
		c.start(t, n)
	}
	c.waitWhole(t)
	return c
}

func (c *served) certificates(of string) string { return filepath.Join(c.dir, "certificates", of) }

// facet runs a command, which must succeed.
func (c *served) facet(t *testing.T, args ...string) string {
	t.Helper()
	out, err := facet(args...)
	if err != nil {
		t.Fatalf("facet %v: %v\n%s", args, err, out)
	}
	return out
}

// where returns the flags that name the cluster for a command.
func (c *served) where() []string {
	var admins []string
	for _, n := range c.nodes {
		if n.cmd != nil {
			admins = append(admins, n.admin)
		}
	}
	return []string{"--admin", strings.Join(admins, ","), "--certificates", c.certificates("admin")}
}

// add adds a node with an empty disk. It does not start the node.
func (c *served) add(t *testing.T) *servedNode {
	t.Helper()
	name := fmt.Sprintf("n%d", len(c.nodes)+1)
	n := &servedNode{
		name: name, data: filepath.Join(c.dir, name), log: filepath.Join(c.dir, name+".log"),
		peer: freeAddress(t), admin: freeAddress(t),
	}
	public := freeAddress(t)
	n.url = "https://" + public
	c.facet(t, "certs", "issue", name, "--dir", c.certificates(""), "--data", n.data, "--host", "127.0.0.1")
	n.args = append([]string{
		"serve", "--name", name, "--dir", n.data, "--certificates", c.certificates(name),
		"--cluster-key", c.certificates("cluster.key"), "--gossip-key", c.certificates("gossip.key"),
		"--peer-address", n.peer, "--public-address", public, "--admin-address", n.admin, "--log-format", "text",
	}, c.extra...)
	c.nodes = append(c.nodes, n)
	return n
}

// freeAddress returns an address of loopback that no other process of these tests gets.
func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := ports.Take(1)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(free[0]))
}

func (c *served) start(t *testing.T, n *servedNode) {
	t.Helper()
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the child has its own handle
	var seeds []string
	for _, m := range c.nodes {
		seeds = append(seeds, m.peer)
	}
	cmd := exec.Command(c.binary, append(append([]string{}, n.args...), "--seeds", strings.Join(seeds, ","))...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := starter.Start(cmd); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	n.cmd, n.exited = cmd, exited
	go func() {
		cmd.Wait()
		close(exited)
	}()
}

// end sends a signal that ends the node, and waits. It does nothing when the node
// is not running.
func (n *servedNode) end(s syscall.Signal) {
	if n.cmd == nil {
		return
	}
	n.cmd.Process.Signal(s)
	select {
	case <-n.exited:
	case <-time.After(stopTimeout):
		n.cmd.Process.Kill()
		<-n.exited
	}
	n.cmd = nil
}

// waitWhole waits until the running nodes answer and all groups have a leader and
// no lag.
func (c *served) waitWhole(t *testing.T) {
	t.Helper()
	c.waitWithin(t, 0)
}

// waitWithin is waitWhole for a cluster with writers: replicas may lag by so many entries.
func (c *served) waitWithin(t *testing.T, lag uint64) {
	t.Helper()
	running := 0
	for _, n := range c.nodes {
		if n.cmd != nil {
			running++
		}
	}
	waitSettled(t, c, running, lag)
}

// leader returns the node that leads a group.
func (c *served) leader(t *testing.T, group int) *servedNode {
	t.Helper()
	return c.nodes[leaderOf(t, c, group)]
}

// info returns what a client needs to know about the cluster.
func (c *served) info(region, service string) info {
	i := info{CAFile: filepath.Join(c.certificates("admin"), "ca.pem"), Region: region, Service: service}
	for _, n := range c.nodes {
		i.BaseURLs = append(i.BaseURLs, n.url)
		i.Nodes = append(i.Nodes, nodeInfo{ID: n.name, URL: n.url, Dir: n.data})
	}
	return i
}

// keyless returns a client with a tenant's keys.
func (c *served) keyless(t *testing.T, keys pair) *client {
	t.Helper()
	i := c.info("ap-southeast-2", "execute-api")
	i.AccessKey, i.SecretKey = keys.AccessKey, keys.SecretKey
	return (&cluster{info: i}).keyless(t)
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
