package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"facet/scripts/chaos/power"
)

const (
	// diskBytes is the size of a node's disk, an ext4 file system.
	diskBytes = 4 << 30
	// unmountTries is the most tries to unmount a disk that some process still uses.
	unmountTries = 20
	unmountPause = 100 * time.Millisecond
	// The power of a disk fails with one of its next cutCalls writes and flushes, or
	// after cutPatience.
	cutCalls    = 60
	cutPatience = 300 * time.Millisecond
)

// disk is the file system of one node. It can be filled up, frozen, and lose power.
type disk struct {
	path   string
	drive  *power.Mounted
	frozen atomic.Bool
}

// mount creates a file system and mounts it on path.
func mount(path string) (*disk, error) {
	served := path + ".drive"
	if err := errors.Join(os.MkdirAll(path, 0o700), os.MkdirAll(served, 0o700)); err != nil {
		return nil, fmt.Errorf("make a disk: %w", err)
	}
	drive, err := power.Open(filepath.Dir(path), diskBytes)
	if err != nil {
		return nil, err
	}
	d := &disk{path: path}
	if d.drive, err = power.Mount(drive, served); err != nil {
		return nil, errors.Join(err, drive.Close(), os.Remove(served))
	}
	// Few inodes and a small journal, because the drive copies everything that mkfs
	// writes.
	err = command("mkfs.ext4", "-q", "-m", "0", "-N", "16384", "-J", "size=16", "-E", "nodiscard", d.drive.Image)
	if err == nil {
		err = d.attach()
	}
	if err != nil {
		return nil, errors.Join(err, d.drive.Close(), os.Remove(served))
	}
	return d, nil
}

// attach mounts the file system.
func (d *disk) attach() error { return command("mount", "-o", "loop", d.drive.Image, d.path) }

// detach unmounts the file system.
func (d *disk) detach() (err error) {
	for range unmountTries {
		if err = command("umount", d.path); err == nil {
			return nil
		}
		time.Sleep(unmountPause)
	}
	return err
}

// command runs a system command.
func command(name string, args ...string) error {
	if text, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, text)
	}
	return nil
}

// disksWork reports whether this user can make disks on this machine.
func disksWork(dir string) bool {
	d, err := mount(filepath.Join(dir, "disk"))
	return err == nil && d.unmount() == nil
}

// unmount removes the disk with all its content.
func (d *disk) unmount() error {
	d.thaw()
	if err := d.detach(); err != nil {
		return err
	}
	return errors.Join(d.drive.Close(), os.Remove(d.path+".drive"))
}

// cut cuts the power of the nodes' disks while they work. It kills the nodes before
// they can act on a write that their disk did not get.
func cut(random *rand.Rand, nodes ...*process) {
	for _, p := range nodes {
		p.disk.drive.CutAfter(random.IntN(cutCalls))
	}
	for began := time.Now(); time.Since(began) < cutPatience && slices.ContainsFunc(nodes, func(p *process) bool { return p.disk.drive.Powered() }); {
		time.Sleep(time.Millisecond)
	}
	for _, p := range nodes {
		p.disk.drive.Cut()
	}
	for _, p := range nodes {
		p.Signal(syscall.SIGCONT)
		p.doom()
	}
	for _, p := range nodes {
		p.disk.drive.Off()
		p.Signal(syscall.SIGKILL)
	}
}

// restore turns the disk's power on again. The disk then has everything that was
// flushed, and a part of the rest.
func (d *disk) restore(random *rand.Rand) (power.Loss, error) {
	if err := d.detach(); err != nil {
		return power.Loss{}, err
	}
	loss, err := d.drive.On(random)
	if err != nil {
		return loss, err
	}
	return loss, d.attach()
}

// fill leaves left bytes of the disk free; empty undoes it.
func (d *disk) fill(left uint64) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.path, &s); err != nil {
		return fmt.Errorf("measure %s: %w", d.path, err)
	}
	f, err := os.OpenFile(filepath.Join(d.path, "ballast"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("fill %s: %w", d.path, err)
	}
	defer f.Close()
	if free := s.Bavail * uint64(s.Bsize); free > left {
		// If the node has taken room meanwhile, the ballast takes all that is left.
		if err := syscall.Fallocate(int(f.Fd()), 0, 0, int64(free-left)); err != nil && !errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("fill %s: %w", d.path, err)
		}
	}
	return nil
}

// empty removes what fill took. A loss of power soon afterwards must not bring it back.
func (d *disk) empty() error {
	if err := os.Remove(filepath.Join(d.path, "ballast")); err != nil {
		return fmt.Errorf("empty %s: %w", d.path, err)
	}
	return command("sync", "-f", d.path)
}

// freeze makes every write wait until thaw.
func (d *disk) freeze() error {
	if err := command("fsfreeze", "-f", d.path); err != nil {
		return err
	}
	d.frozen.Store(true)
	return nil
}

func (d *disk) thaw() {
	if d.frozen.Swap(false) {
		_ = exec.Command("fsfreeze", "-u", d.path).Run() // else unmount says so
	}
}
