package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"facet/cmd/facet/dev"
)

const (
	startTimeout = 2 * time.Minute
	startPoll    = 100 * time.Millisecond
	stopTimeout  = 30 * time.Second
	ticks        = 100 // a second, of the times in /proc (Linux: USER_HZ)
)

// node is a cluster of one node in processes of its own, so that its processor
// time and memory can be told from the client's.
type node struct {
	info dev.Info
	dir  string
	cmd  *exec.Cmd
}

// startNode founds a cluster in a temporary folder and waits until it serves.
// procs is its GOMAXPROCS; empty leaves that to the node.
func startNode(ctx context.Context, o options, procs string) (n *node, err error) {
	n = new(node)
	if n.dir, err = os.MkdirTemp("", "bench-engine"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	n.cmd = exec.Command(o.facet, "dev", "--nodes", "1", "--dir", n.dir,
		"--models", filepath.Join(o.assets, "packs", "default"), "--onnxruntime", filepath.Join(o.assets, "lib", "libonnxruntime.so"))
	n.cmd.Stderr = os.Stderr
	if procs != "" {
		n.cmd.Env = append(os.Environ(), "GOMAXPROCS="+procs)
	}
	if err := n.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.facet, err)
	}
	late, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if n.info, err = dev.ReadInfo(n.dir); err == nil {
			return n, nil
		}
		select {
		case <-late.Done():
			return nil, fmt.Errorf("wait for the node: %w (%w)", late.Err(), err)
		case <-time.After(startPoll):
		}
	}
}

// close stops the cluster and removes its folder.
func (n *node) close() error {
	var errs []error
	if n.cmd != nil && n.cmd.Process != nil {
		errs = append(errs, n.cmd.Process.Signal(os.Interrupt))
		kill := time.AfterFunc(stopTimeout, func() { _ = n.cmd.Process.Kill() }) // its Wait tells
		errs = append(errs, n.cmd.Wait())
		kill.Stop()
	}
	return errors.Join(append(errs, os.RemoveAll(n.dir))...)
}

// pid is the node's process.
func (n *node) pid() int { return n.info.Nodes[0].PID }

// cpu returns the processor time that a process has taken.
func cpu(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// Behind the name, which is in brackets: state is field 3, user and system time
	// are fields 14 and 15 (proc_pid_stat(5)).
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("read processor time: unknown format")
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * (time.Second / ticks), errors.Join(err1, err2)
}

// resident returns the memory of a process that is in RAM, in MB.
func resident(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0, err
	}
	return float64(pages) * float64(os.Getpagesize()) / 1e6, nil
}
