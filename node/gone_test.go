package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"facet/internal/id"
	"facet/node/backup"
	"facet/node/nodetest"
	"facet/node/wire"
)

// vanish takes a stopped node's replicas of shards off its disk. Odd ones lose their
// folder, even ones what is in it: that is how a mount that is missing looks.
func vanish(t *testing.T, m *nodetest.Member, shards ...id.Shard) {
	t.Helper()
	for _, number := range shards {
		folder := filepath.Join(m.Config.Dir, fmt.Sprint("group-", number))
		if _, err := os.Stat(filepath.Join(folder, "raft.db")); err != nil {
			t.Fatal(err)
		}
		err := os.RemoveAll(folder)
		if number%2 == 0 && err == nil {
			err = os.Mkdir(folder, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The only replica of a shard, whose folder is gone, stays out: an empty group would answer
// without its subjects.
func TestLostSoleReplicaIsNotBootstrapped(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		m := cluster.Nodes[0]
		gallery(t, client, m.URL, "staff", 1000)
		enrol(t, client, m.URL, "anna")
		cluster.Stop(0)
		vanish(t, m, 1)
		cluster.Restart(0)
		eventually(t, m.Node, "the alarm", func(s wire.Status) bool {
			return warned(s, "is gone") && warned(s, "it is the only replica") && warned(s, "shard 1 has no leader")
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r, err := client.Sign(m.URL, http.MethodPost, "/v1.1/face/search", map[string]any{"probe": nodetest.Image("anna")})
		if err != nil {
			t.Fatal(err)
		}
		if a, err := client.Send(ctx, m.URL, r); err == nil && a.Status != http.StatusInternalServerError {
			t.Errorf("a search over what is lost is answered: %d %s", a.Status, a.Body)
		}
	})
}

// groupsOf reads the groups that a data directory's record names.
func groupsOf(t *testing.T, m *nodetest.Member) (record map[string]any, groups []id.Shard) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(m.Config.Dir, "node.json"))
	var who struct{ Groups []id.Shard }
	if err == nil {
		err = errors.Join(json.Unmarshal(raw, &who), json.Unmarshal(raw, &record))
	}
	if err != nil {
		t.Fatal(err)
	}
	return record, who.Groups
}

// A directory of an earlier release has no list of groups.
func TestOldDirectoryIsTakenAsItIs(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 2}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		m := cluster.Nodes[0]
		gallery(t, client, m.URL, "staff", 1000)
		known := people(t, client, m.URL, 0, 5)
		cluster.Stop(0)
		record, groups := groupsOf(t, m)
		want := []id.Shard{0, 1, 2}
		if !slices.Equal(groups, want) {
			t.Errorf("node.json names the groups %v, want %v", groups, want)
		}
		delete(record, "groups")
		raw, err := json.Marshal(record)
		if err == nil {
			err = os.WriteFile(filepath.Join(m.Config.Dir, "node.json"), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		cluster.Restart(0)
		cluster.WaitReady()
		everybody(t, client, cluster, known)
		if _, groups := groupsOf(t, m); !slices.Equal(groups, want) {
			t.Errorf("after a start node.json names the groups %v, want %v", groups, want)
		}
	})
}

// A replica that moves away and comes back has an empty folder for a good reason.
func TestReturningReplicaIsNotLost(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 4, Shards: 2}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		url := cluster.Nodes[1].URL
		gallery(t, client, url, "staff", 1000)
		known := people(t, client, url, 0, 5)
		m := cluster.Nodes[0]
		order := func(state string, done func(groups []id.Shard) bool) {
			t.Helper()
			setState(t, cluster.Nodes[1].Node, m.Node.ID(), state)
			eventually(t, m.Node, "moves end", func(s wire.Status) bool {
				_, groups := groupsOf(t, m)
				return settled(s) && done(groups) && !warned(s, "out of service")
			})
		}
		order(wire.StateDraining, func(groups []id.Shard) bool { return slices.Equal(groups, []id.Shard{0}) })
		order(wire.StateActive, func(groups []id.Shard) bool { return len(groups) > 1 })
		everybody(t, client, cluster, known)
	})
}

// A replica that a recovery did not choose is erased, and its node gets a new one.
func TestUnchosenReplicaIsNotLost(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 2}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		url := cluster.Nodes[0].URL
		gallery(t, client, url, "staff", 1000)
		known := people(t, client, url, 0, 5)
		waitApplied(t, cluster)
		var dirs []string
		for i, m := range cluster.Nodes {
			cluster.Stop(i)
			if i < 2 {
				dirs = append(dirs, m.Config.Dir)
			}
		}
		r, err := backup.OpenRecovery(dirs)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(r.Carry(), r.Close()); err != nil {
			t.Fatal(err)
		}
		for i := range dirs {
			cluster.Restart(i)
		}
		cluster.WaitReady()
		eventually(t, cluster.Nodes[0].Node, "both have replicas of all", func(s wire.Status) bool {
			return votesEverywhere(s, cluster.Nodes[0].Node.ID()) && votesEverywhere(s, cluster.Nodes[1].Node.ID()) && !warned(s, "out of service")
		})
		everybody(t, client, cluster, known)
	})
}
