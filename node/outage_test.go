package node_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/nodetest"
	"facet/node/wire"
)

func warned(s wire.Status, words string) bool {
	return slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, words) })
}

// repaired waits until three replicas of a shard vote and have equal digests.
func repaired(t *testing.T, cluster *nodetest.Cluster, number id.Shard) {
	t.Helper()
	eventually(t, cluster.Nodes[0].Node, "three voters and equal digests", func(s wire.Status) bool {
		for _, m := range s.Nodes {
			if !votesIn(m, number) || warned(s, "out of service") {
				return false
			}
		}
		first, at, _ := cluster.Nodes[0].Node.DigestHere(number)
		for _, m := range cluster.Nodes {
			sum, applied, here := m.Node.DigestHere(number)
			if !here || sum != first || applied != at {
				return false
			}
		}
		return true
	})
}

// people registers that many, and everybody tells whether each is found by every node.
func people(t *testing.T, c *nodetest.Client, url string, from, to int) map[string]string {
	t.Helper()
	known := map[string]string{}
	for i := from; i < to; i++ {
		person := fmt.Sprintf("person %d", i)
		known[person] = enrolUntil(t, c, url, person)
	}
	return known
}

func everybody(t *testing.T, c *nodetest.Client, cluster *nodetest.Cluster, known map[string]string) {
	t.Helper()
	for person, want := range known {
		for _, m := range cluster.Nodes {
			if m.Node == nil {
				continue
			}
			isFound(t, c, m.URL, person, want)
		}
	}
}

// damage flips the lowest bit of the byte after each text in a file.
func damage(t *testing.T, path, text string) {
	t.Helper()
	b, err := os.ReadFile(path)
	must.Do(t, err)
	if !bytes.Contains(b, []byte(text)) {
		t.Fatal("there was nothing to damage")
	}
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(text))
		if i < 0 {
			break
		}
		at += i + len(text)
		b[min(at, len(b)-1)] ^= 1
	}
	must.Do(t, os.WriteFile(path, b, 0o600))
}

// A node with a damaged log serves again with all data.
func TestDamagedLogIsRebuilt(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 2}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		url := cluster.Nodes[0].URL
		gallery(t, client, url, "customers", 1000)
		known := people(t, client, url, 0, 20)
		cluster.Stop(2)
		dir := cluster.Nodes[2].Config.Dir
		damage(t, filepath.Join(dir, "group-1", "raft.db"), "Suffrage")
		maps.Copy(known, people(t, client, url, 20, 30))
		cluster.Restart(2)
		cluster.WaitReady()
		n := cluster.Nodes[2].Node
		eventually(t, n, "the alarm", func(s wire.Status) bool { return warned(s, "set aside") })
		repaired(t, cluster, 1)
		aside, err := filepath.Glob(filepath.Join(dir, "group-1.damaged-*", "raft.db"))
		if err != nil || len(aside) != 1 {
			t.Errorf("files set aside: %v, %v; want one log", aside, err)
		}
		everybody(t, client, cluster, known)
		// The rebuilt replica is as good as the old one: another node may stop.
		cluster.Stop(1)
		again := fmt.Sprintf("after %d", len(known))
		late := time.Now().Add(movesTimeout)
		for a := (nodetest.Answer{}); a.Status != http.StatusCreated; {
			if a = client.Call(t, cluster.Nodes[2].URL, http.MethodPost, "/v1.1/subjects", face(again)); time.Now().After(late) {
				t.Fatalf("register with one node stopped: %d %s", a.Status, a.Body)
			}
		}
		everybody(t, client, cluster, known)
		cluster.Restart(1)
		cluster.WaitReady()
	})
}

// A replica on a full disk rests and comes back with its files.
func TestReplicaLeavesFullDisk(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		url := cluster.Nodes[0].URL
		gallery(t, client, url, "customers", 1000)
		known := people(t, client, url, 0, 5)
		m := cluster.Nodes[1]
		m.Node.SetFree(0, 100<<30)
		m.Node.Break(1, fmt.Errorf("write the log: %w", &os.PathError{Op: "write", Path: "raft.db", Err: syscall.ENOSPC}))
		eventually(t, m.Node, "the alarm", func(s wire.Status) bool { return warned(s, "no space left") && warned(s, "nearly full") })
		known["while one is full"] = enrolUntil(t, client, url, "while one is full")
		m.Node.SetFree(50<<30, 100<<30)
		repaired(t, cluster, 1)
		if aside, err := filepath.Glob(filepath.Join(m.Config.Dir, "*.damaged-*")); err != nil || len(aside) != 0 {
			t.Errorf("good files were set aside: %v, %v", aside, err)
		}
		everybody(t, client, cluster, known)
	})
}

// enrolUntil registers a person while leaders may change.
func enrolUntil(t *testing.T, c *nodetest.Client, url, person string) string {
	t.Helper()
	var a nodetest.Answer
	for late := time.Now().Add(movesTimeout); time.Now().Before(late); time.Sleep(50 * time.Millisecond) {
		if a = c.Call(t, url, http.MethodPost, "/v1.1/subjects", face(person)); a.Status == http.StatusCreated {
			var s subject
			a.Decode(t, &s)
			return s.ID
		}
	}
	t.Fatalf("register %s: %d %s", person, a.Status, a.Body)
	return ""
}

func TestUnreadableDiskStopsNode(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		n := cluster.Nodes[1].Node
		n.Break(1, fmt.Errorf("write the log: %w", &os.PathError{Op: "sync", Path: "raft.db", Err: syscall.EIO}))
		ended(t, cluster.Nodes[1])
		if !errors.Is(n.Err(), syscall.EIO) {
			t.Errorf("got %v, want the disk's error", n.Err())
		}
	})
}

// A node with a full disk refuses registrations until it has space, and nothing else.
func TestFullDiskRefusesOnlyWrites(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("tenant")
		url := cluster.Nodes[0].URL
		gallery(t, client, url, "staff", 100)
		known := enrol(t, client, url, "anna")
		for _, m := range cluster.Nodes {
			m.Node.SetFree(4<<30, 100<<30)
		}
		eventually(t, cluster.Nodes[0].Node, "the alarm", func(s wire.Status) bool {
			count := 0
			for _, m := range s.Nodes {
				count += len(m.Alarms)
			}
			return count == len(cluster.Nodes) && warned(s, "nearly full")
		})
		a := client.Call(t, url, http.MethodPost, "/v1.1/subjects", face("berta"))
		if a.Status != http.StatusInternalServerError || a.Header.Get("Retry-After") == "" {
			t.Errorf("register: %d %v %s, want 500 with Retry-After", a.Status, a.Header, a.Body)
		}
		isFound(t, client, url, "anna", known.ID)
		expect(t, client, http.StatusNoContent, url, http.MethodDelete, "/v1.1/subjects/"+known.ID, nil)
		for _, m := range cluster.Nodes {
			m.Node.SetFree(6<<30, 100<<30)
		}
		enrolUntil(t, client, url, "berta")
		eventually(t, cluster.Nodes[0].Node, "the alarm's end", func(s wire.Status) bool { return !warned(s, "nearly full") })
	})
}
