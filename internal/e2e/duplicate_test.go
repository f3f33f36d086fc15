package e2e

import (
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

	"facet/internal/ports"
)

// kills is how often TestKilledNodeComesUp kills a node for each pause.
var kills = flag.Int("kills", 1, "kills of a node for each pause before its restart")

func TestKilledNodeComesUp(t *testing.T) {
	c := killable(t)
	for _, pause := range []time.Duration{0, 500 * time.Millisecond, 2 * time.Second} {
		for range *kills {
			c.kill(t, 0)
			time.Sleep(pause)
			began := time.Now()
			c.revive(t, 0)
			c.waitWhole(t)
			t.Logf("pause %s: all replicas level again after %s", pause, time.Since(began).Round(time.Millisecond))
			if found := c.doubled(t); found != "" {
				t.Fatalf("pause %s: %s", pause, found)
			}
		}
	}
}

// doubled returns the warnings of facet status about a second process.
func (c *cluster) doubled(t *testing.T) string {
	t.Helper()
	s, err := statusOf(c)
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

// A process on a copy of a node's directory ends while the node is heard. When the node is paused for long, a
// process on a copy takes over, and the node ends when it goes on.
func TestCopiedDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	c := own(t)
	n := c.info.Nodes[0]
	c.kill(t, 0)
	cmd, address := copyAt(t, n)
	c.revive(t, 0)
	c.waitWhole(t)
	var out buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := starter.Start(cmd); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer late.Stop()
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(out.String(), "another process runs with this node's identity: the one at") {
		t.Fatalf("the process on the copy: %v\n%s", err, &out)
	}
	if found := c.doubled(t); !strings.Contains(found, address) {
		t.Errorf("facet status says %q, want a line with %s", found, address)
	}
	k := c.client(t, 10)
	for node := range c.info.Nodes {
		k.register(t, node, obama)
	}

	pid := c.info.Nodes[0].PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	cmd, address = copyAt(t, n) // of its present state
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := starter.Start(cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	defer func() {
		cmd.Process.Kill()
		<-ended
	}()
	within(t, "the process on the copy takes over", func() error {
		log, err := os.ReadFile(filepath.Join(c.dir, "n2.log"))
		if err == nil && !strings.Contains(string(log), address) {
			err = fmt.Errorf("n2 says nothing of %s; the process says\n%s", address, &out)
		}
		return err
	})
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.waitDead(t, 0)
	if found := c.doubled(t); !strings.Contains(found, address) {
		t.Errorf("facet status says %q, want a line with %s", found, address)
	}
}
