package e2e

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"facet/cmd/facet/dev"
	"facet/internal/must"
	"facet/internal/ports"
	"facet/internal/testkit/launch"
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
	must.Do(t, err)
	var list []string
	for _, warning := range s.Warnings {
		if strings.Contains(warning, "two processes") {
			list = append(list, warning)
		}
	}
	return strings.Join(list, "\n")
}

// copyAt copies a node's data directory. The returned function starts a process on the copy, with ports of its own.
func copyAt(t *testing.T, n dev.NodeInfo) (start func() *launch.Process, peerAddress string) {
	t.Helper()
	twin := launch.Node{Host: "127.0.0.1", Data: filepath.Join(t.TempDir(), "copy")}
	must.Do(t, os.CopyFS(twin.Data, os.DirFS(n.Dir)))
	if err := os.Remove(filepath.Join(twin.Data, "node.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var err error
	if twin.Ports, err = ports.Take(3); err != nil {
		t.Fatal(err)
	}
	return func() *launch.Process {
		t.Helper()
		p, err := launch.Start(exec.Command(n.Cmd[0], append(n.Cmd[1:], twin.Places()...)...), starter.Start)
		must.Do(t, err)
		t.Cleanup(func() { p.End(syscall.SIGKILL) })
		return p
	}, twin.Peer()
}

// A process on a copy of a node's directory ends while the node is heard. When the node is paused for long, a
// process on a copy takes over, and the node ends when it goes on.
func TestCopiedDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	c := own(t)
	n := c.info.Nodes[0]
	c.kill(t, 0)
	start, address := copyAt(t, n)
	c.revive(t, 0)
	c.waitWhole(t)
	twin := start()
	if !twin.EndsWithin(patience) || twin.Wait() != 1 || !strings.Contains(twin.Out.String(), "another process runs with this node's identity: the one at") {
		t.Fatalf("the process on the copy:\n%s", &twin.Out)
	}
	if found := c.doubled(t); !strings.Contains(found, address) {
		t.Errorf("facet status says %q, want a line with %s", found, address)
	}
	k := c.client(t, 10)
	for node := range c.info.Nodes {
		k.register(t, node, obama)
	}

	pid := c.info.Nodes[0].PID
	must.Do(t, syscall.Kill(pid, syscall.SIGSTOP))
	start, address = copyAt(t, n) // of its present state
	twin = start()
	within(t, "the process on the copy takes over", func() error {
		log, err := os.ReadFile(filepath.Join(c.dir, "n2.log"))
		if err == nil && !strings.Contains(string(log), address) {
			err = fmt.Errorf("n2 says nothing of %s; the process says\n%s", address, &twin.Out)
		}
		return err
	})
	must.Do(t, syscall.Kill(pid, syscall.SIGCONT))
	c.waitDead(t, 0)
	if found := c.doubled(t); !strings.Contains(found, address) {
		t.Errorf("facet status says %q, want a line with %s", found, address)
	}
}
