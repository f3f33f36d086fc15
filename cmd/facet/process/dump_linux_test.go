package process

import (
	"syscall"
	"testing"
)

// prGetDumpable is PR_GET_DUMPABLE of prctl(2).
const prGetDumpable = 3

// dumpRefused reports whether this process can't be dumped any more.
func dumpRefused() bool {
	var core syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &core); err != nil || core.Max > 0 {
		return false
	}
	dumpable, _, _ := syscall.RawSyscall(syscall.SYS_PRCTL, prGetDumpable, 0, 0)
	return dumpable == 0
}

func TestBarredProcessIsNotDumped(t *testing.T) {
	t.Parallel()
	start(t, role("barred", ""))
}
