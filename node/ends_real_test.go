package node_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"facet/internal/must"
	_ "facet/node/bucket/clouds" // s3://
	"facet/node/nodetest"
	"facet/node/wire"
)

// Backups and restorations that are done, failed or given up have one act each; scheduled ones, too.
func TestEndsOfBackupsAreRecorded(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	old := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 2})
	c := old.Client("bank")
	gallery(t, c, old.Nodes[0].URL, "staff", 200)
	enrol(t, c, old.Nodes[0].URL, "ann")
	to := "file://" + t.TempDir()
	backups := old.Nodes[0].Node.Backups()
	waitJob(t, backups, backups.StartBackup(wire.BackupOrder{To: to, Name: "first"}))
	waitJob(t, backups, backups.StartBackup(wire.BackupOrder{To: to, Name: "second", Galleries: []string{"bank/nobody"}}))
	waitJob(t, backups, backups.StartRestore(wire.RestoreOrder{BackupQuery: wire.BackupQuery{From: to, Name: "first"}}))
	arrived := make(chan struct{}, 100)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	defer hanging.Close()
	if !backups.StartBackup(wire.BackupOrder{To: "s3://photos?anonymous=true&region=x&s3ForcePathStyle=true&endpoint=" + hanging.URL, Name: "third"}) {
		t.Fatal("the third backup was not begun")
	}
	select {
	case <-arrived:
	case <-time.After(time.Minute):
		t.Fatalf("the store was not asked: %+v", backups.Progress(""))
	}
	restart(old, 0)
	hasEnds(t, old.Nodes[0].Node, "make a backup",
		[2]string{"done: first in " + to, ", 1 events"}, [2]string{"failed: second in " + to, "bank/nobody"}, [2]string{"given up: third in s3://photos,", "the node stops"})
	hasEnds(t, old.Nodes[0].Node, "restore a backup", [2]string{"failed: first in " + to, "not empty"})

	young := successor(t, old, nodetest.Options{Nodes: 1, Shards: 2})
	backups = young.Nodes[0].Node.Backups()
	waitJob(t, backups, backups.StartRestore(wire.RestoreOrder{BackupQuery: wire.BackupQuery{From: to}}))
	hasEnds(t, young.Nodes[0].Node, "restore a backup", [2]string{"done: first in " + to, ", 1 events"})
	young.Stop(0)
	cfg := &young.Nodes[0].Config
	cfg.BackupTo, cfg.BackupEvery, cfg.BackupKeep = "file://"+t.TempDir(), 2*time.Second, 100
	young.Restart(0)
	young.WaitReady()
	until(func() bool { return len(endsOf(t, young.Nodes[0].Node, "make a backup")) >= 2 })
	cfg.BackupTo, cfg.BackupEvery, cfg.BackupKeep = "", 0, 0
	folder := young.Nodes[0].Node.Backups().Scheduled()
	restart(young, 0)
	list, err := young.Nodes[0].Node.Backups().List(t.Context(), wire.BackupQuery{From: folder})
	must.Do(t, err)
	var want [][2]string
	for _, l := range list {
		if l.Finished {
			want = append(want, [2]string{"done: " + l.Name, "by node "})
		}
	}
	if len(want) < 2 || !strings.HasPrefix(want[0][0], "done: auto-") {
		t.Errorf("the schedule has made %v", list)
	}
	hasEnds(t, young.Nodes[0].Node, "make a backup", want...)
}
