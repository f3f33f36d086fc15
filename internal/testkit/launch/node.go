package launch

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"facet/cmd/facet/authority"
	"facet/internal/id"
	"facet/internal/ports"
	"facet/node/datadir"
)

// Cluster has what the nodes of a cluster share.
type Cluster struct {
	Dir, Binary      string
	Certs            *authority.Folder
	Founders, Shards int
	Args             []string // settings of all nodes
}

// Node is one node of facet serve.
type Node struct {
	Name      string
	ID        id.Node
	Host      string
	Ports     []int // peers, public, admin
	Data, Log string
	Args      []string
	Founder   bool

	process atomic.Pointer[Process] // nil while the node does not run
}

// Open creates the keys and the authority of a cluster in dir.
func (c *Cluster) Open(name string) (err error) {
	c.Certs, err = authority.OpenPlain(filepath.Join(c.Dir, "certificates"), name)
	return err
}

// Prepare sets what n still needs for a start: ports of loopback, files, an id, certificates and
// arguments.
func (c *Cluster) Prepare(n *Node) (err error) {
	if n.Host == "" {
		n.Host = "127.0.0.1"
		if n.Ports, err = ports.Take(3); err != nil {
			return err
		}
	}
	n.Log = filepath.Join(c.Dir, n.Name+".log")
	if n.Data == "" {
		n.Data = filepath.Join(c.Dir, n.Name)
	}
	if n.ID, err = datadir.Identify(n.Data); err != nil {
		return err
	}
	if _, err := c.Certs.Ensure(authority.NodeCertificates{Name: n.Name, ID: n.ID, Hosts: []string{n.Host}}); err != nil {
		return err
	}
	n.Args = slices.Concat([]string{
		"serve", "--name", n.Name, "--certificates", c.Certs.Node(n.Name),
		"--cluster-key", c.Certs.ClusterKey(), "--gossip-key", c.Certs.GossipKey(), "--log-format", "text",
	}, n.Places(), c.Args)
	if n.Founder {
		n.Args = append(n.Args, "--bootstrap-expect", fmt.Sprint(c.Founders), "--shards", fmt.Sprint(c.Shards))
	}
	return nil
}

// Places returns the settings that name a node's folder and addresses. Of settings that
// come twice in a command the last ones count.
func (n *Node) Places() []string {
	return []string{"--dir", n.Data, "--peer-address", n.at(0), "--public-address", n.at(1), "--admin-address", n.at(2)}
}

// Run starts a node that does not run, as Start does.
func (c *Cluster) Run(n *Node, seeds []*Node, start func(*exec.Cmd) error) error {
	log, err := os.OpenFile(n.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", n.Name, err)
	}
	defer log.Close() // the child has its own handle
	cmd := exec.Command(c.Binary, append(slices.Clone(n.Args), "--seeds", addresses(seeds, (*Node).Peer))...)
	cmd.Stdout, cmd.Stderr = log, log
	p, err := Start(cmd, start)
	if err != nil {
		return fmt.Errorf("start %s: %w", n.Name, err)
	}
	n.process.Store(p)
	return nil
}

// Where returns the flags by which a command reaches the cluster through nodes.
func (c *Cluster) Where(nodes []*Node) []string {
	return []string{"--admin", addresses(nodes, (*Node).Admin), "--certificates", c.Certs.Admin()}
}

func addresses(nodes []*Node, of func(*Node) string) string {
	var list []string
	for _, n := range nodes {
		list = append(list, of(n))
	}
	return strings.Join(list, ",")
}

func (n *Node) at(port int) string { return net.JoinHostPort(n.Host, strconv.Itoa(n.Ports[port])) }

// Peer returns the address for other nodes.
func (n *Node) Peer() string { return n.at(0) }

// URL returns the base URL for clients.
func (n *Node) URL() string { return "https://" + n.at(1) }

// Admin returns the address for operators.
func (n *Node) Admin() string { return n.at(2) }

// Process returns the node's process, or nil if it was not started or was ended by Signal.
func (n *Node) Process() *Process { return n.process.Load() }

// Signal sends a signal to a node. If the signal ends the node, it waits for the end. It
// does nothing if the node does not run.
func (n *Node) Signal(s syscall.Signal) {
	p := n.Process()
	switch {
	case p == nil:
	case s == syscall.SIGKILL, s == syscall.SIGTERM:
		p.End(s)
		n.process.Store(nil)
	default:
		p.Signal(s)
	}
}

// Ended reports whether a node that was started has ended by itself.
func (n *Node) Ended() bool {
	p := n.Process()
	return p != nil && p.Ended()
}

// EndsWithin reports whether a node ends by itself within d, or does not run.
func (n *Node) EndsWithin(d time.Duration) bool {
	p := n.Process()
	return p == nil || p.EndsWithin(d)
}
