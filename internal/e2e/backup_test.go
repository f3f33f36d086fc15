//go:build long

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
	"facet/internal/testkit/launch"
	"facet/node/wire"
)

const (
	backupShards  = 4
	restoreShards = 6 // of the cluster that a backup is restored into
)

// The test backs a cluster of three nodes up while clients write. It kills the node
// that makes the backup, continues on another node, and restores into a cluster of
// five nodes, more shards and another key.
func TestBackupSurvivesTheDeathOfItsMaker(t *testing.T) {
	store := startS3(t)
	old := serve(t, program(), 3, backupShards)
	k := old.client(t, 200_000) // its gallery lies on all shards
	erased := k.register(t, 0, collins)
	early := map[string]int{erased.ID: 1}
	for i := range 12 {
		var r registered // the unknown field makes each request unique
		k.post(t, i%3, "/v1.1/subjects", map[string]any{"face": encoded(t, obama), "operation": i}).Want(t, 201, &r)
		early[r.ID]++
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	all := writeUntil(ctx, t, k, 2)
	half := interruptBackup(t, old, store)
	out := old.facet(t, append([]string{"backup", "--to", store.url, "--name", "first"}, old.where()...)...)
	stop()
	written := all()
	if !strings.Contains(out, "first is whole") {
		t.Errorf("backup says %s", out)
	}
	whole := store.objects(t, "first")
	for name, was := range half {
		if whole[name] != was {
			t.Errorf("%s was there and whole, and was made again", name)
		}
	}
	if out, err := facet(append([]string{"backup", "verify", store.url}, old.where()...)...); err != nil {
		t.Errorf("verify: %v: %s", err, out)
	}
	for name, raw := range whole {
		if strings.Contains(raw, "staff") || strings.Contains(raw, k.APIKey) {
			t.Errorf("%s can be read without a key", name)
		}
	}
	k.call(t, 2, http.MethodDelete, "/v1.1/subjects/"+erased.ID, nil).Want(t, 204, nil)
	one := old.facet(t, append([]string{"backup", "--to", store.url, "--name", "one-gallery", "--gallery", "bank/staff"}, old.where()...)...)
	if !strings.Contains(one, "one-gallery is whole") {
		t.Errorf("backup of a gallery says %s", one)
	}
	gone := old.facet(t, append([]string{"backup", "erasures", store.url}, old.where()...)...)
	list := put(t, t.TempDir(), "erased.json", []byte(gone))
	for _, n := range old.nodes {
		n.Signal(syscall.SIGKILL)
	}
	young := serve(t, program(), 5, restoreShards)
	restore := append([]string{
		"restore", "--from", store.url, "--name", "first", "--erasures", list, "--cluster-key-of-backup", old.Certs.ClusterKey(),
	}, young.where()...)
	if out := young.facet(t, restore...); !strings.Contains(out, "1 events of erased subjects left out") {
		t.Errorf("restore says %s", out)
	}
	again := young.keyless(t, wire.KeyPair{AccessKey: k.Signer.AccessKey, SecretKey: k.Signer.SecretKey})
	again.APIKey = k.APIKey
	compareRestored(t, again, early, written, erased.ID)
	recoverTwoOfFive(t, young, again)
}

// leaderBesideMeta returns a node that leads a shard and not meta. Leaderships are
// spread soon after the founding.
func (c *served) leaderBesideMeta(t *testing.T) *launch.Node {
	t.Helper()
	var found *launch.Node
	within(t, "a node leads a shard and not meta", func() error {
		meta := c.leader(t, 0)
		for shard := 1; shard <= backupShards; shard++ {
			if found = c.leader(t, shard); found != meta {
				return nil
			}
		}
		return errors.New("one node leads everything")
	})
	return found
}

// interruptBackup starts the backup "first". It kills the node that makes it when
// some parts exist and one can't be made, because the leader of its shard stands
// still. It returns the objects that existed at the kill, and starts all nodes
// again.
func interruptBackup(t *testing.T, c *served, store s3) map[string]string {
	t.Helper()
	frozen := c.leaderBesideMeta(t)
	maker := c.nodes[0]
	if maker == frozen {
		maker = c.nodes[1]
	}
	frozen.Signal(syscall.SIGSTOP)
	done := started("backup", "--to", store.url, "--name", "first", "--admin", maker.Admin(), "--certificates", c.Certs.Admin())
	half := map[string]string{}
	within(t, "a part is made", func() error {
		if half = store.objects(t, "first"); len(half) == 0 {
			return errors.New("none is there")
		}
		return nil
	})
	maker.Signal(syscall.SIGKILL)
	half = store.objects(t, "first")
	frozen.Signal(syscall.SIGCONT)
	if _, whole := half["manifest"]; whole {
		t.Fatal("the backup was finished before its maker was killed: nothing was interrupted")
	}
	if got := <-done; got.err == nil {
		t.Errorf("the command whose node was killed says %s", got.out)
	}
	t.Logf("the node was killed when %v were there", slices.Sorted(maps.Keys(half)))
	c.waitWhole(t)
	return half
}

// compareRestored checks three things: every registration acknowledged before the
// backup continued exists, nothing exists that was never written, and the erased
// subject is gone.
func compareRestored(t *testing.T, k *client, early, written map[string]int, erased string) {
	t.Helper()
	var first map[string]int
	for node := range k.info.BaseURLs {
		got := k.active(t, node)
		if node == 0 {
			first = got
		} else if d := cmp.Diff(first, got); d != "" {
			t.Errorf("nodes 0 and %d list differently: %s", node, d)
		}
	}
	if first[erased] > 0 {
		t.Error("who was erased is back")
	}
	for s := range early {
		if s != erased && first[s] != 1 {
			t.Errorf("%s was there before the backup and is there %d times", s, first[s])
		}
	}
	for s := range first {
		if early[s]+written[s] == 0 {
			t.Errorf("%s was never written", s)
		}
	}
	t.Logf("%d subjects before the backup, %d written beside it, %d restored", len(early), len(written), len(first))
	byImage := map[string]bool{}
	for s := range first {
		if early[s] > 0 {
			byImage[s] = true
		}
	}
	searchFindsOnly(t, k, []map[string]bool{byImage}, []string{encoded(t, obama)})
	if r := k.register(t, 3, collins); r.ID == "" || r.ID == erased {
		t.Errorf("a new subject has the id %q", r.ID)
	}
}

// recoverTwoOfFive kills all nodes and recovers the cluster from the directories of two
// of them, with a third node that is new: first of two without a replica of a shard that
// has events, then of two with all shards between them.
func recoverTwoOfFive(t *testing.T, c *served, k *client) {
	t.Helper()
	want := k.active(t, 0)
	c.waitWhole(t)
	s, err := statusOf(c)
	must.Do(t, err)
	for _, n := range c.nodes {
		n.Signal(syscall.SIGKILL)
	}
	lossy, whole := survivors(t, c, func(shard string) bool { return holdsEvents(s, shard) })
	before := t.TempDir()
	for i, n := range c.nodes {
		must.Do(t, os.CopyFS(filepath.Join(before, fmt.Sprint(i)), os.DirFS(n.Data)))
	}
	recoverOf(t, c, lossy)
	waitRefused(t, k, lossy[0])
	for i, n := range c.nodes {
		n.Signal(syscall.SIGKILL)
		if i == 5 {
			break // the new node
		}
		must.Do(t, errors.Join(os.RemoveAll(n.Data), os.CopyFS(n.Data, os.DirFS(filepath.Join(before, fmt.Sprint(i))))))
	}
	recoverOf(t, c, whole)
	c.waitWhole(t)
	k.info = c.info()
	if d := cmp.Diff(want, k.active(t, len(c.nodes)-1)); d != "" {
		t.Errorf("- before, + recovered: %s", d)
	}
	k.register(t, whole[0], collins)
}

// survivors returns two nodes without a replica of a shard that holds events, and two
// with a replica of each shard.
func survivors(t *testing.T, c *served, holdsEvents func(shard string) bool) (lossy, whole [2]int) {
	t.Helper()
	lost := regexp.MustCompile(`SHARD (\d+) IS LOST`)
	for a := range c.nodes {
		for b := range a {
			out, err := facet("recover", "--dir", c.nodes[a].Data, "--dir", c.nodes[b].Data)
			if err == nil || !strings.Contains(out, "nothing was changed") || !strings.Contains(out, "may never have been acknowledged") {
				t.Fatalf("recover without --yes: %v\n%s", err, out)
			}
			shards := lost.FindAllStringSubmatch(out, -1)
			if len(shards) == 0 {
				whole = [2]int{a, b}
			}
			for _, shard := range shards {
				if holdsEvents(shard[1]) {
					lossy = [2]int{a, b}
				}
			}
		}
	}
	if lossy == whole {
		t.Fatal("no two nodes lose a shard with events, or all two lose a shard")
	}
	return lossy, whole
}

// holdsEvents reports whether a replica of the shard has events.
func holdsEvents(s wire.Status, shard string) bool {
	for _, n := range s.Nodes {
		for _, g := range n.Groups {
			if fmt.Sprint(g.Group) == shard && g.Events > 0 {
				return true
			}
		}
	}
	return false
}

// recoverOf recovers the cluster from the directories of two nodes and starts them, and
// a new node.
func recoverOf(t *testing.T, c *served, left [2]int) {
	t.Helper()
	a, b := c.nodes[left[0]], c.nodes[left[1]]
	out := c.facet(t, "recover", "--dir", a.Data, "--dir", b.Data, "--yes")
	t.Logf("recover says:\n%s", out)
	gone := out[strings.Index(out, "removed for good"):]
	for _, n := range c.nodes[:5] {
		if left := n == a || n == b; strings.Contains(gone, n.Name) == left {
			t.Errorf("%s is left: %t, and recover says %s", n.Name, left, gone)
		}
	}
	c.start(t, a)
	c.start(t, b)
	c.start(t, c.add(t))
}

// waitRefused waits until a search in a gallery on a lost shard is answered. The
// answer must be an error and never a part of the gallery.
func waitRefused(t *testing.T, k *client, node int) {
	t.Helper()
	within(t, "a search is refused", func() error {
		r, err := k.sign(http.MethodPost, "/v1.1/face/search", "", map[string]any{"probe": encoded(t, obama)})
		must.Do(t, err)
		a, err := k.send(node, r)
		if err == nil && a.Status == 200 {
			t.Fatalf("a search in a gallery with a lost shard gives %s", a.Body)
		}
		if err == nil && a.Status != 500 {
			err = fmt.Errorf("%d %s", a.Status, a.Body)
		}
		return err
	})
}
