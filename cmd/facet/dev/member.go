package dev

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"facet/cmd/facet/config"
	"facet/cmd/facet/process"
	"facet/node/wire"
)

// member is one node process, as this process sees it.
type member struct {
	nodeState
	child  *exec.Cmd     // nil before start
	exited chan struct{} // closed when child has ended and was reaped
	pid    int           // guarded by Cluster.mu once watch runs
}

func (c *Cluster) command(name string) []string {
	return []string{c.cfg.Binary, "serve", "--config", c.f.config(name)}
}

// start starts the node as a child that dies with this process.
func (c *Cluster) start(m *member) error {
	cmd, err := c.spawn(m.Name)
	if err != nil {
		return err
	}
	m.child, m.pid = cmd, cmd.Process.Pid
	c.reapers.Go(func() {
		_ = cmd.Wait() // cmd.ProcessState has the result
		close(m.exited)
	})
	return nil
}

// spawn starts the process of a node. It writes to the node's log.
func (c *Cluster) spawn(name string) (*exec.Cmd, error) {
	log, err := openLog(c.f.log(name))
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own handle
	args := c.command(name)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = log, log
	if err := c.starter.Start(cmd); err != nil {
		return nil, fmt.Errorf("start node %s: %w", name, err)
	}
	return cmd, nil
}

// environment returns this process's environment without the settings of facet.
// They would override each node's file, and every node needs its own settings.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, config.VariablePrefix) })
}

// waitReady waits until every node is ready.
func (c *Cluster) waitReady(ctx context.Context) error {
	for _, m := range c.members {
		if err := c.waitServes(ctx, m); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, serveTimeout)
	defer cancel()
	return c.waitStatus(ctx, func(s wire.Status) bool {
		return len(s.Nodes) == len(c.members) && !slices.ContainsFunc(s.Nodes, leaderless)
	})
}

// waitServes waits until a node is ready: as long as it opens its templates, and serveTimeout more.
func (c *Cluster) waitServes(ctx context.Context, m *member) error {
	said, deadline := false, time.Now().Add(serveTimeout)
	for {
		why := c.client.Ready(ctx, m.Admin)
		if why == nil {
			return nil
		}
		if strings.Contains(why.Error(), wire.OpeningTemplates) {
			if deadline = time.Now().Add(serveTimeout); !said {
				said = true
				c.say("node %s opens its templates", m.Name)
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("node %s did not serve within %s (%w); its log is %s", m.Name, serveTimeout, why, c.f.log(m.Name))
		}
		select {
		case <-m.exited:
			return fmt.Errorf("node %s ended before it served (%s); its log %s ends with:\n%s",
				m.Name, m.child.ProcessState, c.f.log(m.Name), tail(c.f.log(m.Name)))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(readyInterval):
		}
	}
}

// watch reports when the node dies and when it is started again, and keeps its
// process in dev.json, until ctx ends.
func (c *Cluster) watch(ctx context.Context, m *member) {
	select {
	case <-m.exited:
		c.say("node %s died (%s). It stays down until you start it again:\n  %s",
			m.Name, m.child.ProcessState, strings.Join(c.command(m.Name), " "))
	case <-ctx.Done():
		return
	}
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	known := 0
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		pid, running := process.Holder(c.f.pidFile(m.Name))
		if !running {
			pid = 0
		}
		if pid == known {
			continue
		}
		known = pid
		c.adopt(m, pid)
	}
}

// adopt records the process that now runs the node, 0 for none.
func (c *Cluster) adopt(m *member, pid int) {
	if pid == 0 {
		c.say("node %s died again", m.Name)
		return
	}
	c.mu.Lock()
	m.pid = pid
	c.mu.Unlock()
	if err := c.writeInfo(); err != nil {
		c.say("node %s runs again, as process %d, but dev.json could not be renewed: %v", m.Name, pid, err)
		return
	}
	c.say("node %s runs again, as process %d", m.Name, pid)
}

// end stops the node: the child, or the process that holds its data directory now.
func (c *Cluster) end(m *member) error {
	if m.child != nil {
		_ = m.child.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-m.exited:
		case <-time.After(stopGrace):
			_ = m.child.Process.Kill()
			<-m.exited
		}
	}
	return process.Stop(c.f.pidFile(m.Name), stopGrace)
}

// Restart starts a dead node with its command. The new process dies with this one.
func (c *Cluster) Restart(name string) error {
	cmd, err := c.spawn(name)
	if err != nil {
		return err
	}
	c.reapers.Go(func() { _ = cmd.Wait() }) // watch sees its pid file
	return nil
}

// WaitCaughtUp waits until the node is ready and lags behind no other.
func (c *Cluster) WaitCaughtUp(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, serveTimeout)
	defer cancel()
	return c.waitStatus(ctx, func(s wire.Status) bool {
		i := slices.IndexFunc(s.Nodes, func(n wire.Member) bool { return n.Name == name })
		return i >= 0 && !leaderless(s.Nodes[i]) &&
			!slices.ContainsFunc(s.Nodes[i].Groups, func(g wire.GroupStatus) bool { return g.Lag > 0 })
	})
}

// leaderless reports whether the node is silent or one of its groups has no leader.
func leaderless(n wire.Member) bool {
	return !n.Answers || len(n.Groups) == 0 ||
		slices.ContainsFunc(n.Groups, func(g wire.GroupStatus) bool { return g.Leader.IsZero() })
}

// waitStatus waits until the cluster's status is good.
func (c *Cluster) waitStatus(ctx context.Context, good func(wire.Status) bool) error {
	for {
		s, err := c.client.Status(ctx)
		if err == nil && good(s) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cluster does not settle (%w): %s", ctx.Err(), strings.Join(s.Warnings, "; "))
		case <-time.After(readyInterval):
		}
	}
}
