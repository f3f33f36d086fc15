package node_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"facet/node"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
)

// segmentsIn returns the segments of a group's folder by name.
func segmentsIn(t *testing.T, folder string) map[string]os.FileInfo {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "segments", "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]os.FileInfo{}
	for _, path := range paths {
		if files[filepath.Base(path)], err = os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// A damaged replica keeps its sound segments and receives the others.
func TestRepairKeepsSoundSegments(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		client, tenant := cluster.ClientOf("bank")
		url := cluster.Nodes[0].URL
		for _, m := range cluster.Nodes {
			waitLevel(t, m.Node, "the noted level", metafsm.Level, (*node.Node).NotedLevel)
		}
		if err := cluster.Nodes[0].Node.Router().SetAudit(t.Context(), tenant, metafsm.AuditOff, 0); err != nil { // its records would have segments, too
			t.Fatal(err)
		}
		gallery(t, client, url, "customers", 1000)
		known := map[string]string{}
		for i := range 3 { // a segment of events a time, the same ones everywhere
			maps.Copy(known, people(t, client, url, 8*i, 8*i+8))
			repaired(t, cluster, 1)
			for _, m := range cluster.Nodes {
				if err := m.Node.CutLog(1); err != nil {
					t.Fatal(err)
				}
			}
		}
		cluster.Stop(2)
		folder := filepath.Join(cluster.Nodes[2].Config.Dir, "group-1")
		before := segmentsIn(t, folder)
		if len(before) < 5 { // the operations are in two: the first two of eight were joined; the cluster's audit log has one, too
			t.Fatalf("the replica has %d segments, want 5 or more", len(before))
		}
		bad := ""
		for name, file := range before {
			if bad == "" || file.Size() > before[bad].Size() {
				bad = name
			}
		}
		path := filepath.Join(folder, "segments", bad)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[300] ^= 1 // in a sealed face, or an operation
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		damage(t, filepath.Join(folder, "raft.db"), "CurrentTerm")
		cluster.Restart(2)
		cluster.WaitReady()
		eventually(t, cluster.Nodes[2].Node, "the alarm", func(s wire.Status) bool { return warned(s, "set aside") })
		repaired(t, cluster, 1)
		after := segmentsIn(t, folder)
		for name, old := range before {
			now := after[name]
			switch {
			case now == nil:
				t.Errorf("segment %s is not there", name)
			case name == bad && os.SameFile(now, old):
				t.Error("the damaged segment was kept")
			case name != bad && !os.SameFile(now, old):
				t.Errorf("sound segment %s is another file: it was sent", name)
			}
		}
		everybody(t, client, cluster, known)
	})
}
