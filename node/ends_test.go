package node_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/node"
	"facet/node/audit/entry"
	"facet/node/backup"
	_ "facet/node/bucket/clouds" // s3://
	"facet/node/nodetest"
	"facet/node/wire"
)

// endsOf returns what the cluster's log says of the acts with an operation, the first one first.
func endsOf(t *testing.T, n *node.Node, operation string) (reasons []string) {
	t.Helper()
	for _, r := range n.ClusterRecords(t) {
		if r.Kind == entry.Act.String() && r.Operation == operation {
			reasons = append(reasons, r.Reason)
		}
	}
	slices.Reverse(reasons)
	return reasons
}

// hasEnds fails the test unless the log gets these ends and no more: each is a prefix and a part of a reason.
func hasEnds(t *testing.T, n *node.Node, operation string, want ...[2]string) {
	t.Helper()
	until(func() bool { return len(endsOf(t, n, operation)) >= len(want) })
	time.Sleep(time.Second)
	got := endsOf(t, n, operation)
	if len(got) != len(want) {
		t.Fatalf("%s: the log has %q, want %q", operation, got, want)
	}
	for i, reason := range got {
		if !strings.HasPrefix(reason, want[i][0]) || !strings.Contains(reason, want[i][1]) || !strings.Contains(reason, ", begun 20") {
			t.Errorf("%s: the log has %q, want %q", operation, reason, want[i])
		}
	}
}

// waitJob waits for the end of a node's job that was begun.
func waitJob(t *testing.T, b *backup.Service, begun bool) {
	t.Helper()
	if !begun || !until(func() bool { return !b.Progress("").Running }) {
		t.Fatalf("begun: %v: %+v", begun, b.Progress(""))
	}
}

// Backups and restorations that are done, failed or given up have one act each; scheduled ones, too.
func TestEndsOfBackupsAreRecorded(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	old := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 2})
	c := old.Client("bank", nil)
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
	case <-time.After(10 * time.Second):
		t.Fatalf("the store was not asked: %+v", backups.Progress(""))
	}
	old.Stop(0)
	old.Restart(0)
	old.WaitReady()
	hasEnds(t, old.Nodes[0].Node, "make a backup",
		[2]string{"done: first in " + to, ", 1 events"}, [2]string{"failed: second in " + to, "bank/nobody"}, [2]string{"given up: third in s3://photos,", "the node stops"})
	hasEnds(t, old.Nodes[0].Node, "restore a backup", [2]string{"failed: first in " + to, "not empty"})

	young := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 2, ClusterKeyFile: old.Nodes[0].Config.ClusterKeyFile})
	waitNewest(t, young)
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
	young.Stop(0)
	young.Restart(0)
	young.WaitReady()
	list, err := young.Nodes[0].Node.Backups().List(t.Context(), wire.BackupQuery{From: folder})
	if err != nil {
		t.Fatal(err)
	}
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

// A shard moves by an operator's order and another because its node leaves: each move has one act.
func TestEndsOfMovesAreRecorded(t *testing.T) {
	// 5 shards × 3 votes on 4 nodes: three nodes have 4, and one has 3.
	cluster := nodetest.Start(t, nodetest.Options{Nodes: 4, Shards: 5})
	waitNewest(t, cluster)
	first := cluster.Nodes[0].Node
	s := first.Status(t.Context())
	names := map[id.Node]string{}
	for _, m := range s.Nodes {
		names[m.ID] = m.Name
	}
	i := slices.IndexFunc(s.Nodes, func(m wire.Member) bool { return holds(s, m.ID) == 3 })
	if i < 0 {
		t.Fatalf("nobody has three votes: %+v", s.Nodes)
	}
	to, from := s.Nodes[i].ID, s.Nodes[(i+1)%4].ID
	shard := id.Shard(1)
	for votesIn(s.Nodes[i], shard) {
		shard++
	}
	if err := first.Admin().MoveShard(t.Context(), wire.ShardOrder{Shard: shard, From: from, To: to}); err != nil {
		t.Fatal(err)
	}
	eventually(t, first, "the shard has moved", func(s wire.Status) bool { return settled(s) && holds(s, to) == 4 })
	hasEnds(t, first, "move a shard", [2]string{fmt.Sprintf("done: shard %d, begun ", shard), names[from]})
	before, after, _ := strings.Cut(endsOf(t, first, "move a shard")[0], " to ")
	if _, before, _ = strings.Cut(before, " from "); strings.Contains(before, names[to]) || strings.Contains(after, names[from]) || !strings.Contains(after, names[to]) {
		t.Errorf("the move from %s to %s was from %q to %q", names[from], names[to], before, after)
	}
	leaves := cluster.Nodes[3].Node.ID()
	moves := holds(first.Status(t.Context()), leaves)
	if err := first.Admin().SetNodeState(t.Context(), wire.Order{Node: leaves, State: wire.StateDraining}); err != nil {
		t.Fatal(err)
	}
	eventually(t, first, "the node holds nothing", func(s wire.Status) bool { return settled(s) && holds(s, leaves) == 0 })
	until(func() bool { return len(endsOf(t, first, "move a shard")) >= 1+moves })
	time.Sleep(time.Second)
	done := map[string]int{}
	for _, reason := range endsOf(t, first, "move a shard")[1:] {
		what, _, _ := strings.Cut(reason, ", begun ")
		done[what]++
		if !strings.Contains(reason, ", begun 20") || strings.Contains(reason[strings.Index(reason, " to "):], names[leaves]) {
			t.Errorf("the log has %q", reason)
		}
	}
	if len(done) != moves {
		t.Errorf("%d shards have left the node, and the log has %v", moves, done)
	}
	for what, n := range done {
		if n != 1 || !strings.HasPrefix(what, "done: shard ") {
			t.Errorf("the log has %q %d times", what, n)
		}
	}
}
