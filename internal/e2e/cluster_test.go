package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"facet/cmd/facet/dev"
	"facet/cmd/facet/process"
	"facet/internal/must"
	"facet/internal/testkit"
	"facet/internal/testkit/launch"
	"facet/node/wire"
)

// patience is how long a test waits for a cluster. It is long, because a machine may be busy.
const patience = time.Minute

// within waits until look misses nothing. When that takes too long, it fails the test with what look missed last.
// It looks less often by and by, because a look may start a process.
func within(t *testing.T, what string, look func() error) {
	t.Helper()
	pause := 10 * time.Millisecond
	for end := time.Now().Add(patience); ; time.Sleep(pause) {
		pause = min(pause*3/2, 300*time.Millisecond)
		missing := look()
		if missing == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s: %v", what, patience, missing)
		}
	}
}

// cluster is a running `facet dev`.
type cluster struct {
	*launch.Process
	dir  string
	info dev.Info
}

// startDev runs `facet dev --dir dir` until its cluster is ready.
func startDev(t *testing.T, dir string, args ...string) *cluster {
	t.Helper()
	c := &cluster{dir: dir}
	c.start(t, args...)
	return c
}

func (c *cluster) start(t *testing.T, args ...string) {
	t.Helper()
	var err error
	c.Process, err = launch.Start(exec.Command(program(), append([]string{"dev", "--dir", c.dir}, args...)...), starter.Start)
	must.Do(t, err)
	serves := false
	defer func() {
		if !serves {
			c.logFailure(t)
		}
	}()
	within(t, "facet dev serves", func() (err error) {
		if c.Ended() {
			t.Fatalf("facet dev ended (%d)", c.Wait())
		}
		c.info, err = dev.ReadInfo(c.dir)
		return err
	})
	serves = true
}

// own starts a cluster for one test, which may break it.
func own(t *testing.T, args ...string) *cluster {
	t.Helper()
	c := startDev(t, filepath.Join(t.TempDir(), "cluster"), append([]string{"--nodes", "3"}, args...)...)
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
		c.logFailure(t)
	})
	return c
}

// logFailure logs what facet dev and its nodes said if the test has failed.
func (c *cluster) logFailure(t *testing.T) {
	t.Helper()
	if t.Failed() {
		t.Logf("facet dev said:\n%s", &c.Out)
		logs, err := filepath.Glob(filepath.Join(c.dir, "n*.log"))
		must.Do(t, err)
		for _, log := range logs {
			t.Logf("end of %s:\n%s", log, launch.Tail(log))
		}
	}
}

// killable returns the shared cluster to a test that kills its nodes. After the test all nodes run again, and
// facet status warns of nothing; otherwise the next test gets a new cluster. Such a test is not parallel, so it
// ends before parallel tests use the cluster.
func killable(t *testing.T) *cluster {
	t.Helper()
	c := shared(t)
	t.Cleanup(func() {
		c.logFailure(t)
		whole := false
		defer func() {
			if !whole {
				_ = c.stop() // it is broken
				common.cluster = nil
			}
		}()
		for node := range c.info.Nodes {
			c.revive(t, node)
		}
		c.waitWhole(t)
		within(t, "facet status warns of nothing after the test", func() error {
			out, err := facet("status", "--dir", c.dir)
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
		whole = true
	})
	return c
}

// runs returns the process of a node, if it runs.
func (c *cluster) runs(node int) (pid int, running bool) {
	return process.Holder(filepath.Join(c.info.Nodes[node].Dir, "node.pid"))
}

// wantStopped checks that none of the three nodes in a folder runs.
func wantStopped(t *testing.T, dir string) {
	t.Helper()
	for _, n := range []string{"n1", "n2", "n3"} {
		if pid, running := process.Holder(filepath.Join(dir, n, "node.pid")); running {
			t.Errorf("%s still runs: process %d", n, pid)
		}
	}
}

// waitDead waits until a node's process has ended.
func (c *cluster) waitDead(t *testing.T, node int) {
	t.Helper()
	within(t, "the node's process ends", func() error {
		if pid, running := c.runs(node); running {
			return fmt.Errorf("process %d runs", pid)
		}
		return nil
	})
}

// kill ends a node with SIGKILL, and waits until its process is gone.
func (c *cluster) kill(t *testing.T, node int) {
	t.Helper()
	pid, running := c.runs(node)
	if !running {
		t.Fatalf("node %d does not run", node)
	}
	must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
	c.waitDead(t, node)
}

// revive starts a dead node with its command from dev.json, and waits until dev.json names its new process.
func (c *cluster) revive(t *testing.T, node int) {
	t.Helper()
	if _, running := c.runs(node); running {
		return
	}
	n := c.info.Nodes[node]
	p, err := launch.Start(exec.Command(n.Cmd[0], n.Cmd[1:]...), starter.Start)
	must.Do(t, err)
	within(t, "dev.json names the new process", func() error {
		now, err := dev.ReadInfo(c.dir)
		if err == nil && now.Nodes[node].PID != p.PID() {
			err = fmt.Errorf("it names %d, not %d, which says:\n%s", now.Nodes[node].PID, p.PID(), &p.Out)
		}
		if err == nil {
			c.info = now
		}
		return err
	})
}

// stop ends facet dev with SIGTERM, as an operator does. It may be called twice.
func (c *cluster) stop() error {
	if !c.End(syscall.SIGTERM) {
		return fmt.Errorf("facet dev did not end:\n%s", &c.Out)
	}
	if code := c.Wait(); code != 0 {
		return fmt.Errorf("facet dev ended with %d:\n%s", code, &c.Out)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "dev.json")); !errors.Is(err, fs.ErrNotExist) {
		return errors.New("facet dev left dev.json")
	}
	return nil
}

// facet runs a command and returns its output, standard error last.
func facet(args ...string) (out string, err error) {
	cmd := exec.Command(program(), args...)
	cmd.Env = append(os.Environ(), "FACET_AUTHORITY_PASSPHRASE=a passphrase of tests")
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err = cmd.Run()
	return both.String(), err
}

// decode decodes the JSON that a command has printed, unless v is nil.
func decode(t *testing.T, out string, v any) {
	t.Helper()
	testkit.Answer{Status: http.StatusOK, Body: []byte(out)}.Want(t, http.StatusOK, v)
}

// ended holds the output of a command and its error.
type ended struct {
	out string
	err error
}

// started runs a command beside the test.
func started(args ...string) <-chan ended {
	done := make(chan ended, 1)
	go func() {
		out, err := facet(args...)
		done <- ended{out, err}
	}()
	return done
}

// counted returns the sum of a counter over nodes, for the labels whose text begins with the second part of series.
func counted(t *testing.T, admins []string, series string) (sum int) {
	t.Helper()
	var f testkit.Figures
	within(t, "the nodes give their metrics", func() (err error) {
		f, err = testkit.Scrape(t.Context(), admins...)
		return err
	})
	for name, n := range f {
		if strings.HasPrefix(name, series) {
			sum += int(n)
		}
	}
	return sum
}

// operated is a cluster that operators' commands reach.
type operated interface {
	where() []string // the flags that name the cluster
}

func (c *cluster) where() []string { return []string{"--dir", c.dir} }

func statusOf(c operated) (s wire.Status, err error) {
	out, err := facet(append([]string{"status", "--json"}, c.where()...)...)
	if unread := json.Unmarshal([]byte(out), &s); unread != nil { // else err is about the cluster's health
		return s, fmt.Errorf("facet status: %w: %s", errors.Join(err, unread), out)
	}
	return s, nil
}

// leaderOf returns the index of the node that leads a group. Nodes are named n1, n2 and so on.
func leaderOf(t *testing.T, c operated, group int) (node int) {
	t.Helper()
	within(t, fmt.Sprintf("group %d has a leader", group), func() error {
		leaders, err := leadersOf(c)
		if err != nil {
			return err
		}
		var found bool
		if node, found = leaders[group]; !found {
			return fmt.Errorf("%+v", leaders)
		}
		return nil
	})
	return node
}

// leadersOf returns the index of each led group's leader.
func leadersOf(c operated) (map[int]int, error) {
	s, err := statusOf(c)
	if err != nil {
		return nil, err
	}
	leaders := map[int]int{}
	for _, n := range s.Nodes {
		number, err := strconv.Atoi(n.Name[1:])
		if err != nil {
			return nil, err
		}
		for _, g := range n.Groups {
			if g.Role == "leader" {
				leaders[int(g.Group)] = number - 1
			}
		}
	}
	return leaders, nil
}

func (c *cluster) leader(t *testing.T, group int) int {
	t.Helper()
	return leaderOf(t, c, group)
}

// waitWhole waits until all nodes answer and no replica lags or lacks a leader.
func (c *cluster) waitWhole(t *testing.T) {
	t.Helper()
	waitSettled(t, c, len(c.info.Nodes), 0)
}

// waitSettled waits until so many nodes answer, all their groups have leaders, and no replica lags by more
// entries than lag.
func waitSettled(t *testing.T, c operated, nodes int, lag uint64) {
	t.Helper()
	within(t, "the cluster is whole", func() error {
		s, err := statusOf(c)
		if err != nil {
			return err
		}
		answering := 0
		for _, n := range s.Nodes {
			if !n.Answers {
				continue
			}
			answering++
			if len(n.Groups) == 0 {
				return fmt.Errorf("%s has no group", n.Name)
			}
			for _, g := range n.Groups {
				if g.Lag > lag || g.Leader.IsZero() {
					return fmt.Errorf("%s: %+v", n.Name, g)
				}
			}
		}
		if answering != nodes {
			return fmt.Errorf("%d of %d nodes answer: %+v", answering, nodes, s)
		}
		return nil
	})
}
