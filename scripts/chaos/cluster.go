package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"facet/internal/testkit/launch"
	"facet/node/wire"
	"facet/scripts/chaos/lan"
)

// readyTimeout is the longest wait for a cluster to become healthy.
const readyTimeout = 90 * time.Second

// cluster is a cluster of real processes.
type cluster struct {
	launch.Cluster
	disks bool     // each node has its own
	lan   *lan.LAN // nil on loopback
	first int      // added to the numbers in the nodes' names

	// mu guards nodes and made.
	mu    sync.Mutex
	nodes []*process // the nodes that belong to the cluster
	made  int        // the number of processes created so far
}

// members returns the nodes that belong to the cluster now.
func (c *cluster) members() []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.nodes)
}

// openCluster creates keys, certificates and configurations.
func openCluster(s settings) (*cluster, error) {
	c := &cluster{Cluster: launch.Cluster{
		Dir: s.dir, Binary: s.binary, Shards: s.shards, Founders: s.nodes, Args: []string{"--log-level", cmp.Or(s.logLevel, "info")},
	}}
	err := c.Open("chaos")
	if err != nil {
		return nil, err
	}
	if !s.loopback {
		if c.lan, err = lan.Open(1 + s.nodes + spareHosts); err != nil {
			return nil, err
		}
		c.disks = disksWork(s.dir)
	}
	for range s.nodes {
		if _, err := c.newProcess(); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// facet runs the command line on the clients' host and returns its output. Any node answers.
func (c *cluster) facet(ctx context.Context, args ...string) ([]byte, error) {
	return c.facetBy(ctx, c.members(), args...)
}

// facetBy runs the command line on the clients' host. One of nodes answers.
func (c *cluster) facetBy(ctx context.Context, nodes []*process, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.Binary, append(args, c.Where(nodesOf(nodes))...)...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	var err error
	if c.lan != nil {
		err = c.lan.Start(clientHost, cmd)
	} else {
		err = cmd.Start()
	}
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return out.Bytes(), fmt.Errorf("facet %s: %w: %s", args[0], err, strings.TrimSpace(problems.String()))
	}
	return out.Bytes(), nil
}

// status returns the output of facet status.
func (c *cluster) status(ctx context.Context) (wire.Status, error) {
	return c.statusBy(ctx, c.members())
}

// statusBy returns the output of facet status by one of nodes.
func (c *cluster) statusBy(ctx context.Context, nodes []*process) (wire.Status, error) {
	var s wire.Status
	out, err := c.facetBy(ctx, nodes, "status", "--json")
	if len(out) == 0 { // else err is about the cluster's health
		return s, err
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("read the status: %w", err)
	}
	return s, nil
}

// waitWhole waits until all nodes answer and every group has a leader.
func (c *cluster) waitWhole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	last := errors.New("no status yet")
	for ctx.Err() == nil {
		s, err := c.status(ctx)
		switch {
		case err != nil:
			last = err
		case len(s.Nodes) < len(c.members()) || len(wounds(s.Warnings)) > 0:
			last = fmt.Errorf("%d of %d nodes, warnings: %s", len(s.Nodes), len(c.members()), strings.Join(wounds(s.Warnings), "; "))
		default:
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("the cluster is not whole after %s: %w", readyTimeout, last)
}

// asideWarning is a part of the warning about a replica whose files were damaged.
const asideWarning = "was set aside and rebuilt"

// sound returns an error if a node reports a damaged replica: only the fault flip may
// damage one.
func (c *cluster) sound(ctx context.Context) error {
	s, err := c.status(ctx)
	for _, w := range s.Warnings {
		if strings.Contains(w, asideWarning) {
			err = errors.Join(err, fmt.Errorf("no file was damaged by anybody, and %s", w))
		}
	}
	return err
}

// past are parts of warnings that nodes give for minutes or hours about what is over.
var past = []string{asideWarning, "had lost state", "has lost state and stopped", "two processes run as member"}

// wounds returns the warnings about what is wrong now. A cluster of one node always lacks a
// second replica.
func wounds(warnings []string) []string {
	return slices.DeleteFunc(slices.Clone(warnings), func(w string) bool {
		return slices.ContainsFunc(append(past, "there is one node"), func(part string) bool { return strings.Contains(w, part) })
	})
}
