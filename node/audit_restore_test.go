package node_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/tiles"
	"facet/node/audit/entry"
	"facet/node/nodetest"
	"facet/node/wire"
)

// The first record of a restored tenant's log names the last checkpoint of the former log that the backup has,
// even when requests come to all nodes at once.
func TestRestoredLogNamesFormerCheckpoint(t *testing.T) {
	t.Parallel()
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
}
