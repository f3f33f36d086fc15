package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
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

	// mu guards damaged and full.
	mu sync.Mutex
	// damaged reports whether the node's files were damaged or its disk failed. Such a
	// node may end by itself.
	damaged bool
	// full is when the disk was last full.
	full time.Time
}

// newProcess returns a node with an empty disk. It does not start the node.
func (c *cluster) newProcess() (*process, error) {
	c.mu.Lock()
	c.made++
	p := &process{number: 1}
	p.Name, p.Founder = fmt.Sprintf("n%d", c.first+c.made), c.made <= c.Founders
	taken := func() bool {
		for _, other := range c.nodes {
			if other.number == p.number {
				return true
			}
		}
		return false
	}
	for taken() {
		p.number++
	}
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

func (p *process) damage()   { p.mu.Lock(); p.damaged = true; p.mu.Unlock() }
func (p *process) repaired() { p.mu.Lock(); p.damaged = false; p.mu.Unlock() }

// fullTime is how long after a full disk a node may end because of it: meta keeps no
// room in reserve.
const fullTime = 20 * time.Second

func (p *process) fill() { p.mu.Lock(); p.full = time.Now(); p.mu.Unlock() }

func (p *process) wasFull() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.full) < fullTime
}

func (p *process) isDamaged() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.damaged
}

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
