package ports

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"facet/internal/must"
)

const (
	askEnv   = "FACET_PORTS_TEST"
	askCount = 3 * blockSize
)

// TestMain prints ports and waits for its standard input to end, if a test started
// it for that.
func TestMain(m *testing.M) {
	if os.Getenv(askEnv) == "" {
		os.Exit(m.Run())
	}
	taken, err := Take(askCount)
	fmt.Fprintln(os.Stdout, taken, err)
	_, _ = os.Stdin.Read(make([]byte, 1)) // ends when the test closes the pipe
}

func TestNoTwoProcessesGetOnePort(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	const processes = 4
	seen := map[string]int{}
	for i := range processes {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), askEnv+"=1")
		stdin, err := cmd.StdinPipe()
		must.Do(t, err)
		stdout, err := cmd.StdoutPipe()
		must.Do(t, err)
		must.Do(t, cmd.Start())
		defer cmd.Wait() // its output explains a failure
		defer stdin.Close()
		line := make([]byte, 16*askCount)
		n, err := stdout.Read(line)
		must.Do(t, err)
		list, rest, _ := strings.Cut(strings.TrimPrefix(string(line[:n]), "["), "]")
		if got := strings.TrimSpace(rest); got != "<nil>" {
			t.Fatalf("process %d: %s", i, got)
		}
		if n := len(strings.Fields(list)); n != askCount {
			t.Fatalf("process %d has %d ports, want %d", i, n, askCount)
		}
		for port := range strings.FieldsSeq(list) {
			if j, ok := seen[port]; ok {
				t.Errorf("processes %d and %d have port %s", j, i, port)
			}
			seen[port] = i
		}
	}
}

func TestPortInUseIsNotTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer l.Close()
	if port := l.Addr().(*net.TCPAddr).Port; free(port) {
		t.Errorf("port %d passes as free", port)
	}
}

func TestPortIsTakenOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	seen := map[int]bool{}
	for range 2 {
		taken, err := Take(blockSize)
		must.Do(t, err)
		for _, port := range taken {
			if seen[port] || port < first || port >= first+blocks*blockSize {
				t.Errorf("port %d was given twice, or is none of ours", port)
			}
			seen[port] = true
		}
	}
}

func TestRowHasNoGap(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	seen := map[int]bool{}
	for range blockSize {
		port, err := Row(4)
		must.Do(t, err)
		for i := range 4 {
			if seen[port+i] || (port+i-first)/blockSize != (port-first)/blockSize {
				t.Errorf("a row from %d on has a port of another row or block", port)
			}
			seen[port+i] = true
		}
	}
}
