package process

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
)

// clobber is the setting of Go's runtime that overwrites freed memory.
const clobber = "clobberfree=1"

// A process that a Starter started ends with its starter: the system keeps this for the
// main thread only, across a new start of the program, too. So the main goroutine
// stays on the main thread until Shield is through.
func init() { runtime.LockOSThread() }

// Shield keeps images that this process works on from where they do not belong. It
// switches core dumps off, also those that the system pipes to a program. It makes
// Go's runtime overwrite memory when it is freed: the runtime reads this setting at
// its start only, so Shield starts the program again in the same process, unless that
// has happened. The main goroutine calls Shield before the process opens or starts
// anything. What
// the system does not allow is left out; the error says that the program could not be
// started again.
func Shield() error {
	if !strings.Contains(os.Getenv("GODEBUG"), clobber) {
		program, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		settings := strings.Trim(os.Getenv("GODEBUG")+","+clobber, ",")
		if err := os.Setenv("GODEBUG", settings); err != nil {
			return fmt.Errorf("set GODEBUG: %w", err)
		}
		if err := syscall.Exec(program, os.Args, os.Environ()); err != nil {
			return fmt.Errorf("start this program again: %w", err)
		}
	}
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	undump()
	runtime.UnlockOSThread()
	return nil
}
