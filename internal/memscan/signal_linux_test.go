package memscan

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"facet/internal/must"
)

// copying is set in the environment of a process that only copies.
const copying = "FACET_TEST_COPIES"

// A thread of another process copies while signals interrupt it. The end of what it copies,
// which Go keeps in registers meanwhile, is found on its signal stack.
func TestRegistersInSignalFrameAreFound(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("signal frames of x86-64 only")
	}
	if cpu, err := os.ReadFile("/proc/cpuinfo"); err != nil || strings.Contains(string(cpu), "GenuineIntel") {
		t.Skip("with Intel's processors Go copies by wider registers, whose halves lie apart in a frame")
	}
	const limit = 20 * time.Second
	from := random(3, 1<<18)
	if os.Getenv(copying) != "" {
		runtime.LockOSThread()
		fmt.Fprintln(os.Stdout, unix.Gettid())
		to := make([]byte, len(from))
		for end := time.Now().Add(2 * limit); time.Now().Before(end); {
			copy(to, from)
		}
		return
	}
	p := New()
	p.Add("end", from[len(from)-128:])
	pid, thread := copier(t)
	for end := time.Now().Add(limit); time.Now().Before(end); {
		must.Do(t, unix.Tgkill(pid, thread, unix.SIGURG))
		found, _, err := p.In(pid)
		if err != nil {
			t.Skipf("the memory of another process can't be read: %v", err)
		}
		if in, others := found.Registers(); len(in) == 1 && len(others) >= 2 { // both ends of the copy
			return
		}
	}
	t.Error("the registers were not found")
}

// copier starts the other process and waits until it copies.
func copier(t *testing.T) (pid, thread int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestRegistersInSignalFrameAreFound$")
	cmd.Env = append(os.Environ(), copying+"=1")
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := fmt.Fscan(out, &thread); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, thread
}
