package nodetest

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"facet/engine/score"
	"facet/internal/must"
	"facet/internal/ports"
	"facet/node"
	"facet/node/cert"
	"facet/node/datadir"
	"facet/node/transport"
	"facet/node/transport/memnet"
	"facet/raftfsm"
	"facet/router"
	"facet/shard/kernel"
)

// closeTimeout is the longest time for the stop of one node on a busy machine.
const closeTimeout = time.Minute

// Options describes the cluster that a test needs. The comments give the defaults
// of zero fields.
type Options struct {
	Nodes  int // default 3
	Shards int // default 4
	// Founders is how many of the nodes found the cluster; default all. Restart
	// starts the others.
	Founders int
	// Zones are the zones of the nodes, in turn; default none.
	Zones []string
	// Away is how long a node may be missing; default node.AwayDefault.
	Away time.Duration
	// EraseWithin is raftfsm.Config.EraseWithin.
	EraseWithin time.Duration
	// CheckEvery is the interval of checks; default node.CheckDefault.
	CheckEvery time.Duration
	// SlotsPerShard is the number of slots of each shard; default that of metafsm.
	SlotsPerShard int
	// Extractor and Table are by default HashExtractor and its table.
	Extractor router.Extractor
	Table     *score.Table
	Timing    raftfsm.Timing
	// Off returns how far the clock of the i-th node is from the right time; default never.
	Off func(i int) time.Duration
	Log *slog.Logger // default: warnings go to the test's output, which is shown when the test fails
	// Bucket is the URL of the object store of bulk registrations; default none.
	Bucket string
	// ClusterKeyFile is the key file of another cluster; default a new key.
	ClusterKeyFile string
	// Level is the level of the nodes' software; default metafsm.Level.
	Level uint32
	// Dir is a data directory of which the first node gets a copy; default an empty
	// one.
	Dir string
}

// Cluster is a running cluster of a test. Its nodes are stopped when the test
// ends.
type Cluster struct {
	Nodes []*Member
	// Roots is the file of the authority's certificate.
	Roots string
	// Authority issued the nodes' certificates.
	Authority *cert.CA
	// Network joins the nodes of a bubble. It is nil outside, where they use loopback.
	Network *memnet.Network

	t testing.TB
}

// Member is one node of a Cluster, running or not.
type Member struct {
	// Node is nil while the node is stopped.
	Node *node.Node
	// URL is the base URL of both interfaces.
	URL string
	// Host is the node's IP address.
	Host string

	// Config is the configuration of the node's next start. A test may change it
	// while the node is stopped.
	Config node.Config
}

// Start founds a cluster and waits until all founders are ready.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	o.defaults(t)
	c := Prepare(t, o)
	for i := range o.Founders {
		c.Restart(i)
	}
	c.WaitReady()
	return c
}

// Prepare returns a cluster without a running node. Restart starts its nodes.
func Prepare(t testing.TB, o Options) *Cluster {
	t.Helper()
	o.defaults(t)
	c := &Cluster{t: t}
	if network, virtual := networks.Load(t); virtual {
		c.Network = network.(*memnet.Network)
	}
	c.configure(o)
	t.Cleanup(c.Close)
	return c
}

func (o *Options) defaults(t testing.TB) {
	if o.Nodes == 0 {
		o.Nodes = 3
	}
	if o.Founders == 0 {
		o.Founders = o.Nodes
	}
	if o.Shards == 0 {
		o.Shards = 4
	}
	if len(o.Zones) == 0 {
		o.Zones = []string{""}
	}
	if o.Extractor == nil {
		o.Extractor, o.Table = HashExtractor{}, Table()
	}
	if o.Off == nil {
		o.Off = func(int) time.Duration { return 0 }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
}

// configure creates keys, certificates and addresses.
func (c *Cluster) configure(o Options) {
	c.t.Helper()
	dir := c.tempDir()
	ca, err := cert.NewCA("test")
	must.Do(c.t, err)
	c.Roots, c.Authority = filepath.Join(dir, "ca.pem"), ca
	must.Do(c.t, os.WriteFile(c.Roots, ca.CertPEM(), 0o600))
	clusterKey, gossipKey := keyFile(c.t, dir, "cluster.key"), keyFile(c.t, dir, "gossip.key")
	if o.ClusterKeyFile != "" {
		clusterKey = o.ClusterKeyFile
	}
	subnet := 0
	for c.Network != nil && c.Network.Has(nodeHost(subnet, 0)) {
		subnet++
	}
	var seeds []string
	for i := range o.Nodes {
		m := &Member{Host: "127.0.0.1"}
		var network transport.Network = transport.OS{}
		open := []int{7001, 7002, 7003}
		if c.Network != nil {
			m.Host = nodeHost(subnet, i)
			network = c.Network.Host(m.Host)
		} else {
			open, err = ports.Take(len(open))
			must.Do(c.t, err)
		}
		at := func(port int) string { return fmt.Sprintf("%s:%d", m.Host, port) }
		name := fmt.Sprintf("n%d", i+1)
		m.URL = "https://" + at(open[1])
		m.Config = node.Config{
			Name: name, Zone: o.Zones[i%len(o.Zones)], Away: o.Away, EraseWithin: o.EraseWithin, CheckEvery: o.CheckEvery, Dir: filepath.Join(dir, name), Certificates: filepath.Join(dir, name+"-certs"),
			PeerAddress: at(open[0]), PublicAddress: at(open[1]), AdminAddress: at(open[2]),
			Expect: o.Founders, Shards: o.Shards, Replicas: 3, SlotsPerShard: o.SlotsPerShard, ClusterKeyFile: clusterKey, GossipKeyFile: gossipKey,
			Level: o.Level, Pack: "0123456789abcdef-test", Extractor: o.Extractor, Table: o.Table,
			Wall:   func() time.Time { return time.Now().Add(o.Off(i)) },
			Bucket: o.Bucket, Timing: o.Timing, CodesLeast: kernel.BlockRows, Network: network, Log: o.Log.With("node", name),
		}
		if i == 0 && o.Dir != "" {
			must.Do(c.t, os.CopyFS(m.Config.Dir, os.DirFS(o.Dir)))
		}
		issue(c.t, ca, m)
		seeds = append(seeds, m.Config.PeerAddress)
		c.Nodes = append(c.Nodes, m)
	}
	for _, m := range c.Nodes {
		m.Config.Seeds = seeds
	}
}

// nodeHost returns the host of the i-th node of a cluster in a bubble.
func nodeHost(subnet, i int) string { return fmt.Sprintf("10.0.%d.%d", subnet, i+1) }

// issue issues a node's certificates.
func issue(t testing.TB, ca *cert.CA, m *Member) {
	t.Helper()
	in := func(file string) string { return filepath.Join(m.Config.Certificates, file) }
	must.Do(t, os.MkdirAll(m.Config.Certificates, 0o700))
	who, err := datadir.Identify(m.Config.Dir)
	must.Do(t, err)
	own, err := ca.IssueNode(who, []string{m.Host})
	must.Do(t, err)
	must.Do(t, own.Save(in("node.pem"), in("node.key")))
	server, err := ca.IssueServer([]string{m.Host})
	must.Do(t, err)
	must.Do(t, server.Save(in("server.pem"), in("server.key")))
	must.Do(t, os.WriteFile(in("ca.pem"), ca.CertPEM(), 0o600))
}

// tempDir returns a folder that goes with the test. In a bubble, where no disk is tried, it is in memory
// if there is room, because a sync then takes no time.
func (c *Cluster) tempDir() string {
	c.t.Helper()
	const memory, least = "/dev/shm", 2 << 30
	var s syscall.Statfs_t
	if c.Network == nil || syscall.Statfs(memory, &s) != nil || s.Bavail*uint64(s.Bsize) < least {
		return c.t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "facet-test-")
	must.Do(c.t, err)
	c.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func keyFile(t testing.TB, dir, name string) string {
	t.Helper()
	var key [32]byte
	_, err := crand.Read(key[:])
	must.Do(t, err)
	path := filepath.Join(dir, name)
	must.Do(t, os.WriteFile(path, []byte(hex.EncodeToString(key[:])), 0o600))
	return path
}

// Renew replaces a stopped node by another one at the same address, with an empty data
// directory and certificates of its own.
func (c *Cluster) Renew(i int) {
	c.t.Helper()
	must.Do(c.t, os.RemoveAll(c.Nodes[i].Config.Dir))
	issue(c.t, c.Authority, c.Nodes[i])
}

// Duplicate returns a second node with a copy of a node's data directory, at another host of
// the bubble's network. The copy is not started, and not one of c.Nodes.
func (c *Cluster) Duplicate(i int, host string) *Member {
	c.t.Helper()
	m := *c.Nodes[i]
	m.Node, m.Host = nil, host
	at := func(address string) string {
		_, port, err := net.SplitHostPort(address)
		must.Do(c.t, err)
		return net.JoinHostPort(host, port)
	}
	m.Config.PeerAddress, m.Config.PublicAddress, m.Config.AdminAddress = at(m.Config.PeerAddress), at(m.Config.PublicAddress), at(m.Config.AdminAddress)
	m.Config.Dir, m.Config.Certificates = m.Config.Dir+"-copy", m.Config.Certificates+"-copy"
	m.Config.Network, m.URL = c.Network.Host(host), "https://"+m.Config.PublicAddress
	must.Do(c.t, errors.Join(os.RemoveAll(m.Config.Dir), os.CopyFS(m.Config.Dir, os.DirFS(c.Nodes[i].Config.Dir))))
	issue(c.t, c.Authority, &m)
	return &m
}

// Restart starts a stopped node on its data directory.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	n, err := node.Open(c.t.Context(), c.Nodes[i].Config)
	must.Do(c.t, err)
	c.Nodes[i].Node = n
}

// Copy adds a Duplicate to c.Nodes and returns its index.
func (c *Cluster) Copy(i int, host string) int {
	c.t.Helper()
	c.Nodes = append(c.Nodes, c.Duplicate(i, host))
	return len(c.Nodes) - 1
}

// Stop stops a node in the way of SIGTERM.
func (c *Cluster) Stop(i int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := c.Nodes[i].Node.Close(ctx); err != nil {
		c.t.Errorf("stop node %d: %v", i+1, err)
	}
	c.Nodes[i].Node = nil
}

// Close stops the running nodes.
func (c *Cluster) Close() {
	for i, m := range c.Nodes {
		if m.Node != nil {
			c.Stop(i)
		}
	}
}

// WaitReady waits until all running nodes are ready.
func (c *Cluster) WaitReady() {
	c.t.Helper()
	late := time.After(time.Minute)
	for i, m := range c.Nodes {
		if m.Node == nil {
			continue
		}
		select {
		case <-m.Node.Ready():
		case <-m.Node.Done():
			c.t.Fatalf("node %d stopped: %v", i+1, m.Node.Err())
		case <-late:
			c.t.Fatalf("node %d does not serve after a minute", i+1)
		}
	}
}
