package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
)

// diskBytes is the size of a node's disk: a sparse file with an ext4 file system.
const diskBytes = 8 << 30

// disk is a file system of a node's own, which can be filled up and frozen.
type disk struct {
	path   string
	frozen atomic.Bool
}

// mount makes a file system and mounts it on path.
func mount(path string) (*disk, error) {
	image := path + ".ext4"
	f, err := os.OpenFile(image, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		err = errors.Join(f.Truncate(diskBytes), f.Close(), os.MkdirAll(path, 0o700))
	}
	if err != nil {
		return nil, fmt.Errorf("make a disk: %w", err)
	}
	for _, args := range [][]string{{"mkfs.ext4", "-q", "-m", "0", image}, {"mount", "-o", "loop", image, path}} {
		if text, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", args[0], err, text)
		}
	}
	return &disk{path: path}, nil
}

// disksWork tells whether this machine and user can make disks.
func disksWork(dir string) bool {
	d, err := mount(filepath.Join(dir, "disk"))
	return err == nil && d.unmount() == nil
}

func (d *disk) unmount() error {
	d.thaw()
	if text, err := exec.Command("umount", d.path).CombinedOutput(); err != nil {
		return fmt.Errorf("unmount %s: %w: %s", d.path, err, text)
	}
	return os.Remove(d.path + ".ext4")
}

// fill leaves left bytes free; what undoes it is empty.
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
		// The node may have taken room meanwhile: then the ballast has the rest.
		if err := syscall.Fallocate(int(f.Fd()), 0, 0, int64(free-left)); err != nil && !errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("fill %s: %w", d.path, err)
		}
	}
	return nil
}

func (d *disk) empty() error {
	if err := os.Remove(filepath.Join(d.path, "ballast")); err != nil {
		return fmt.Errorf("empty %s: %w", d.path, err)
	}
	return nil
}

// freeze makes every write wait until thaw.
func (d *disk) freeze() error {
	if text, err := exec.Command("fsfreeze", "-f", d.path).CombinedOutput(); err != nil {
		return fmt.Errorf("freeze %s: %w: %s", d.path, err, text)
	}
	d.frozen.Store(true)
	return nil
}

func (d *disk) thaw() {
	if d.frozen.Swap(false) {
		_ = exec.Command("fsfreeze", "-u", d.path).Run() // else unmount says so
	}
}
