package e2e

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"facet/cmd/facet/process"
	"facet/internal/ports"
)

// kills is how often TestKilledNodeComesUp kills a node for each pause.
var kills = flag.Int("kills", 2, "kills of a node for each pause before its restart")

// died kills a node's process and waits until its system has ended it.
func died(t *testing.T, n nodeInfo, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, running := process.Holder(filepath.Join(n.Dir, "node.pid")); !running {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the killed process lives on")
		}
	}
}

// doubled returns the warnings of facet status about a second process.
func (c *cluster) doubled(t *testing.T) string {
	t.Helper()
	s, err := c.status()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, warning := range s.Warnings {
		if strings.Contains(warning, "two processes") {
			list = append(list, warning)
		}
	}
	return strings.Join(list, "\n")
}

func TestKilledNodeComesUp(t *testing.T) {
	c := own(t)
	n, pid := c.info.Nodes[0], c.info.Nodes[0].PID
	for _, pause := range []time.Duration{0, 500 * time.Millisecond, 2 * time.Second} {
		var total, worst time.Duration
		for i := range *kills {
			died(t, n, pid)
			time.Sleep(pause)
			began := time.Now()
			var out bytes.Buffer
			cmd := exec.Command(n.Cmd[0], n.Cmd[1:]...)
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := starter.Start(cmd); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }() // ends with the next kill, or with facet dev
			pid = cmd.Process.Pid
			c.waitCaughtUp(t)
			took := time.Since(began)
			total, worst = total+took, max(worst, took)
			select {
			case err := <-ended:
				t.Fatalf("pause %s, kill %d: the node ended: %v\n%s", pause, i+1, err, &out)
			default:
			}
			if found := c.doubled(t); found != "" {
				t.Fatalf("pause %s, kill %d: %s", pause, i+1, found)
			}
		}
		t.Logf("pause %s: %d kills, all replicas level again after %s on average, %s at most", pause, *kills, (total / time.Duration(*kills)).Round(time.Millisecond), worst.Round(time.Millisecond))
	}
}

// copyAt returns the command of a node on a copy of its data directory, with ports of its own.
func copyAt(t *testing.T, n nodeInfo) (cmd *exec.Cmd, peerAddress string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(n.Dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "node.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	free, err := ports.Take(3)
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{}, n.Cmd[1:]...)
	args = append(args, "--dir", dir)
	for i, flag := range []string{"--peer-address", "--public-address", "--admin-address"} {
		args = append(args, flag, net.JoinHostPort("127.0.0.1", strconv.Itoa(free[i])))
	}
	return exec.Command(n.Cmd[0], args...), net.JoinHostPort("127.0.0.1", strconv.Itoa(free[0]))
}

func TestCopiedDirectoryIsRefused(t *testing.T) {
	c := own(t)
	n := c.info.Nodes[0]
	died(t, n, n.PID)
	cmd, address := copyAt(t, n)
	startAgain(t, c, 0)
	c.waitCaughtUp(t)

	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := starter.Start(cmd); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer late.Stop()
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(out.String(), "another process runs with this node's identity: the one at") {
		t.Fatalf("the process on the copy: %v\n%s", err, &out)
	}
	if found := c.doubled(t); !strings.Contains(found, address) {
		t.Errorf("facet status says %q, want a line with %s", found, address)
	}
	c.waitCaughtUp(t)
	k := c.client(t, 10)
	for node := range c.info.Nodes {
		k.register(t, node, obama)
	}
}

// A holder that was stopped for a while goes on, unless another process took over.
func TestPausedNodeEndsAfterTakeover(t *testing.T) {
	c := own(t)
	old := c.info.Nodes[0]
	pause := func() {
		if err := syscall.Kill(old.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
	}
	resume := func() {
		if err := syscall.Kill(old.PID, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	pause()
	resume()
	c.waitCaughtUp(t)
	if found := c.doubled(t); found != "" {
		t.Errorf("after a pause: %s", found)
	}

	var out bytes.Buffer
	pause()
	cmd, address := copyAt(t, old) // of its present state
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := starter.Start(cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		cmd.Process.Kill()
		<-ended
	}()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(logOf(t, c, "n2"), address); time.Sleep(100 * time.Millisecond) {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the process on the copy ended: %v\n%s", err, &out)
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("the process on the copy does not take over")
		}
	}
	resume()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if _, running := process.Holder(filepath.Join(old.Dir, "node.pid")); !running {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the old process hears of the other and does not end")
		}
	}
	if found := c.doubled(t); !strings.Contains(found, address) {
		t.Errorf("facet status says %q, want a line with %s", found, address)
	}
}

func logOf(t *testing.T, c *cluster, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, fmt.Sprintf("%s.log", name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
