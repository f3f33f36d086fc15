package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"facet/cmd/facet/dev"
	"facet/internal/testkit"
)

const (
	writers    = 4
	calmWrites = 16                     // acknowledged before the next thing happens
	writePause = 100 * time.Millisecond // leaves the processors to the nodes
	giveUpTime = patience               // of one registration; the node restarts long before
)

// operation is one registration that a client wants to happen exactly once.
type operation struct {
	name    string
	started time.Time
	subject string
}

// writer sends one registration after the other until ctx ends. It sends each one
// until it is acknowledged, and some once more after that.
type writer struct {
	k      *client
	number int
	face   string
	named  bool // registers with external ids, which only present software knows
	done   []operation
}

// run writes until ctx ends. It then completes the present operation, so that every
// one is acknowledged in the end.
func (w *writer) run(ctx context.Context, acked func(operation)) error {
	for n := 0; ctx.Err() == nil; n++ {
		time.Sleep(writePause)
		op := operation{name: fmt.Sprintf("%d-%d", w.number, n), started: time.Now()}
		key := "" // half of them rely on equal bytes instead
		if n%2 == 0 {
			key = op.name
		}
		// The unknown field makes bodies, and so signatures, differ between operations.
		body := map[string]any{"face": w.face, "operation": op.name}
		if w.named {
			body["externalId"] = op.name
		}
		r, err := w.k.sign(http.MethodPost, "/v1.1/subjects", key, body)
		if err != nil {
			return err
		}
		if op.subject, err = w.insist(n, r); err != nil {
			return fmt.Errorf("operation %s: %w", op.name, err)
		}
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
func (w *writer) insist(n int, r testkit.Request) (subject string, err error) {
	for begin, try := time.Now(), 0; time.Since(begin) < giveUpTime; try++ {
		a, err := w.k.send((w.number+n+try)%len(w.k.info.Nodes), r)
		switch {
		case err != nil: // the node is dead, or died at work
		case a.Status == 201:
			var got registered
			err := json.Unmarshal(a.Body, &got)
			return got.ID, err
		case a.Status < 500 && a.Status != http.StatusTooManyRequests:
			return "", fmt.Errorf("got %d %.200s", a.Status, a.Body)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return "", fmt.Errorf("not acknowledged within %s", giveUpTime)
}

// write registers with n writers until ctx ends. The returned function waits for them and returns them with what
// they did.
func write(ctx context.Context, k *client, n int, images []string, named bool, acked func(operation)) (wait func(t *testing.T) []*writer) {
	all := make([]*writer, n)
	errs := make([]error, n)
	var running sync.WaitGroup
	for i := range all {
		all[i] = &writer{k: k, number: i, face: images[i%len(images)], named: named}
		running.Go(func() { errs[i] = all[i].run(ctx, acked) })
	}
	return func(t *testing.T) []*writer {
		t.Helper()
		if running.Wait(); errors.Join(errs...) != nil {
			t.Error(errors.Join(errs...))
		}
		return all
	}
}

// No acknowledged registration is lost or doubled when the leader of the gallery's shard is killed, and when it
// starts again, and each external id finds its subject.
func TestKilledLeaderLosesNoRegistration(t *testing.T) {
	c := killable(t)
	k := c.client(t, 10_000)
	victim := c.leader(t, shardOf(t, k))
	images := []string{base64.StdEncoding.EncodeToString(photo(t, obama)), base64.StdEncoding.EncodeToString(photo(t, biden))}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var fresh atomic.Int64 // acknowledged operations of the phase that begins at begun
	var begun atomic.Int64
	acked := func(op operation) {
		if op.started.UnixNano() > begun.Load() {
			fresh.Add(1)
		}
	}
	calm := func(what string) {
		t.Helper()
		begun.Store(time.Now().UnixNano())
		fresh.Store(0)
		within(t, "registrations "+what, func() error {
			if n := fresh.Load(); n < calmWrites {
				return fmt.Errorf("%d", n)
			}
			return nil
		})
	}
	wait := write(ctx, k, writers, images, true, acked)
	calm("before the kill")
	c.kill(t, victim)
	killed := time.Now()
	calm("after the kill")
	t.Logf("%d registrations %s after the kill", calmWrites, time.Since(killed).Round(time.Millisecond))
	c.revive(t, victim)
	waitSettled(t, c, len(c.info.Nodes), 10) // the writers go on
	calm("after the restart")
	stop()
	all := wait(t)
	c.waitWhole(t)
	want := map[string]int{}
	byImage := []map[string]bool{{}, {}}
	for i, w := range all {
		for _, op := range w.done {
			want[op.subject]++
			byImage[i%len(images)][op.subject] = true
			var l listing
			if k.get(t, 0, "/v1.1/subjects?externalId="+op.name).Want(t, 200, &l); len(l.Subjects) != 1 || l.Subjects[0].ID != op.subject {
				t.Errorf("%s was registered for %s, and finds %+v", op.name, op.subject, l)
			}
		}
	}
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
	k.call(t, 0, http.MethodDelete, "/v1.1/subjects/"+r.ID, nil).Want(t, 204, nil)
	var shard int
	if _, err := fmt.Sscanf(strings.Split(r.ID, "-")[2], "8%03x", &shard); err != nil {
		t.Fatalf("shard of %s: %v", r.ID, err)
	}
	return shard
}

// searchFindsOnly checks searches of each image by all nodes. Each returns the full
// number of candidates, all of them acknowledged and none twice.
func searchFindsOnly(t *testing.T, k *client, acknowledged []map[string]bool, images []string) {
	t.Helper()
	for i, image := range images {
		var first candidates
		for node := range k.info.Nodes {
			var found candidates
			k.post(t, node, "/v1.1/face/search", map[string]any{"probe": image, "threshold": 9999, "limit": 50}).Want(t, 200, &found)
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

// facet dev keeps its data, addresses and keys when it is stopped, and when it is killed. Its nodes end with it.
func TestDevRestartsAsItWas(t *testing.T) {
	c := killable(t)
	k := c.client(t, 10)
	r := k.register(t, 0, obama)
	gone := k.register(t, 1, biden)
	k.call(t, 2, http.MethodDelete, "/v1.1/subjects/"+gone.ID, nil).Want(t, 204, nil)
	f := func(what string, end func() error) {
		t.Helper()
		if err := end(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		c.Wait()
		for node := range c.info.Nodes {
			c.waitDead(t, node)
		}
		_ = os.Remove(filepath.Join(c.dir, "dev.json")) // of a crash: it must not be taken for a running cluster
		before := c.info
		c.start(t)
		if d := cmp.Diff(before, c.info, cmpopts.IgnoreFields(dev.NodeInfo{}, "PID")); d != "" {
			t.Errorf("%s: dev.json changed: %s", what, d)
		}
		for node := range c.info.Nodes {
			if d := cmp.Diff(map[string]int{r.ID: 1}, k.active(t, node)); d != "" {
				t.Errorf("%s: list at node %d: %s", what, node, d)
			}
		}
		var found candidates
		k.post(t, 2, "/v1.1/face/search", map[string]any{"probe": encoded(t, anotherObama)}).Want(t, 200, &found)
		if len(found.Candidates) != 1 || found.Candidates[0].ID != r.ID {
			t.Errorf("%s: search: got %+v, want %s", what, found, r.ID)
		}
	}
	f("stopped", c.stop)
	f("killed", func() error { c.Signal(syscall.SIGKILL); return nil })
}
