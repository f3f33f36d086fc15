//go:build linux

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

	"facet/cmd/facet/admin"
	"facet/cmd/facet/dev"
)

const (
	startTimeout = 2 * time.Minute
	startPoll    = 100 * time.Millisecond
	stopTimeout  = 30 * time.Second
	ticks        = 100 // a second, of the times in /proc (Linux: USER_HZ)
	sampleEvery  = 50 * time.Millisecond
)

// node is a cluster of one node, in processes of its own.
type node struct {
	info  dev.Info
	admin *admin.Client
	dir   string
	cmd   *exec.Cmd
}

// startNode founds a cluster in a temporary folder and waits until it serves.
func startNode(ctx context.Context, o options) (n *node, err error) {
	n = new(node)
	if n.dir, err = os.MkdirTemp("", "bench-overload"); err != nil {
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
	if err := startOn(nodeCore, n.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.facet, err)
	}
	late, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if n.info, err = dev.ReadInfo(n.dir); err == nil {
			break
		}
		select {
		case <-late.Done():
			return nil, fmt.Errorf("wait for the node: %w (%w)", late.Err(), err)
		case <-time.After(startPoll):
		}
	}
	target, err := dev.Admin(n.dir)
	if err != nil {
		return nil, err
	}
	n.admin, err = admin.NewClient(target)
	return n, err
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

// watch is what a node took while something was done.
type watch struct {
	mostMB  float64
	cpu     time.Duration
	elapsed time.Duration
}

// while does something and watches the node meanwhile.
func (n *node) while(do func() error) (w watch, err error) {
	before, err := cpu(n.pid())
	if err != nil {
		return w, err
	}
	stop, sampled := make(chan struct{}), make(chan float64)
	go func() { // ends with stop
		most := 0.0
		for {
			if mb, err := resident(n.pid()); err == nil {
				most = max(most, mb)
			}
			select {
			case <-stop:
				sampled <- most
				return
			case <-time.After(sampleEvery):
			}
		}
	}()
	began := time.Now()
	err = do()
	w.elapsed = time.Since(began)
	close(stop)
	w.mostMB = <-sampled
	after, err2 := cpu(n.pid())
	w.cpu = after - before
	return w, errors.Join(err, err2)
}
