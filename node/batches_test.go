package node_test

import (
	"net/http"
	"testing"

	"facet/internal/id"
	"facet/node"
	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
)

// TestOperationsMoveToFilesOnce upgrades a cluster node
// by node and repeats, at every step, a request that was answered before the first.
func TestOperationsMoveToFilesOnce(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 3, Shards: 1, Level: metafsm.LevelBatches - 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		c := cluster.Client("bank")
		gallery(t, c, cluster.Nodes[0].URL, "staff", 100)
		again, err := c.Sign(cluster.Nodes[0].URL, http.MethodPost, "/v1.1/subjects", face("the first"))
		if err != nil {
			t.Fatal(err)
		}
		var first subject
		repeat := func(i int) {
			t.Helper()
			a, err := c.SendAs(t.Context(), cluster.Nodes[i].URL, cluster.Nodes[0].URL, again)
			if err != nil || a.Status != http.StatusCreated {
				t.Fatalf("register: %v, %d %s", err, a.Status, a.Body)
			}
			var s subject
			if a.Decode(t, &s); first.ID == "" {
				first = s
			}
			if s.ID != first.ID {
				t.Fatalf("the same request made %s and %s", first.ID, s.ID)
			}
		}
		check := func(step string, want bool) {
			t.Helper()
			repeat(0)
			for i := range 3 {
				enrol(t, c, cluster.Nodes[i].URL, step+" "+string(rune('a'+i)))
			}
			for i := range 3 {
				if err := cluster.Nodes[i].Node.SnapshotHere(id.Shard(1)); err != nil {
					t.Fatal(err)
				}
				if got := nodetest.HasOperationFiles(t, cluster.Nodes[i].Config.Dir); got != want {
					t.Errorf("%s: node %d has operations in files: %v", step, i, got)
				}
			}
		}
		check("old nodes", false)
		upgraded(t, cluster, 0, metafsm.LevelBatches)
		upgraded(t, cluster, 1, metafsm.LevelBatches)
		check("an old node among new ones", false)
		upgraded(t, cluster, 2, metafsm.LevelBatches)
		for i := range 3 {
			waitLevel(t, cluster.Nodes[i].Node, "the noted level", metafsm.LevelBatches, (*node.Node).NotedLevel)
		}
		check("new nodes", true)
		for i := range 3 {
			cluster.Stop(i)
		}
		for i := range 3 {
			cluster.Restart(i)
		}
		cluster.WaitReady()
		for i := range 3 {
			repeat(i)
		}
		if got := find(t, c, cluster.Nodes[1].URL, "the first"); len(got) != 1 || got[0] != first.ID {
			t.Errorf("the first one is %v, want %s", got, first.ID)
		}
	})
}
