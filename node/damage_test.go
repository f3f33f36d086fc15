package node_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
)

// segmentsIn returns the segments of a group's folder by name.
func segmentsIn(t *testing.T, folder string) map[string]os.FileInfo {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "segments", "*.seg"))
	must.Do(t, err)
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
		setAudit(t, cluster, tenant, metafsm.AuditOff) // its records would have segments, too
		gallery(t, client, url, "customers", 1000)
		known := map[string]string{}
		for i := range 3 { // a segment of events a time, the same ones everywhere
			maps.Copy(known, people(t, client, url, 8*i, 8*i+8))
			repaired(t, cluster, 1)
			for _, m := range cluster.Nodes {
				must.Do(t, m.Node.CutLog(1))
			}
		}
		victim := leaderOf(t, cluster, 1) // which has voted, for itself
		cluster.Stop(victim)
		folder := filepath.Join(cluster.Nodes[victim].Config.Dir, "group-1")
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
		must.Do(t, err)
		b[300] ^= 1 // in a sealed face, or an operation
		must.Do(t, os.WriteFile(path, b, 0o600))
		damage(t, filepath.Join(folder, "raft.db"), "\x05x") // the candidate of its last vote
		cluster.Restart(victim)
		cluster.WaitReady()
		eventually(t, cluster.Nodes[victim].Node, "the alarm", func(s wire.Status) bool { return warned(s, "set aside") })
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

// spoil changes the state of one replica of a shard, the leader's or a follower's, and
// returns its node.
func spoil(t *testing.T, cluster *nodetest.Cluster, number id.Shard, leader bool) *node.Node {
	t.Helper()
	i := leaderOf(t, cluster, number)
	if !leader {
		i = (i + 1) % len(cluster.Nodes)
	}
	cluster.Nodes[i].Node.Spoil(number)
	return cluster.Nodes[i].Node
}

// Two replicas that differ raise an alarm; neither is taken out of service.
func TestTornPairOnlyAlarms(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 2, Shards: 1, CheckEvery: 300 * time.Millisecond}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		gallery(t, client, cluster.Nodes[0].URL, "customers", 1000)
		known := people(t, client, cluster.Nodes[0].URL, 0, 5)
		n := spoil(t, cluster, 1, false)
		eventually(t, n, "the alarm", func(s wire.Status) bool { return warned(s, "no majority") })
		s := n.Status(t.Context())
		if warned(s, "set aside") || warned(s, "out of service") {
			t.Errorf("a replica was taken out though nobody knows which is right: %v", s.Warnings)
		}
		everybody(t, client, cluster, known)
	})
}

// Equal replicas are compared and stay in service. One that differs is rebuilt, a follower's and a leader's.
func TestDivergedReplicaIsRebuilt(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 1, CheckEvery: 500 * time.Millisecond}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		gallery(t, client, cluster.Nodes[0].URL, "customers", 10_000)
		known := people(t, client, cluster.Nodes[0].URL, 0, 10)
		w := &traffic{cluster: cluster, client: client}
		w.run(t)
		total := func(of func(*node.Node) int) (n int) {
			for _, m := range cluster.Nodes {
				n += of(m.Node)
			}
			return n
		}
		within(t, time.Minute, "ten comparisons", func() bool { return total((*node.Node).Compared) >= 10 })
		for _, m := range cluster.Nodes {
			if len(m.Node.Alarms()) > 0 {
				t.Errorf("alarms of equal replicas: %v", m.Node.Alarms())
			}
		}
		for i, leader := range []bool{false, true} {
			before := total((*node.Node).Diverged)
			n := spoil(t, cluster, 1, leader)
			eventually(t, n, "the alarm", func(s wire.Status) bool { return warned(s, "set aside") && total((*node.Node).Diverged) > before })
			w.rested(func() { repaired(t, cluster, 1) })
			if got := total((*node.Node).Diverged); before != i || got != i+1 {
				t.Errorf("%d, then %d replicas were found to differ, want one more", before, got)
			}
		}
		w.check(t)
		everybody(t, client, cluster, known)
	})
}

// coldPeople is enough that most exact rows of one shard can leave the memory.
const coldPeople = 400

// crowd registers people at all nodes at once.
func crowd(t *testing.T, c *nodetest.Client, cluster *nodetest.Cluster) map[string]string {
	t.Helper()
	known := map[string]string{}
	var mu sync.Mutex
	var work sync.WaitGroup
	for part := range 8 {
		work.Go(func() {
			some := people(t, c, cluster.Nodes[part%len(cluster.Nodes)].URL, part*coldPeople/8, (part+1)*coldPeople/8)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(known, some)
		})
	}
	work.Wait()
	return known
}

// leaveRows lowers a node's memory limit until the node leaves exact rows on disk, and waits for that.
func leaveRows(t *testing.T, m *nodetest.Member) {
	t.Helper()
	within(t, movesTimeout, "rows leave the memory", func() bool {
		now := scrape(t, m)
		c := m.Config
		c.Memory = int64(now["facet_memory_events_bytes"]) + 1 // the estimate falls when templates have been opened
		must.Do(t, m.Node.Reconfigure(c))
		return now["facet_memory_templates_on_disk"] > 0
	})
}

// damageFaces flips a bit in every 64 bytes of the sealed faces of a shard's replica, in the files that
// the node has open.
func damageFaces(t *testing.T, m *nodetest.Member) {
	t.Helper()
	must.Do(t, m.Node.CutLog(1))
	folder := filepath.Join(m.Config.Dir, "group-1")
	damaged := 0
	for name, info := range segmentsIn(t, folder) {
		f, err := os.OpenFile(filepath.Join(folder, "segments", name), os.O_RDWR, 0)
		must.Do(t, err)
		var b [1]byte
		for at := int64(64); at < info.Size()/2; at += 64 { // sealed parts come first
			if _, err := f.ReadAt(b[:], at); err != nil {
				t.Fatal(err)
			}
			b[0] ^= 1
			if _, err := f.WriteAt(b[:], at); err != nil {
				t.Fatal(err)
			}
			damaged++
		}
		must.Do(t, f.Close())
	}
	if damaged < coldPeople {
		t.Fatalf("%d bits were flipped", damaged)
	}
	s, _ := m.Node.ShardHere(1)
	s.Store().Forget() // what the node has read before
}

// A replica that can't read a cold row is rebuilt, and the search goes to another one: the client gets
// its whole answer.
func TestUnreadableRowIsFoundElsewhere(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		gallery(t, client, cluster.Nodes[0].URL, "customers", 1000)
		known := crowd(t, client, cluster)
		leader := leaderOf(t, cluster, 1)
		for _, victim := range []int{(leader + 1) % 3, leader} {
			m := cluster.Nodes[victim]
			leaveRows(t, m)
			damageFaces(t, m)
			for person, want := range known {
				if got := findUntil(t, client, m.URL, person); len(got) != 1 || got[0] != want {
					t.Fatalf("node %d can't read its faces, and finds %v for %s, want %s", victim+1, got, person, want)
				}
			}
			eventually(t, cluster.Nodes[(victim+1)%3].Node, "the alarm", func(s wire.Status) bool {
				for person := range known { // on a busy machine another replica may have answered first
					findUntil(t, client, m.URL, person)
				}
				return warned(s, "set aside")
			})
			repaired(t, cluster, 1)
			everybody(t, client, cluster, known)
		}
	})
}

// The only replica that can't read a cold row says so, and gives no part of an answer.
func TestUnreadableSoleReplicaRefusesSearch(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		client, m := cluster.Client("bank"), cluster.Nodes[0]
		gallery(t, client, m.URL, "customers", 1000)
		crowd(t, client, cluster)
		leaveRows(t, m)
		damageFaces(t, m)
		refused := 0
		for i := 0; i < coldPeople && refused < 3; i++ {
			switch a := client.Call(t, m.URL, http.MethodPost, "/v1.1/face/search", probe(fmt.Sprintf("person %d", i))); a.Status {
			case http.StatusOK: // its row was in memory
			case http.StatusInternalServerError:
				refused++
				var e struct{ Message string }
				if a.Decode(t, &e); a.Header.Get("Retry-After") == "" || e.Message != "A part of the service is out of service; try again, and tell the service's operators if it stays so." {
					t.Errorf("got %q, Retry-After %q", e.Message, a.Header.Get("Retry-After"))
				}
			default:
				t.Fatalf("got %d %s", a.Status, a.Body)
			}
		}
		if refused < 3 {
			t.Error("the damaged rows were not read")
		}
		eventually(t, m.Node, "the alarm", func(s wire.Status) bool { return warned(s, "it is the only replica") })
		if _, here := m.Node.ShardHere(1); here {
			t.Error("the damaged replica still serves")
		}
	})
}
