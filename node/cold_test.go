package node_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"facet/node/nodetest"
	"facet/node/wire"
)

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

// leaveRows gives a node so little memory that it leaves exact rows on disk, and waits until it has.
func leaveRows(t *testing.T, m *nodetest.Member) {
	t.Helper()
	within(t, movesTimeout, "rows leave the memory", func() bool {
		now := scrape(t, m)
		c := m.Config
		c.Memory = int64(now["facet_memory_events_bytes"]) + 1 // the estimate falls when templates have been opened
		if err := m.Node.Reconfigure(c); err != nil {
			t.Fatal(err)
		}
		return now["facet_memory_templates_on_disk"] > 0
	})
}

// damageFaces flips a bit in every 64 bytes of the sealed faces of a shard's replica, in the files that
// the node has open.
func damageFaces(t *testing.T, m *nodetest.Member) {
	t.Helper()
	if err := m.Node.CutLog(1); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(m.Config.Dir, "group-1")
	damaged := 0
	for name, info := range segmentsIn(t, folder) {
		f, err := os.OpenFile(filepath.Join(folder, "segments", name), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
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
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
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
