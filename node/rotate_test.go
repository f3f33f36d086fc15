package node_test

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/engine"
	"facet/internal/must"
	"facet/node"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/raftfsm/fsmtest"
	"facet/raftfsm/metafsm"
)

// keyIn returns the one key of a key file.
func keyIn(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	must.Do(t, err)
	if n := strings.Count(strings.TrimSpace(string(raw)), "\n"); n > 0 {
		t.Fatalf("%s holds %d keys", filepath.Base(file), n+1)
	}
	key, err := hex.DecodeString(strings.Fields(string(raw))[0])
	must.Do(t, err)
	return key
}

// asTemplate has the scanner look for secret bytes where it looks for templates.
func asTemplate(secret []byte) engine.Template {
	var list engine.Template
	for ; len(secret) >= 4; secret = secret[4:] {
		list = append(list, math.Float32frombits(binary.LittleEndian.Uint32(secret)))
	}
	return list
}

// opened returns the files of all nodes in which a cluster key opens a gallery's key.
func opened(t *testing.T, c *nodetest.Cluster, clusterKey, galleryKey []byte) (files []string) {
	t.Helper()
	wrap, err := hkdf.Key(sha256.New, clusterKey, nil, "facet/wrap/1", 32)
	must.Do(t, err)
	for _, n := range c.Nodes {
		files = append(files, fsmtest.NewScanner(asTemplate(galleryKey), wrap).Files(t, n.Config.Dir)...)
	}
	return files
}

// whileBusy enrols, searches and makes galleries through all nodes while do runs; a
// request that fails is an error.
func whileBusy(t *testing.T, c *nodetest.Cluster, client *nodetest.Client, tenant *nodetest.Client, do func()) {
	t.Helper()
	var work sync.WaitGroup
	var over atomic.Bool
	var count atomic.Int64
	for i, n := range c.Nodes {
		work.Go(func() {
			for j := 0; !over.Load(); j++ {
				person := fmt.Sprint("busy ", i, " ", j)
				enrol(t, client, n.URL, person)
				isFound(t, client, n.URL, person)
				count.Add(1)
				time.Sleep(trafficPace)
			}
		})
		work.Go(func() {
			for j := 0; !over.Load(); j++ {
				body := map[string]any{"name": fmt.Sprint("gallery ", i, " ", j), "description": "", "faceMinimumQualityScore": 0.45, "size": 10}
				expect(t, tenant, http.StatusOK, n.URL, http.MethodPost, "/api/galleries", body)
				time.Sleep(100 * time.Millisecond) // the tenant has a quota of 1,000 galleries
			}
		})
	}
	time.Sleep(500 * time.Millisecond) // the requests are under way
	do()
	time.Sleep(500 * time.Millisecond)
	over.Store(true)
	work.Wait()
	t.Logf("%d people enrolled and found meanwhile", count.Load())
}

// TestRotationErasesOldSecrets rotates under load, and scans
// log, segments and snapshots of all nodes with the old key.
func TestRotationErasesOldSecrets(t *testing.T) {
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, cluster *nodetest.Cluster) {
		url := cluster.Nodes[0].URL
		client := cluster.Client("acme")
		gallery(t, client, url, "first", 10_000)
		enrol(t, client, url, "early")
		_, galleryKey := galleryOf(t, cluster, client)
		file := cluster.Nodes[0].Config.ClusterKeyFile
		old := keyIn(t, file)
		if found := opened(t, cluster, old, galleryKey); len(found) < 3 {
			t.Fatalf("before: the scan finds the gallery's key in %v only", found)
		}
		other := cluster.Client("other")
		var a wire.RingAnswer
		whileBusy(t, cluster, client, other, func() {
			var err error
			if a, err = cluster.Nodes[1].Node.Rotate(t.Context(), wire.RingOrder{Ring: wire.RingCluster}); err != nil {
				t.Error(err)
			}
		})
		if a.Nodes != 3 || a.Rewrapped < 5 || a.Resumed {
			t.Errorf("got %+v", a)
		}
		if _, _, err := cluster.Nodes[0].Node.Router().Signer(); err != nil {
			t.Errorf("after: the signing key can't be opened: %v", err)
		}
		now := keyIn(t, file)
		if found := opened(t, cluster, old, galleryKey); len(found) > 0 || string(now) == string(old) {
			t.Errorf("after: the old key opens the gallery's in %v", found)
		}
		if found := opened(t, cluster, now, galleryKey); len(found) < 3 {
			t.Errorf("after: the scan finds it with the new key in %v only", found)
		}
		for i := range cluster.Nodes {
			restart(cluster, i)
			isFound(t, client, cluster.Nodes[i].URL, "early")
			if _, _, err := cluster.Nodes[i].Node.Router().Signer(); err != nil { // without the old key
				t.Errorf("node %d after a restart: %v", i+1, err)
			}
			enrol(t, client, cluster.Nodes[i].URL, fmt.Sprint("late ", i))
		}
	})
}

// A rotation that a node misses ends when the node is back.
func TestMissedRotationIsResumed(t *testing.T) {
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, cluster *nodetest.Cluster) {
		cluster.Stop(2)
		order := wire.RingOrder{Ring: wire.RingGossip}
		if _, err := cluster.Nodes[0].Node.Rotate(t.Context(), order); err == nil || !strings.Contains(err.Error(), "node n3") {
			t.Fatalf("with a node away: got %v", err)
		}
		cluster.Restart(2)
		cluster.WaitReady()
		eventually(t, cluster.Nodes[0].Node, "all answer", func(s wire.Status) bool {
			answer := 0
			for _, m := range s.Nodes {
				if m.Answers {
					answer++
				}
			}
			return answer == 3
		})
		a, err := cluster.Nodes[0].Node.Rotate(t.Context(), order)
		if err != nil || a.Nodes != 3 {
			t.Fatalf("got %+v, %v", a, err)
		}
		s := cluster.Nodes[1].Node.Status(t.Context())
		for _, m := range s.Nodes {
			if c := m.Credentials; c == nil || len(c.Gossip) != 1 || c.Gossip[0].ID != a.Key.ID {
				t.Errorf("node %s: got %+v", m.Name, c)
			}
		}
		for _, w := range s.Warnings {
			if strings.Contains(w, "rotation") {
				t.Errorf("a warning is left: %s", w)
			}
		}
	})
}

// TestRotationDuringRestoreRewraps begins to restore, has the
// cluster's key changed before the records come, and stops and starts the node with the
// new key alone.
func TestRotationDuringRestoreRewraps(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1}, func(t *testing.T, old *nodetest.Cluster) {
		c, _ := old.ClientOf("bank")
		gallery(t, c, old.Nodes[0].URL, "staff", 200)
		known := people(t, c, old.Nodes[0].URL, 0, 10)
		to := "file://" + t.TempDir()
		backUp(t, old.Nodes[0], wire.BackupOrder{To: to})
		young := nodetest.Start(t, nodetest.Options{Nodes: 1})
		n := young.Nodes[0].Node
		waitLevel(t, n, "the level", metafsm.Level, func(n *node.Node) uint32 { return n.Status(t.Context()).Level })
		q := wire.RestoreOrder{BackupQuery: wire.BackupQuery{From: to, Key: keyIn(t, old.Nodes[0].Config.ClusterKeyFile)}}
		done, err := n.RestoreMeeting(t.Context(), q, func() {
			if _, err := n.ReplaceKey(t.Context(), wire.RingOrder{Ring: wire.RingCluster}); err != nil {
				t.Error(err)
			}
		})
		if err != nil || done.Active != 10 {
			t.Fatalf("restored: %+v, %v", done, err)
		}
		restart(young, 0)
		c = young.As(c)
		everybody(t, c, young, known)
		enrol(t, c, young.Nodes[0].URL, "newcomer")
	})
}
