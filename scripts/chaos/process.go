package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"facet/internal/testkit/launch"
	"facet/scripts/chaos/lan"
)

const (
	clientHost = 0 // nodes are the hosts from 1
	spareHosts = 2 // hosts for nodes that replace others
)

// process is one node.
type process struct {
	launch.Node
	number int   // of its host, from 1
	disk   *disk // nil if the data are on the machine's own disk

	// damaged reports whether the node's files were damaged or its disk failed. Such a
	// node may end by itself.
	damaged atomic.Bool
	// full is when the disk was last full, in nanoseconds of Unix time.
	full atomic.Int64
}

// newProcess returns a node with an empty disk. It does not start the node.
func (c *cluster) newProcess() (*process, error) {
	c.mu.Lock()
	c.made++
	p := &process{number: freeHost(c.nodes)}
	p.Name, p.Founder = fmt.Sprintf("n%d", c.first+c.made), c.made <= c.Founders
	c.mu.Unlock()
	if c.lan != nil {
		p.Host, p.Ports = lan.Address(p.number), []int{7421, 7420, 7422}
	}
	if c.disks {
		at := filepath.Join(c.Dir, p.Name)
		p.Data = filepath.Join(at, "data")
		var err error
		if p.disk, err = mount(at); err != nil {
			return nil, err
		}
	}
	if err := c.Prepare(&p.Node); err != nil {
		return nil, err
	}
	p.Args = append(p.Args, "--config", p.memoryFile())
	if err := p.giveMemory(0); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = append(c.nodes, p)
	return p, nil
}

// freeHost returns the first host without a node.
func freeHost(nodes []*process) int {
	host := 1
	for slices.ContainsFunc(nodes, func(p *process) bool { return p.number == host }) {
		host++
	}
	return host
}

// start starts a node that does not run.
func (c *cluster) start(p *process) error {
	return c.Run(&p.Node, nodesOf(c.members()), func(cmd *exec.Cmd) error {
		cmd.Env = append(os.Environ(), "CHAOS_CLOCK="+p.clockFile())
		if c.lan != nil {
			return c.lan.Start(p.number, cmd)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal SIGHUP does not end it
		return cmd.Start()
	})
}

func nodesOf(list []*process) (nodes []*launch.Node) {
	for _, p := range list {
		nodes = append(nodes, &p.Node)
	}
	return nodes
}

// doom sends SIGKILL to a node and does not wait for its end. No thread of the node
// returns from the system call that it is in.
func (p *process) doom() {
	if running := p.Process(); running != nil {
		running.Signal(syscall.SIGKILL)
	}
}

// fullTime is how long after a full disk a node may end because of it: meta keeps no
// room in reserve.
const fullTime = 20 * time.Second

func (p *process) fill() { p.full.Store(time.Now().UnixNano()) }

func (p *process) wasFull() bool { return time.Since(time.Unix(0, p.full.Load())) < fullTime }

// leave removes a node from the cluster's list of nodes.
func (c *cluster) leave(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.nodes, p); i >= 0 {
		c.nodes = slices.Delete(slices.Clone(c.nodes), i, i+1)
	}
}

// discard kills a node for good and unmounts its disk. The files of a node without a
// disk of its own stay, as evidence.
func (c *cluster) discard(p *process) error {
	p.Signal(syscall.SIGCONT)
	p.Signal(syscall.SIGKILL)
	c.leave(p)
	if p.disk == nil {
		return nil
	}
	return p.disk.unmount()
}

// end kills all nodes for good.
func (c *cluster) end() error {
	var errs []error
	for _, p := range c.members() {
		if p.disk != nil {
			p.disk.thaw()
		}
		errs = append(errs, c.discard(p))
	}
	return errors.Join(errs...)
}

// close kills all nodes and removes their network.
func (c *cluster) close() {
	if err := c.end(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	if c.lan != nil {
		c.lan.Close()
	}
}
