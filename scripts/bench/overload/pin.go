//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// The cores of the two sides.
const (
	clientCore = 0
	nodeCore   = 1
)

func only(core int) (set unix.CPUSet) {
	set.Set(core)
	return set
}

// pinSelf puts this process on its core: it starts itself anew from a thread that is
// there, since the runtime's other threads stay where they are.
func pinSelf() error {
	var now unix.CPUSet
	if err := unix.SchedGetaffinity(0, &now); err != nil {
		return fmt.Errorf("read the cores: %w", err)
	}
	if now == only(clientCore) {
		return nil
	}
	if now.Count() < 2 || !now.IsSet(nodeCore) || !now.IsSet(clientCore) {
		return errors.New("two cores are needed: one for the node, one for the clients")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	set := only(clientCore)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("take core %d: %w", clientCore, err)
	}
	return fmt.Errorf("start on core %d: %w", clientCore, unix.Exec(self, os.Args, os.Environ()))
}

// startOn starts cmd on a core: a child has its parent thread's.
func startOn(core int, cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set, back := only(core), only(clientCore)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("take core %d: %w", core, err)
	}
	return errors.Join(cmd.Start(), unix.SchedSetaffinity(0, &back))
}
