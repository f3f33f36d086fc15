package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"facet/cmd/facet/authority"
	"facet/internal/id"
	"facet/internal/ports"
	"facet/node/datadir"
	"facet/scripts/chaos/lan"
)

const (
	clientHost  = 0 // nodes are the hosts from 1
	spareHosts  = 2 // hosts for nodes that replace others
	stopTimeout = 25 * time.Second
)

// process is one node.
type process struct {
	number int // of its host, from 1
	name   string
	id     id.Node
	host   string
	ports  []int // peers, public, admin
	args   []string
	log    string
	data   string
	// founder reports whether the node is one of the first nodes.
	founder bool
	disk    *disk // nil if the data are on the machine's own disk

	// mu guards cmd, exited, damaged and full.
	mu     sync.Mutex
	cmd    *exec.Cmd     // nil while the node does not run
	exited chan struct{} // closed when the node has ended
	// damaged reports whether the node's files were damaged or its disk failed. Such a
	// node may end by itself.
	damaged bool
	// full is when the disk was last full.
	full time.Time
}

func (p *process) url() string   { return fmt.Sprintf("https://%s:%d", p.host, p.ports[1]) }
func (p *process) admin() string { return fmt.Sprintf("%s:%d", p.host, p.ports[2]) }

// newProcess returns a node with an empty disk. It does not start the node.
func (c *cluster) newProcess() (*process, error) {
	c.mu.Lock()
	c.made++
	p := &process{name: fmt.Sprintf("n%d", c.first+c.made), number: 1, founder: c.made <= c.founders, host: "127.0.0.1", ports: []int{7421, 7420, 7422}}
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
	var err error
	if c.lan != nil {
		p.host = lan.Address(p.number)
	} else if p.ports, err = ports.Take(len(p.ports)); err != nil {
		return nil, err
	}
	p.log, p.data = filepath.Join(c.dir, p.name+".log"), filepath.Join(c.dir, p.name)
	if c.disks {
		if p.disk, err = mount(p.data); err != nil {
			return nil, err
		}
		p.data = filepath.Join(p.data, "data")
	}
	if p.id, err = datadir.Identify(p.data); err != nil {
		return nil, err
	}
	if _, err := c.certs.Ensure(authority.NodeCertificates{Name: p.name, ID: p.id, Hosts: []string{p.host}}); err != nil {
		return nil, err
	}
	at := func(port int) string { return fmt.Sprintf("%s:%d", p.host, port) }
	p.args = []string{
		"serve", "--name", p.name, "--dir", p.data, "--certificates", c.certs.Node(p.name),
		"--cluster-key", c.certs.ClusterKey(), "--gossip-key", c.certs.GossipKey(),
		"--peer-address", at(p.ports[0]), "--public-address", at(p.ports[1]), "--admin-address", at(p.ports[2]),
		"--log-format", "text", "--log-level", c.logLevel, "--config", p.memoryFile(),
	}
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
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", p.name, err)
	}
	defer log.Close() // the child has its own handle
	var seeds []string
	for _, m := range c.members() {
		seeds = append(seeds, fmt.Sprintf("%s:%d", m.host, m.ports[0]))
	}
	args := append(slices.Clone(p.args), "--seeds", strings.Join(seeds, ","))
	if p.founder {
		args = append(args, "--bootstrap-expect", fmt.Sprint(c.founders), "--shards", fmt.Sprint(c.shards))
	}
	cmd := exec.Command(c.binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "CHAOS_CLOCK="+p.clockFile())
	if c.lan != nil {
		err = c.lan.Start(p.number, cmd)
	} else {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal SIGHUP does not end it
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	exited := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.exited = cmd, exited
	p.mu.Unlock()
	go func() { // ends with the child
		_ = cmd.Wait()
		close(exited)
	}()
	return nil
}

// signal sends a signal to a node. If the signal ends the node, it waits for the end.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	cmd, exited := p.cmd, p.exited
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(s) // it may have ended
	if s != syscall.SIGKILL && s != syscall.SIGTERM {
		return
	}
	select {
	case <-exited:
	case <-time.After(stopTimeout):
		_ = cmd.Process.Kill()
		<-exited
	}
	p.mu.Lock()
	p.cmd = nil
	p.mu.Unlock()
}

// doom sends SIGKILL to a node and does not wait for its end. No thread of the node
// returns from the system call that it is in.
func (p *process) doom() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Kill() // it may have ended
	}
}

// ended reports whether a node that was started has ended by itself.
func (p *process) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// endsWithin reports whether a node ends by itself within d.
func (p *process) endsWithin(d time.Duration) bool {
	p.mu.Lock()
	exited := p.exited
	p.mu.Unlock()
	select {
	case <-exited:
		return true
	case <-time.After(d):
		return false
	}
}

// pid returns the process id of a running node.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
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
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGKILL)
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
