package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"facet/internal/must"
	"facet/node/backup"
	"facet/node/nodetest"
	"facet/node/wire"
)

// One node of three survives, is recovered and gets new replicas.
func TestLoneSurvivorIsRecovered(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 4, Founders: 3}, func(t *testing.T, cluster *nodetest.Cluster) {
		c := cluster.Client("bank")
		url := cluster.Nodes[0].URL
		gallery(t, c, url, "staff", 200)
		for i := range 30 {
			enrol(t, c, url, fmt.Sprint("person ", i))
		}
		dir := cluster.Nodes[0].Config.Dir
		if _, err := backup.OpenRecovery([]string{dir}); err == nil {
			t.Fatal("a directory on which a node runs is opened")
		}
		waitApplied(t, cluster)
		for i := range 3 {
			cluster.Stop(i)
		}
		r, err := backup.OpenRecovery([]string{dir})
		must.Do(t, err)
		if len(r.Groups) != 5 || len(r.Lost) != 0 || len(r.Gone) != 2 {
			t.Errorf("found: %+v", r)
		}
		for _, g := range r.Groups {
			if g.Voters != 3 || g.Last == 0 {
				t.Errorf("group %d: %+v", g.Group, g)
			}
		}
		must.Do(t, errors.Join(r.Carry(), r.Close()))
		cluster.Restart(0)
		cluster.WaitReady()
		for i := range 30 {
			isFound(t, c, url, fmt.Sprint("person ", i))
		}
		enrol(t, c, url, "afterwards")
		cluster.Restart(3)
		eventually(t, cluster.Nodes[0].Node, "the new node has replicas of all shards", func(s wire.Status) bool {
			two := 0
			for _, n := range s.Nodes {
				for _, g := range n.Groups {
					if n.Answers && g.Group != 0 && g.Voters == 2 && g.Lag == 0 {
						two++
					}
				}
			}
			return two == 8
		})
		isFound(t, c, cluster.Nodes[3].URL, "afterwards")
	})
}

// waitApplied waits until all nodes have applied all that is committed.
func waitApplied(t *testing.T, cluster *nodetest.Cluster) {
	t.Helper()
	eventually(t, cluster.Nodes[0].Node, "no replica lags behind", func(s wire.Status) bool {
		lag := uint64(0)
		for _, n := range s.Nodes {
			for _, g := range n.Groups {
				lag += g.Lag
			}
		}
		return lag == 0
	})
}

// A backup and a restoration continue where they were interrupted.
func TestInterruptedWorkResumes(t *testing.T) {
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, old *nodetest.Cluster) {
		c := old.Client("bank")
		url := old.Nodes[0].URL
		gallery(t, c, url, "staff", 200)
		for i := range 30 {
			enrol(t, c, url, fmt.Sprint("person ", i))
		}
		dir := t.TempDir()
		order := wire.BackupOrder{To: "file://" + dir, Name: "first"}
		ctx, cancel := context.WithCancel(t.Context())
		_, err := old.Nodes[0].Node.Backups().Backup(ctx, order, func(done, _ int) {
			if done == 2 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("the interrupted backup: %v", err)
		}
		if _, err := old.Nodes[0].Node.Backups().Verify(t.Context(), wire.BackupQuery{From: order.To, Name: "first"}, nil); err == nil {
			t.Error("an unfinished backup is verified")
		}
		before := sizes(t, dir)
		if len(before) == 0 {
			t.Fatal("no part was finished before the interruption")
		}
		old.WaitReady()
		backUp(t, old.Nodes[2], order)
		for name, was := range before {
			if raw, err := os.ReadFile(name); err != nil || string(raw) != was {
				t.Errorf("%s was made again: %v", filepath.Base(name), err)
			}
		}
		young := successor(t, old, nodetest.Options{Nodes: 1})
		from := newest(order.To)
		ctx, cancel = context.WithCancel(t.Context())
		_, err = young.Nodes[0].Node.Backups().Restore(ctx, from, func(done, total int) {
			if done > total/2 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("the interrupted restoration: %v", err)
		}
		restart(young, 0)
		if _, err := young.Nodes[0].Node.Backups().Backup(t.Context(), order, nil); err == nil {
			t.Error("a half restored cluster is backed up")
		}
		if _, err := young.CreateTenant("early"); err == nil {
			t.Error("a half restored cluster takes tenants")
		}
		if done := restore(t, young.Nodes[0], from); done.Active != 30 {
			t.Fatalf("restored: %+v", done)
		}
		c, url = young.As(c), young.Nodes[0].URL
		for i := range 30 {
			isFound(t, c, url, fmt.Sprint("person ", i))
		}
	})
}

// sizes returns the files of a backup with what they hold.
func sizes(t *testing.T, dir string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "first", "*"))
	must.Do(t, err)
	out := map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, ".tmp") {
			continue // it is being given up
		}
		raw, err := os.ReadFile(name)
		must.Do(t, err)
		out[name] = string(raw)
	}
	return out
}

func TestUnfitBackupIsRefused(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 2}, func(t *testing.T, old *nodetest.Cluster) {
		c := old.Client("bank")
		url := old.Nodes[0].URL
		gallery(t, c, url, "staff", 200)
		ann, bob := enrol(t, c, url, "ann"), enrol(t, c, url, "bob")
		expect(t, c, http.StatusOK, url, http.MethodPut, "/v1.1/subjects/"+bob.ID, face("bobby"))
		dir := t.TempDir()
		to := "file://" + dir
		early := backUp(t, old.Nodes[0], wire.BackupOrder{To: to, Name: "early"})
		expect(t, c, http.StatusNoContent, url, http.MethodDelete, "/v1.1/subjects/"+ann.ID, nil)
		backUp(t, old.Nodes[0], wire.BackupOrder{To: to, Name: "late"})
		other := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 2})
		narrow := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 1, ClusterKeyFile: old.Nodes[0].Config.ClusterKeyFile})
		q := wire.RestoreOrder{BackupQuery: wire.BackupQuery{From: to, Name: "early"}}
		f := func(on *nodetest.Cluster, q wire.RestoreOrder, want string) {
			t.Helper()
			if _, err := on.Nodes[0].Node.Backups().Restore(t.Context(), q, nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		f(old, q, "not empty")
		f(other, q, "another cluster key")
		f(narrow, q, "with 2 shards, this one has 1")
		q.Key = keyIn(t, old.Nodes[0].Config.ClusterKeyFile)
		for _, name := range []string{"shard-0001", "shard-0002", "meta"} {
			part := filepath.Join(dir, "early", name)
			raw, err := os.ReadFile(part)
			must.Do(t, err)
			flip := func() {
				raw[len(raw)/2] ^= 1
				must.Do(t, os.WriteFile(part, raw, 0o600))
			}
			flip()
			f(other, q, name)
			flip()
		}
		if r, ok := other.Nodes[0].Node.Restoration(); ok {
			t.Errorf("a refused restoration has begun: %+v", r)
		}
		var err error
		if q.Erasures, err = old.Nodes[0].Node.Erasures(t.Context(), wire.BackupQuery{From: to, Name: "late"}); err != nil || len(q.Erasures) != 1 {
			t.Fatalf("erasures: %v, %v", q.Erasures, err)
		}
		if done := restore(t, other.Nodes[0], q); done.Active != 1 || done.Erased != 1 {
			t.Fatalf("restored: %+v", done)
		}
		c, url = other.As(c), other.Nodes[0].URL
		if len(find(t, c, url, "ann")) != 0 || len(find(t, c, url, "bobby")) != 1 || len(find(t, c, url, "bob")) != 0 {
			t.Error("it is not what it was, less who was erased")
		}
		if early.Active() != 2 {
			t.Errorf("the early backup has %d events", early.Active())
		}
	})
}

func TestGalleryIsRestoredWhileServing(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 2}, func(t *testing.T, old *nodetest.Cluster) {
		c := old.Client("bank")
		url := old.Nodes[0].URL
		gallery(t, c, url, "others", 100)
		enrol(t, c, url, "someone else")
		gallery(t, c, url, "staff", 200)
		for i := range 10 {
			enrol(t, c, url, fmt.Sprint("person ", i))
		}
		to := "file://" + t.TempDir()
		backUp(t, old.Nodes[0], wire.BackupOrder{To: to, Name: "one", Galleries: []string{"bank/staff"}})
		busy := successor(t, old, nodetest.Options{Nodes: 1, Shards: 2})
		own := busy.Client("shop")
		gallery(t, own, busy.Nodes[0].URL, "staff", 100)
		enrol(t, own, busy.Nodes[0].URL, "clerk")
		q := wire.RestoreOrder{BackupQuery: wire.BackupQuery{From: to}, Gallery: "staff"}
		if done := restore(t, busy.Nodes[0], q); done.Active != 10 || done.Galleries != 1 {
			t.Fatalf("restored: %+v", done)
		}
		if _, err := busy.Nodes[0].Node.Backups().Restore(t.Context(), q, nil); err == nil || !strings.Contains(err.Error(), "already") {
			t.Errorf("once more: %v", err)
		}
		key, err := busy.Nodes[0].Node.NewTenantKey(t.Context(), "bank")
		must.Do(t, err)
		again := busy.As(c).Keyed(key)
		url = busy.Nodes[0].URL
		for i := range 10 {
			isFound(t, again, url, fmt.Sprint("person ", i))
		}
		if len(find(t, own, url, "clerk")) != 1 || len(find(t, own, url, "person 1")) != 0 {
			t.Error("the other tenant's gallery is not what it was")
		}
	})
}

// TestErasedSubjectsStayErased restores an old backup beside a newer one that has not
// even a deleted entry of the erased subject any more, into a cluster with more shards.
func TestErasedSubjectsStayErased(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 3, SlotsPerShard: 4}, func(t *testing.T, old *nodetest.Cluster) {
		c := old.Client("bank")
		url := old.Nodes[0].URL
		gallery(t, c, url, "staff", 12)
		var people []subject
		for i := range 12 {
			people = append(people, enrol(t, c, url, fmt.Sprint("person ", i)))
		}
		to := "file://" + t.TempDir()
		backUp(t, old.Nodes[0], wire.BackupOrder{To: to, Name: "early"})
		for i := range 3 {
			expect(t, c, http.StatusNoContent, url, http.MethodDelete, "/v1.1/subjects/"+people[i].ID, nil)
		}
		for i := range 3 { // they take the slots of the deleted entries
			enrol(t, c, url, fmt.Sprint("newcomer ", i))
		}
		backUp(t, old.Nodes[0], wire.BackupOrder{To: to, Name: "late"})
		if list, err := old.Nodes[0].Node.Erasures(t.Context(), wire.BackupQuery{From: to, Name: "late"}); err != nil || len(list) != 0 {
			t.Fatalf("the newer backup lists %v, %v: its entries were not recycled", list, err)
		}
		stranger := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 1})
		backUp(t, stranger.Nodes[0], wire.BackupOrder{To: to, Name: "strange"})
		for name, f := range map[string]struct {
			with   bool
			active uint64
		}{
			"left out": {false, 9}, "brought back": {true, 12},
		} {
			nodetest.Step(t, name, func(t *testing.T) {
				young := successor(t, old, nodetest.Options{Nodes: 1, Shards: 7})
				q := wire.RestoreOrder{BackupQuery: wire.BackupQuery{From: to, Name: "early"}, WithErased: f.with}
				done := restore(t, young.Nodes[0], q)
				if done.Active != f.active || done.Erased != 12-f.active {
					t.Fatalf("restored: %+v", done)
				}
				if (done.Since == "late") == f.with || slices.Equal(done.Sealed, []string{"strange"}) == f.with {
					t.Errorf("it was compared with %q, not with %q", done.Since, done.Sealed)
				}
				c, url := young.As(c), young.Nodes[0].URL
				for i, p := range people {
					want := []string{p.ID}
					if i < 3 && !f.with {
						want = nil
					}
					if got := find(t, c, url, fmt.Sprint("person ", i)); !slices.Equal(got, want) {
						t.Errorf("person %d is %v, want %v", i, got, want)
					}
				}
				for i := range 12 - int(f.active) { // the slots of those who were left out are free
					enrol(t, c, url, fmt.Sprint("afterwards ", i))
				}
			})
		}
	})
}

func TestBackupIsRefusedDuringRotation(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		c := cluster.Client("bank")
		gallery(t, c, cluster.Nodes[0].URL, "staff", 10)
		old := keyIn(t, cluster.Nodes[0].Config.ClusterKeyFile)
		n := cluster.Nodes[0].Node
		must.Do(t, n.ChangeMaster(bytes.Repeat([]byte{5}, len(old)), old))
		order := wire.BackupOrder{To: "file://" + t.TempDir(), Name: "b"}
		if _, err := n.Backups().Backup(t.Context(), order, nil); !errors.Is(err, backup.ErrKeyChanges) {
			t.Errorf("with records that the old key has wrapped: %v", err)
		}
		must.Do(t, n.ChangeMaster(old))
		backUp(t, cluster.Nodes[0], order)
	})
}
