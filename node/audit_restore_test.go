package node_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/tiles"
	"facet/node/audit/entry"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
)

// The first record of a restored tenant's log names the last checkpoint of the former log that the backup has,
// even when requests come to all nodes at once.
func TestRestoredLogNamesFormerCheckpoint(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		old := startAudited(t)
		gallery(t, old.client, old.url(0), "staff", 200)
		for i := range 5 {
			enrol(t, old.client, old.url(i%3), fmt.Sprint("person ", i))
		}
		before := len(old.read(t, 0))
		key := strings.TrimSpace(string(expect(t, old.auditor, http.StatusOK, old.url(0), http.MethodGet, "/api/audit/key", nil).Body))
		to := "file://" + t.TempDir()
		if _, err := old.cluster.Nodes[1].Node.Backups().Backup(t.Context(), wire.BackupOrder{To: to, Name: "first"}, nil); err != nil {
			t.Fatal(err)
		}
		young := nodetest.Start(t, nodetest.Options{SlotsPerShard: 100, Table: nodetest.Table(), ClusterKeyFile: old.cluster.Nodes[0].Config.ClusterKeyFile})
		if _, err := young.Nodes[0].Node.Backups().Restore(t.Context(), wire.RestoreOrder{BackupQuery: wire.BackupQuery{From: to}}, nil); err != nil {
			t.Fatal(err)
		}
		again := &audited{promises: promises{young}, client: young.As(old.client), auditor: young.As(old.auditor), tenant: old.tenant, seen: map[string]int{}}
		for _, m := range young.Nodes {
			if err := m.Node.Router().SyncMeta(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var at sync.WaitGroup
		for i := range 12 {
			at.Go(func() { again.call(t, i%3, http.MethodGet, "/api/galleries", nil) })
		}
		at.Wait()
		for late := time.Now().Add(10 * time.Second); again.auditor.Call(t, again.url(2), http.MethodGet, "/api/audit/checkpoint", nil).Status != http.StatusOK; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(late) {
				t.Fatal("the restored tenant has no log")
			}
		}
		records := again.readAll(t, 2)
		for i, r := range records {
			if (i == 0) != (r.Kind == entry.Act && r.Operation == entry.OperationRestored && r.Former != "") {
				t.Errorf("record %d is %v %q, and names %q", i, r.Kind, r.Operation, r.Former)
			}
		}
		former, _, err := tiles.Open([]byte(records[0].Former), key)
		if err != nil {
			t.Fatal(err)
		}
		if former.N < int64(before) {
			t.Errorf("the checkpoint has %d records, and %d were there before the backup", former.N, before)
		}
		var leaves []tlog.Hash
		for _, r := range old.read(t, 0)[:former.N] {
			leaves = append(leaves, tlog.RecordHash(r.Encode()))
		}
		if rootOf(leaves) != former.Hash {
			t.Error("the former log has another root at this size")
		}
	})
}

// The act of a restoration names the last checkpoint of the former cluster's own log, also when the order is given
// again. A backup without a checkpoint is restored, too, and its act names none.
func TestRestoredClusterNamesFormerLog(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		for level, names := range map[uint32]bool{metafsm.LevelAudit - 1: false, metafsm.LevelAudit: true} {
			old := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 2, Level: level})
			c := old.Client("bank")
			gallery(t, c, old.Nodes[0].URL, "staff", 200)
			enrol(t, c, old.Nodes[0].URL, "ann")
			if names {
				waitNewest(t, old)
				if !until(func() bool { return len(old.Nodes[0].Node.ClusterRecords(t)) > 0 }) {
					t.Fatal("the cluster's log has no record")
				}
			}
			to := "file://" + t.TempDir()
			backups := old.Nodes[0].Node.Backups()
			waitJob(t, backups, backups.StartBackup(wire.BackupOrder{To: to, Name: "first"}))
			young := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 2, ClusterKeyFile: old.Nodes[0].Config.ClusterKeyFile})
			waitNewest(t, young)
			backups = young.Nodes[0].Node.Backups()
			for range 2 {
				waitJob(t, backups, backups.StartRestore(wire.RestoreOrder{BackupQuery: wire.BackupQuery{From: to}}))
			}
			var acts []entry.Shown
			until(func() bool {
				acts = slices.DeleteFunc(young.Nodes[0].Node.ClusterRecords(t), func(r entry.Shown) bool { return r.Operation != entry.OperationRestore })
				return len(acts) >= 2
			})
			if len(acts) != 2 || acts[0].Former != acts[1].Former || (acts[0].Former != "") != names {
				t.Fatalf("level %d: the restorations have the acts %+v", level, acts)
			}
			if names {
				continuesLog(t, old, acts[0].Former)
			}
		}
	})
}

// continuesLog checks that a cluster has signed a checkpoint of its own log.
func continuesLog(t *testing.T, c *nodetest.Cluster, signed string) {
	t.Helper()
	n := c.Nodes[0].Node
	former, _, err := tiles.Open([]byte(signed), strings.TrimSpace(string(n.ClusterFile(t, "key"))))
	if err != nil {
		t.Fatal(err)
	}
	now, err := tiles.Claimed(n.ClusterFile(t, tiles.CheckpointPath))
	if err != nil {
		t.Fatal(err)
	}
	at := tiles.In(tiles.EntryLevel, 0, now.N)
	entries, err := tiles.Entries(n.ClusterFile(t, tiles.Path(at)), at.W)
	if err != nil {
		t.Fatal(err)
	}
	var leaves []tlog.Hash
	for _, e := range entries[:former.N] {
		leaves = append(leaves, tlog.RecordHash(e))
	}
	if former.N == 0 || rootOf(leaves) != former.Hash {
		t.Errorf("the former log has another root at %d of its %d records", former.N, now.N)
	}
}
