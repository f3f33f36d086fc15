package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// exitTimeout is the longest that a node may take to end when it has to.
	exitTimeout = time.Minute
	flips       = 3 // bits
	// attachTime is the time that strace gets to attach to a node.
	attachTime = time.Second
	// nearlyFull is the free space that a full disk keeps. The node then refuses
	// registrations but can go on.
	nearlyFull = 200 << 20
)

// flipName is the fault that damages files.
const flipName = "flip"

// diskFaults are the faults of disks and of files.
var diskFaults = []fault{
	{"freeze", disks, true, false, 8 * time.Second, func(_ *nemesis, p *process) (func() error, error) {
		err := p.disk.freeze()
		return func() error { p.disk.thaw(); return nil }, err
	}},
	{"full", disks, true, false, 5 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		left := uint64(n.random.IntN(256 << 10))
		if n.random.IntN(2) == 0 {
			left = nearlyFull
		}
		p.fill()
		err := p.disk.fill(left)
		return func() error {
			p.fill()
			err := p.disk.empty()
			if err == nil && p.EndsWithin(time.Second) {
				n.say("%s had no room left for meta and ended; it comes back", p.Name)
				err = n.cluster.start(p)
			}
			return err
		}, err
	}},
	{"slow disk", tracing, false, false, 6 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		t, err := trace(p, fmt.Sprintf("delay_exit=%d", (20+n.random.IntN(180))*1000))
		if err != nil {
			return nil, err
		}
		return func() error { t.stop(); return nil }, nil
	}},
	{"bad disk", tracing, true, false, 3 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		led, from := n.led, time.Since(n.start)+attachTime
		t, err := trace(p, "error=EIO")
		if err != nil {
			return nil, err
		}
		return func() error {
			ended := p.EndsWithin(exitTimeout)
			t.stop()
			switch {
			case ended:
				return n.cluster.start(p)
			case t.injected():
				return fmt.Errorf("%s got EIO from fsync and goes on: see %s", p.Name, p.Log)
			}
			still := n.places([]strike{{victim: p}})[0].led
			if acked := n.acked(led, from); len(led) > 0 && slices.Equal(led, still) && acked > 0 {
				return fmt.Errorf("%s acknowledged %d writes on the shards that it led, and never called fsync: see %s", p.Name, acked, p.Log)
			}
			return nil // it wrote nothing
		}, nil
	}},
	{flipName, orders, true, false, 3 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		if n.othersDamaged(p) {
			return func() error { return nil }, nil
		}
		p.Signal(syscall.SIGKILL)
		p.damaged.Store(true)
		n.forfeit(p, time.Now())
		err := n.flip(p)
		if err == nil {
			err = n.cluster.start(p)
		}
		return func() error { p.EndsWithin(time.Second); return nil }, err // census replaces the node
	}},
}

// othersDamaged reports whether another node than p has damaged files that may not be repaired yet. Of
// three replicas two must stay.
func (n *nemesis) othersDamaged(p *process) bool {
	return slices.ContainsFunc(n.cluster.members(), func(other *process) bool { return other != p && other.damaged.Load() })
}

// flip flips bits in files of a node, but not in node.json, which contains the node's
// id.
func (n *nemesis) flip(p *process) error {
	var files []string
	err := filepath.WalkDir(p.Data, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "node.json" {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("find the files of %s", p.Name))
	}
	for range flips {
		path := files[n.random.IntN(len(files))]
		raw, err := os.ReadFile(path)
		if err != nil || len(raw) == 0 {
			continue
		}
		at := n.random.IntN(len(raw))
		raw[at] ^= 1 << n.random.IntN(8)
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			return fmt.Errorf("flip a bit: %w", err)
		}
		n.say("  bit flipped in %s at %d of %d", strings.TrimPrefix(path, p.Data), at, len(raw))
	}
	return nil
}

// tracer is an strace process attached to a node.
type tracer struct {
	cmd  *exec.Cmd
	path string
}

// trace makes strace inject the given effect into each fsync and fdatasync of a node.
func trace(p *process, what string) (*tracer, error) {
	t := &tracer{path: p.Log + ".strace"}
	t.cmd = exec.Command("strace", "-f", "-qq", "-o", t.path, "-p", fmt.Sprint(p.Process().PID()),
		"-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:"+what)
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := t.cmd.Start(); err != nil {
		return nil, fmt.Errorf("trace %s: %w", p.Name, err)
	}
	return t, nil
}

// stop detaches strace from the node.
func (t *tracer) stop() {
	_ = t.cmd.Process.Signal(syscall.SIGTERM) // strace may have ended with the process that it traced
	_ = t.cmd.Wait()
}

func (t *tracer) injected() bool {
	raw, err := os.ReadFile(t.path)
	return err == nil && strings.Contains(string(raw), "INJECTED")
}
