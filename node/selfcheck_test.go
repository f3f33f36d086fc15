package node_test

import (
	"fmt"
	"testing"
	"time"

	"facet/internal/id"
	"facet/node"
	"facet/node/nodetest"
	"facet/node/wire"
)

// spoil changes the state of one replica of a shard, the leader's or a follower's, and
// returns its node.
func spoil(t *testing.T, cluster *nodetest.Cluster, number id.Shard, leader bool) *node.Node {
	t.Helper()
	for _, m := range cluster.Nodes {
		if m.Node.Leads(number) == leader {
			m.Node.Spoil(number)
			return m.Node
		}
	}
	t.Fatal("there is no such replica")
	return nil
}

func TestDivergedReplicaIsRebuilt(t *testing.T) {
	f := func(what string, leader bool) {
		t.Run(what, func(t *testing.T) {
			nodetest.Run(t, nodetest.Options{Shards: 1, CheckEvery: 500 * time.Millisecond}, func(t *testing.T, cluster *nodetest.Cluster) {
				client := cluster.Client("bank")
				gallery(t, client, cluster.Nodes[0].URL, "customers", 10_000)
				known := people(t, client, cluster.Nodes[0].URL, 0, 10)
				w := &traffic{cluster: cluster, client: client}
				w.run(t)
				n := spoil(t, cluster, 1, leader)
				eventually(t, n, "the alarm", func(s wire.Status) bool { return warned(s, "set aside") })
				w.check(t)
				repaired(t, cluster, 1)
				everybody(t, client, cluster, known)
				count := 0
				for _, m := range cluster.Nodes {
					count += m.Node.Diverged()
				}
				if count != 1 {
					t.Errorf("%d replicas were found to differ, want the one that did", count)
				}
			})
		})
	}
	f("a follower's", false)
	f("a leader's", true)
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

func TestEqualReplicasStayInService(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 2, CheckEvery: 50 * time.Millisecond}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		gallery(t, client, cluster.Nodes[0].URL, "customers", 10_000)
		w := &traffic{cluster: cluster, client: client}
		w.run(t)
		compared := func() (n int) {
			for _, m := range cluster.Nodes {
				n += m.Node.Compared()
			}
			return n
		}
		time.Sleep(3 * time.Second)
		for late := time.Now().Add(20 * time.Second); compared() < 10 && time.Now().Before(late); {
			time.Sleep(100 * time.Millisecond)
		}
		w.check(t)
		for _, m := range cluster.Nodes {
			if alarms := fmt.Sprint(m.Node.Diverged(), m.Node.Alarms()); alarms != "0 []" {
				t.Errorf("alarms: %s", alarms)
			}
		}
		if n := compared(); n < 10 {
			t.Errorf("%d comparisons, want one of each group each 50 ms or so", n)
		}
	})
}
