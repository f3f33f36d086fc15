package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = 2 * time.Minute
	stopTimeout  = 90 * time.Second
)

// info is the content of dev.json that an outside program uses.
type info struct {
	BaseURLs   []string   `json:"base_urls"`
	PortalURLs []string   `json:"portal_urls"`
	CAFile     string     `json:"ca_file"`
	AccessKey  string     `json:"access_key"`
	SecretKey  string     `json:"secret_key"`
	Region     string     `json:"region"`
	Service    string     `json:"service"`
	Nodes      []nodeInfo `json:"nodes"`
}

type nodeInfo struct {
	ID  string   `json:"id"`
	PID int      `json:"pid"`
	URL string   `json:"url"`
	Dir string   `json:"dir"`
	Cmd []string `json:"cmd"`

	Admin string `json:"admin"`
}

// cluster is a running `facet dev`.
type cluster struct {
	dir  string
	info info

	cmd    *exec.Cmd
	out    buffer
	exited chan struct{}
}

// buffer is the output of a process so far.
type buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// startDev runs `facet dev --dir dir` until its cluster is ready.
func startDev(t *testing.T, dir string, args ...string) *cluster {
	t.Helper()
	c := &cluster{dir: dir, exited: make(chan struct{})}
	c.cmd = exec.Command(program(), append([]string{"dev", "--dir", dir}, args...)...)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	if err := starter.Start(c.cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		c.cmd.Wait()
		close(c.exited)
	}()
	for end := time.Now().Add(startTimeout); ; time.Sleep(50 * time.Millisecond) {
		var err error
		if c.info, err = readInfo(dir); err == nil {
			return c
		}
		select {
		case <-c.exited:
			t.Fatalf("facet dev ended (%s):\n%s", c.cmd.ProcessState, &c.out)
		default:
		}
		if time.Now().After(end) {
			c.stop()
			t.Fatalf("facet dev does not serve: %v\n%s", err, &c.out)
		}
	}
}

// own starts a cluster for one test, which may break it.
func own(t *testing.T, args ...string) *cluster {
	t.Helper()
	c := startDev(t, filepath.Join(t.TempDir(), "cluster"), append([]string{"--nodes", "3"}, args...)...)
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("facet dev said:\n%s", &c.out)
			for _, n := range []string{"n1", "n2", "n3"} {
				t.Logf("end of %s.log:\n%s", n, logEnd(filepath.Join(c.dir, n+".log")))
			}
		}
	})
	return c
}

func logEnd(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-6000):])
}

func readInfo(dir string) (info, error) {
	var i info
	b, err := os.ReadFile(filepath.Join(dir, "dev.json"))
	if err != nil {
		return i, err
	}
	return i, json.Unmarshal(b, &i)
}

// stop ends facet dev with SIGTERM, as an operator does. It may be called twice.
func (c *cluster) stop() error {
	select {
	case <-c.exited:
	default:
		c.cmd.Process.Signal(syscall.SIGTERM)
	}
	select {
	case <-c.exited:
	case <-time.After(stopTimeout):
		c.cmd.Process.Kill()
		<-c.exited
		return fmt.Errorf("facet dev did not end within %s:\n%s", stopTimeout, &c.out)
	}
	if code := c.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("facet dev ended with %d:\n%s", code, &c.out)
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

// status is the part of `facet status --json` that the tests use.
type status struct {
	Founded  bool
	Pack     string
	Warnings []string
	Nodes    []struct {
		ID, Name string
		Answers  bool
		Groups   []struct {
			Group  int
			Role   string
			Leader string
			Lag    uint64
			Events int
		}
	}
}

func (c *cluster) status() (status, error) {
	var s status
	out, err := facet("status", "--dir", c.dir, "--json")
	if unread := json.Unmarshal([]byte(out), &s); unread != nil { // else err is about the cluster's health
		return s, fmt.Errorf("facet status: %w: %s", errors.Join(err, unread), out)
	}
	return s, nil
}

// leader returns the index in info.Nodes of the node that leads a group.
func (c *cluster) leader(t *testing.T, group int) int {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		s, err := c.status()
		if err != nil {
			continue
		}
		for _, n := range s.Nodes {
			for _, g := range n.Groups {
				if g.Group == group && g.Role == "leader" {
					return slices.IndexFunc(c.info.Nodes, func(i nodeInfo) bool { return i.ID == n.ID })
				}
			}
		}
	}
	t.Fatalf("group %d has no leader", group)
	return 0
}

// waitCaughtUp waits until all nodes answer and no replica lags or lacks a leader.
func (c *cluster) waitCaughtUp(t *testing.T) {
	t.Helper()
	var s status
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if s, err = c.status(); err == nil && settled(s, len(c.info.Nodes)) {
			return
		}
	}
	t.Fatalf("the cluster does not settle: %v, %+v", err, s)
}

func settled(s status, nodes int) bool {
	if len(s.Nodes) != nodes {
		return false
	}
	for _, n := range s.Nodes {
		if !n.Answers || len(n.Groups) == 0 {
			return false
		}
		for _, g := range n.Groups {
			if g.Lag > 0 || strings.Trim(g.Leader, "0-") == "" {
				return false
			}
		}
	}
	return true
}
