package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/cmd/facet/process"
)

const (
	writers     = 6
	calmTime    = 3 * time.Second // writes before the kill, and again after it
	backTimeMax = 20 * time.Second
	giveUpTime  = time.Minute // of one registration; the node restarts long before
)

// operation is one registration that a client wants to happen exactly once.
type operation struct {
	name    string
	started time.Time
	acked   time.Time
	subject string
}

// writer sends one registration after the other until ctx ends. It sends each one
// until it is acknowledged, and some once more after that.
type writer struct {
	k      *client
	number int
	face   string
	done   []operation
}

// run writes until ctx ends. It then completes the present operation, so that every
// one is acknowledged in the end.
func (w *writer) run(ctx context.Context, acked func(operation)) error {
	for n := 0; ctx.Err() == nil; n++ {
		op := operation{name: fmt.Sprintf("%d-%d", w.number, n), started: time.Now()}
		key := "" // half of them rely on equal bytes instead
		if n%2 == 0 {
			key = op.name
		}
		// The unknown field makes bodies, and so signatures, differ between operations.
		r, err := w.k.sign(http.MethodPost, "/v1.1/subjects", key, map[string]any{"face": w.face, "operation": op.name})
		if err != nil {
			return err
		}
		if op.subject, err = w.insist(n, r); err != nil {
			return fmt.Errorf("operation %s: %w", op.name, err)
		}
		op.acked = time.Now()
		acked(op)
		w.done = append(w.done, op)
		if n%5 < 2 { // as if the answer had been lost: by key, and by equal bytes
			again, err := w.insist(n+1, r)
			if err != nil {
				return fmt.Errorf("operation %s again: %w", op.name, err)
			}
			if again != op.subject {
				return fmt.Errorf("operation %s: first %s, resent %s", op.name, op.subject, again)
			}
		}
	}
	return nil
}

// insist sends r to one node after the other until one acknowledges it.
func (w *writer) insist(n int, r signed) (subject string, err error) {
	for begin, try := time.Now(), 0; time.Since(begin) < giveUpTime; try++ {
		a, err := w.k.send((w.number+n+try)%len(w.k.info.Nodes), r)
		switch {
		case err != nil: // the node is dead, or died at work
		case a.status == 201:
			var got registered
			err := json.Unmarshal(a.body, &got)
			return got.ID, err
		case a.status != 500:
			return "", fmt.Errorf("got %d %.200s", a.status, a.body)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return "", fmt.Errorf("not acknowledged within %s", giveUpTime)
}

// crash holds the state of the kill, which the main goroutine and the writers share.
type crash struct {
	mu     sync.Mutex // guards killed and back
	killed time.Time
	back   time.Time // time of the first acknowledgement of an operation started after the kill
}

func (c *crash) acked(op operation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.killed.IsZero() && c.back.IsZero() && op.started.After(c.killed) {
		c.back = op.acked
	}
}

func (c *crash) took() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.back.Sub(c.killed), !c.back.IsZero()
}

// No acknowledged registration is lost or doubled.
func TestKilledLeaderLosesNoRegistration(t *testing.T) {
	c := own(t)
	k := c.client(t, 10_000)
	victim := c.leader(t, shardOf(t, k))
	images := []string{encoded(t, obama), encoded(t, collins)}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var event crash
	all := make([]*writer, writers)
	errs := make([]error, writers)
	var running sync.WaitGroup
	for i := range all {
		all[i] = &writer{k: k, number: i, face: images[i%len(images)]}
		running.Go(func() { errs[i] = all[i].run(ctx, event.acked) })
	}
	time.Sleep(calmTime)
	kill(t, c.info.Nodes[victim], &event)
	waitBack(t, &event)
	time.Sleep(calmTime)
	startAgain(t, c, victim)
	c.waitCaughtUp(t)
	time.Sleep(calmTime)
	stop()
	running.Wait()

	want, before, after := map[string]int{}, 0, 0
	byImage := []map[string]bool{{}, {}}
	for i, w := range all {
		if errs[i] != nil {
			t.Error(errs[i])
		}
		for _, op := range w.done {
			want[op.subject]++
			byImage[i%len(images)][op.subject] = true
			if op.acked.Before(event.killed) {
				before++
			} else {
				after++
			}
		}
	}
	took, _ := event.took()
	t.Logf("acknowledged %d before the kill and %d after it; %d ms to write again", before, after, took.Milliseconds())
	if before == 0 || after == 0 {
		t.Fatal("the test did not write on both sides of the kill")
	}
	c.waitCaughtUp(t)
	for node := range c.info.Nodes {
		if d := cmp.Diff(want, k.active(t, node)); d != "" {
			t.Errorf("node %d, - acknowledged, + listed: %s", node, d)
		}
	}
	searchFindsOnly(t, k, byImage, images)
}

// shardOf returns the shard of k's gallery. It registers and deletes a subject: the
// third group of its id is 8 and the shard's number.
func shardOf(t *testing.T, k *client) int {
	t.Helper()
	r := k.register(t, 0, obama)
	k.call(t, 0, http.MethodDelete, "/v1.1/subjects/"+r.ID, nil).want(t, 204, nil)
	var shard int
	if _, err := fmt.Sscanf(strings.Split(r.ID, "-")[2], "8%03x", &shard); err != nil {
		t.Fatalf("shard of %s: %v", r.ID, err)
	}
	return shard
}

// kill ends a node's process, which facet dev started for this test, with SIGKILL.
func kill(t *testing.T, n nodeInfo, event *crash) {
	t.Helper()
	event.mu.Lock()
	defer event.mu.Unlock()
	if err := syscall.Kill(n.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	event.killed = time.Now()
}

func waitBack(t *testing.T, event *crash) {
	t.Helper()
	for end := time.Now().Add(backTimeMax); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, ok := event.took(); ok {
			return
		}
	}
	t.Fatalf("nothing was written within %s of the kill", backTimeMax)
}

// startAgain starts a node with its command from dev.json, and waits until dev.json
// names its new process.
func startAgain(t *testing.T, c *cluster, node int) {
	t.Helper()
	n := c.info.Nodes[node]
	for end := time.Now().Add(10 * time.Second); !strings.Contains(c.out.String(), "died"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("facet dev did not tell of the death: %s", &c.out)
		}
	}
	if err := syscall.Kill(n.PID, 0); err == nil {
		t.Errorf("process %d lives: was it started again by itself?", n.PID)
	}
	cmd := exec.Command(n.Cmd[0], n.Cmd[1:]...)
	if err := starter.Start(cmd); err != nil {
		t.Fatal(err)
	}
	go cmd.Wait() // ends when facet dev stops the node
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if now, err := readInfo(c.dir); err == nil && now.Nodes[node].PID == cmd.Process.Pid {
			return
		}
	}
	t.Errorf("dev.json does not have the new process %d", cmd.Process.Pid)
}

// searchFindsOnly checks searches of each image by all nodes. Each returns the full
// number of candidates, all of them acknowledged and none twice.
func searchFindsOnly(t *testing.T, k *client, acknowledged []map[string]bool, images []string) {
	t.Helper()
	for i, image := range images {
		var first candidates
		for node := range k.info.Nodes {
			var found candidates
			k.post(t, node, "/v1.1/face/search", map[string]any{"probe": image, "threshold": 9999, "limit": 50}).want(t, 200, &found)
			seen := map[string]bool{}
			for _, one := range found.Candidates {
				if !acknowledged[i][one.ID] || seen[one.ID] || len(one.Events) != 1 {
					t.Errorf("image %d at node %d: %+v is not acknowledged, or twice there", i, node, one)
				}
				seen[one.ID] = true
			}
			if want := min(50, len(acknowledged[i])); len(seen) != want {
				t.Errorf("image %d at node %d: %d candidates, want %d", i, node, len(seen), want)
			}
			if node == 0 {
				first = found
			} else if d := cmp.Diff(first, found); d != "" {
				t.Errorf("image %d: nodes 0 and %d answer differently: %s", i, node, d)
			}
		}
	}
}

func TestKilledDevStopsItsNodesAndRestarts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	first := startDev(t, dir, "--nodes", "1", "--shards", "1")
	k := first.client(t, 10)
	r := k.register(t, 0, obama)
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.exited
	pidFile := filepath.Join(first.info.Nodes[0].Dir, "node.pid")
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if _, running := process.Holder(pidFile); !running {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the node lives on")
		}
	}
	// The files of a crash must not be taken for a running cluster.
	if err := os.Rename(filepath.Join(dir, "dev.json"), filepath.Join(dir, "stale.json")); err != nil {
		t.Fatal(err)
	}
	again := startDev(t, dir)
	if d := cmp.Diff(map[string]int{r.ID: 1}, k.active(t, 0)); d != "" {
		t.Error(d)
	}
	if err := again.stop(); err != nil {
		t.Error(err)
	}
}
