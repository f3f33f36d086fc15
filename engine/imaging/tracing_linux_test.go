package imaging

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// limited is set in the environment of a process that limits itself as a child does.
const limited = "FACET_TEST_LIMITED"

func TestChildIsNotDumped(t *testing.T) {
	t.Parallel()
	if os.Getenv(limited) == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestChildIsNotDumped$")
		cmd.Env = append(os.Environ(), limited+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	limitChild()
	var core unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &core); err != nil || core.Max > 0 {
		t.Errorf("core dumps may have %d bytes: %v", core.Max, err)
	}
	if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || dumpable != 0 {
		t.Errorf("PR_GET_DUMPABLE is %d: %v", dumpable, err)
	}
}
