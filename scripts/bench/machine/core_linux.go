package machine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

func only(core int) (set unix.CPUSet) {
	set.Set(core)
	return set
}

// StayOn keeps this process, and the processes that it starts, on one core. It executes
// the program again from a thread on that core, because the other threads of a running
// program would stay where they are.
func StayOn(core int) error {
	var now unix.CPUSet
	if err := unix.SchedGetaffinity(0, &now); err != nil {
		return fmt.Errorf("read the cores: %w", err)
	}
	if now == only(core) {
		return nil
	}
	if now.Count() < 2 {
		return errors.New("two cores are needed, and this process may use one")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return execOn(core, self, os.Args)
}

// Exec replaces this process by a program. The program gets SIGTERM when its parent ends. The kernel
// keeps this setting for the program's first thread alone.
func Exec(program string, args []string) error {
	if err := endWithParent(); err != nil {
		return err
	}
	return fmt.Errorf("start %s: %w", program, unix.Exec(program, args, os.Environ()))
}

// ExecOn is Exec for a program that stays on one core.
func ExecOn(core int, program string, args []string) error {
	if err := endWithParent(); err != nil {
		return err
	}
	return execOn(core, program, args)
}

func endWithParent() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the parent: %w", err)
	}
	return nil
}

func execOn(core int, program string, args []string) error {
	runtime.LockOSThread()
	set := only(core)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("stay on core %d: %w", core, err)
	}
	return fmt.Errorf("start %s on core %d: %w", program, core, unix.Exec(program, args, os.Environ()))
}

// MapHuge maps memory, in huge pages if the system has some. The memory is valid until
// release is called.
func MapHuge(size int) (memory []byte, release func() error, err error) {
	memory, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, fmt.Errorf("map memory: %w", err)
	}
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE) // small pages will do
	return memory, func() error { return unix.Munmap(memory) }, nil
}

// ThreadTime returns the processor time of the calling thread.
func ThreadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // every Linux has it
	return time.Duration(t.Nano())
}
