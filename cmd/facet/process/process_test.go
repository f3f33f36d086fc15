package process

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"facet/internal/must"
)

// The test binary plays the other processes, because locks are between processes.
const roleVariable = "FACET_TEST_PROCESS_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "hold": // locks the file and waits
		if _, err := Lock(os.Args[1]); err != nil {
			os.Exit(3)
		}
	case "deaf": // the same, but does not end on SIGTERM
		ignoreTerm()
		if _, err := Lock(os.Args[1]); err != nil {
			os.Exit(3)
		}
	case "barred": // can't be dumped
		if BarDumps(); !dumpRefused() {
			os.Exit(3)
		}
	case "parent": // starts a holder and dies when its standard input ends
		s := OpenStarter()
		child := role("hold", os.Args[1])
		child.Stdout = os.Stdout
		if err := s.Start(child); err != nil {
			os.Exit(3)
		}
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // without Close: as if it had crashed
	}
	os.Stdout.WriteString("ready\n")
	time.Sleep(time.Minute)
}

func role(name, arg string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], arg)
	cmd.Env = append(os.Environ(), roleVariable+"="+name)
	return cmd
}

// start runs cmd until it prints that it is ready. The process is killed when the
// test ends.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		t.Fatalf("other process: got %q, %v", line, err)
	}
}

// The second process can't lock the file.
func TestSecondProcessLearnsTheHolder(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "node.pid")
	other := role("hold", name)
	start(t, other)
	_, err := Lock(name)
	var running *RunningError
	if !errors.As(err, &running) || running.PID != other.Process.Pid {
		t.Fatalf("lock: got %v, want process %d running", err, other.Process.Pid)
	}
	if pid, ok := Holder(name); !ok || pid != other.Process.Pid {
		t.Errorf("holder: got %d, %t", pid, ok)
	}
	text, err := os.ReadFile(name)
	if err != nil || strings.TrimSpace(string(text)) != strconv.Itoa(other.Process.Pid) {
		t.Errorf("text: got %q, %v, want %d", text, err, other.Process.Pid)
	}
}

// The manner of its death does not matter.
func TestLockEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "node.pid")
	other := role("hold", name)
	start(t, other)
	other.Process.Kill()
	other.Wait()
	if pid, ok := Holder(name); ok {
		t.Errorf("holder after SIGKILL: got %d", pid)
	}
	p, err := Lock(name)
	if err != nil {
		t.Fatalf("lock after SIGKILL: %v", err)
	}
	must.Do(t, p.Close())
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close: got %v, want no file", err)
	}
}

func TestNumberWithoutALockNamesNobody(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "node.pid")
	// The parent of this test is certainly alive, and certainly not ours to stop.
	must.Do(t, os.WriteFile(name, []byte(strconv.Itoa(os.Getppid())+"\n"), 0o644))
	if pid, ok := Holder(name); ok {
		t.Errorf("holder: got %d", pid)
	}
	if err := Stop(name, time.Second); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestStopEndsAHolderThatIgnoresSignals(t *testing.T) {
	t.Parallel()
	f := func(kind string, grace time.Duration) {
		t.Helper()
		name := filepath.Join(t.TempDir(), "node.pid")
		other := role(kind, name)
		start(t, other)
		if err := Stop(name, grace); err != nil {
			t.Errorf("stop %s: %v", kind, err)
		}
		if pid, ok := Holder(name); ok {
			t.Errorf("%s: %d still holds", kind, pid)
		}
	}
	f("hold", 5*time.Second)
	f("deaf", 300*time.Millisecond)
}
