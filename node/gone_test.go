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
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/node"
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

// nothingIsAcknowledged sends registrations for a while, none of which may be.
func nothingIsAcknowledged(t *testing.T, c *nodetest.Client, url string) {
	t.Helper()
	for i, late := 0, time.Now().Add(4*time.Second); time.Now().Before(late); i++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		r, err := c.Sign(url, http.MethodPost, "/v1.1/subjects", face(fmt.Sprint("nobody ", i)))
		if err == nil {
			var a nodetest.Answer
			if a, err = c.Send(ctx, url, r); err == nil && a.Status == http.StatusCreated {
				t.Fatalf("a write is acknowledged: %s", a.Body)
			}
		}
		cancel()
	}
}

// A replica whose folder is gone must not vote before it has caught up.
func TestLostFolderVotesOnceCaughtUp(t *testing.T) {
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		first, third := cluster.Nodes[0], cluster.Nodes[2]
		gallery(t, client, first.URL, "staff", 1000)
		known := people(t, client, first.URL, 0, 20)
		who := third.Node.ID()
		cluster.Stop(2)
		vanish(t, third, 1, 2, 3, 4)
		cluster.Stop(1)

		// One of three votes is left, and it has what was acknowledged. A second one of
		// somebody who has forgotten it would make a majority.
		cluster.Restart(2)
		nothingIsAcknowledged(t, client, first.URL)
		eventually(t, third.Node, "an alarm that says what is gone", func(wire.Status) bool {
			return slices.ContainsFunc(third.Node.Alarms(), func(a string) bool { return strings.Contains(a, "is gone") })
		})
		if _, here := third.Node.ShardHere(1); here {
			t.Error("it has opened a replica with nothing in it")
		}
		cluster.Restart(1)
		eventually(t, first.Node, "it votes again, with all the data", func(s wire.Status) bool {
			return settled(s) && votesEverywhere(s, who) && !warned(s, "out of service")
		})
		for number := range id.Shard(4) {
			repaired(t, cluster, number+1)
		}
		everybody(t, client, cluster, known)
		// And once more, after a stop: what it has now is what it had.
		cluster.Stop(2)
		cluster.Restart(2)
		cluster.WaitReady()
		everybody(t, client, cluster, known)
	})
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

// The log says what to do.
func TestLostMetaFolderStopsNode(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		cluster.Stop(2)
		m := cluster.Nodes[2]
		vanish(t, m, id.Meta)
		n, err := node.Open(t.Context(), m.Config)
		if err == nil {
			t.Error("the node was opened")
			_ = n.Close(context.Background()) // the test has failed
		} else if !strings.Contains(err.Error(), "group 0") || !strings.Contains(err.Error(), "joins as a new one") {
			t.Errorf("got %q, want words that name the group and say what to do", err)
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
			if err := cluster.Nodes[1].Node.Admin().SetNodeState(t.Context(), wire.Order{Node: m.Node.ID(), State: state}); err != nil {
				t.Fatal(err)
			}
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
