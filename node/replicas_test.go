package node_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
)

// order sets the number of replicas.
func (w *traffic) order(t *testing.T, replicas int, force bool) {
	t.Helper()
	a, err := w.cluster.Nodes[0].Node.Admin().SetReplicas(t.Context(), wire.ReplicasOrder{Replicas: replicas, Force: force})
	if err != nil || a.Replicas != replicas {
		t.Fatalf("order %d replicas: %+v, %v", replicas, a, err)
	}
}

// have waits until each shard has this number of voters, and no node holds a replica beside
// them.
func have(t *testing.T, cluster *nodetest.Cluster, replicas, shards int) {
	t.Helper()
	eventually(t, cluster.Nodes[0].Node, fmt.Sprintf("%d replicas", replicas), func(s wire.Status) bool {
		held := 0
		for _, m := range s.Nodes {
			for _, g := range m.Groups {
				if g.Group != id.Meta {
					held++
				}
			}
		}
		return settled(s) && s.Voting[replicas] == shards && held == shards*replicas
	})
}

// Clients register and search all the while.
func TestReplicasChangeUnderTraffic(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		const shards = 4
		cluster := nodetest.Start(t, nodetest.Options{Nodes: 5})
		client := cluster.Client("bank")
		gallery(t, client, cluster.Nodes[0].URL, "staff", 1_000_000)
		w := &traffic{cluster: cluster, client: client}
		w.run(t)
		have(t, cluster, 3, shards)
		for _, number := range []int{5, 3, 1, 3} {
			w.order(t, number, number == 1)
			began, before := time.Now(), w.count.Load()
			have(t, cluster, number, shards)
			t.Logf("%d replicas after %s, %d registrations meanwhile", number, time.Since(began).Round(time.Millisecond), w.count.Load()-before)
		}
		w.check(t)
		for _, n := range cluster.Nodes {
			if voters := metaVoters(n.Node.Status(t.Context())); voters != 5 {
				t.Errorf("meta has %d voters", voters)
			}
		}
	})
}

// placeOf returns the index of a running member.
func placeOf(cluster *nodetest.Cluster, m id.Member) int {
	return slices.IndexFunc(cluster.Nodes, func(n *nodetest.Member) bool { return n.Node != nil && n.Node.Member() == m })
}

// missed reports whether so many nodes are not alive.
func missed(n int) func(wire.Status) bool {
	return func(s wire.Status) bool {
		return n == len(slices.DeleteFunc(s.Nodes, func(m wire.Member) bool { return m.Alive }))
	}
}

// metaVoters returns the number of meta's voters.
func metaVoters(s wire.Status) (n int) {
	for _, m := range s.Nodes {
		if votesIn(m, id.Meta) {
			n++
		}
	}
	return n
}

// Five replicas wait for the nodes that are lacking.
func TestReplicasComeWithNodes(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 5, Founders: 3}, func(t *testing.T, cluster *nodetest.Cluster) {
		admin := cluster.Nodes[0].Node.Admin()
		a, err := admin.SetReplicas(t.Context(), wire.ReplicasOrder{Replicas: 5})
		if err != nil || a != (wire.ReplicasAnswer{Was: 3, Replicas: 5, Nodes: 3}) {
			t.Fatalf("%+v, %v", a, err)
		}
		for number, want := range map[int]string{-1: "1, 3 or 5", 0: "1, 3 or 5", 2: "1, 3 or 5", 4: "1, 3 or 5", 7: "1, 3 or 5", 1: "give --force"} {
			o := wire.ReplicasOrder{Replicas: number, Force: number != 1}
			if _, err := admin.SetReplicas(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v", o, err)
			}
		}
		have(t, cluster, 3, 4)
		for i := 3; i < 5; i++ {
			cluster.Restart(i) // joins
			have(t, cluster, i+1, 4)
		}
		// No node may leave: the replicas need them all.
		if err := admin.SetNodeState(t.Context(), wire.Order{Node: cluster.Nodes[4].Node.ID(), State: wire.StateDraining}); err == nil {
			t.Error("a node leaves five replicas to four nodes")
		}
	})
}

// The only replicas move before their node leaves, and are not lost by an order.
func TestOnlyReplicasOutliveTheirNode(t *testing.T) {
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		gallery(t, client, cluster.Nodes[0].URL, "staff", 1_000_000)
		known := people(t, client, cluster.Nodes[0].URL, 0, 20)
		w := &traffic{cluster: cluster, client: client}
		w.order(t, 1, true)
		have(t, cluster, 1, 4)
		first := cluster.Nodes[0].Node
		down := cluster.Nodes[2].Node.ID()
		if holds(first.Status(t.Context()), down) == 0 {
			t.Fatal("the third node holds nothing")
		}

		cluster.Stop(2)
		eventually(t, first, "the node is missed", missed(1))
		order := wire.Order{Node: down, State: wire.StateRemoved}
		if err := first.Admin().SetNodeState(t.Context(), order); err == nil || !strings.Contains(err.Error(), "the only replica of shard") {
			t.Errorf("a node with the only replicas is removed: %v", err)
		}
		cluster.Restart(2)
		cluster.WaitReady()
		everybody(t, client, cluster, known)

		order.State = wire.StateDraining
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for first.Admin().SetNodeState(ctx, order) != nil && ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		eventually(t, first, "the node holds nothing", func(s wire.Status) bool {
			return settled(s) && holds(s, down) == 0 && s.Voting[1] == 4
		})
		everybody(t, client, cluster, known)
	})
}

// The map of a shard on the move lists new members before they vote. They don't stand in for
// voters that are down.
func TestVoterOfMovingShardIsNotCut(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 5, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		have(t, cluster, 3, 1)
		shards := cluster.Nodes[0].Node.ShardMap()
		at := &shards.Shards[0]
		stays, down, back := cluster.Nodes[placeOf(cluster, at.Voters[0])].Node, placeOf(cluster, at.Voters[1]), placeOf(cluster, at.Voters[2])
		order := wire.Order{Node: cluster.Nodes[down].Node.ID(), State: wire.StateRemoved}
		at.Voters, at.Leaving, at.Moving = at.Voters[:1:1], at.Voters[1:], true
		for _, n := range cluster.Nodes {
			if m := n.Node.Member(); !slices.Contains(at.Holders(), m) {
				at.Voters = append(at.Voters, m)
			}
		}
		cluster.Stop(down)
		cluster.Stop(back)
		eventually(t, stays, "two nodes are missed", missed(2))
		must.Do(t, stays.Router().PutShards(t.Context(), metafsm.PutShards{Previous: shards.Epoch, Shards: shards.Shards}))
		if err := stays.Admin().SetNodeState(t.Context(), order); err == nil || !strings.Contains(err.Error(), "confirms who votes") {
			t.Fatalf("a node whose vote is needed is removed: %v", err)
		}
		// With the second voter the shard has a majority, but no leader yet: the order waits for it.
		cluster.Restart(back)
		eventually(t, stays, "one node is missed", missed(1))
		if err := stays.Admin().SetNodeState(t.Context(), order); err != nil {
			t.Fatalf("a node whose vote is not needed stays: %v", err)
		}
		eventually(t, stays, "three replicas", func(s wire.Status) bool { return settled(s) && s.Voting[3] == 1 })
	})
}

// A node that gossip shows may have a damaged replica, which is closed or has no vote. It does
// not stand in for a voter that is removed, although the shard is not on the move.
func TestVoterBesideDamagedReplicaIsNotCut(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 4, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		have(t, cluster, 3, 1)
		client := cluster.Client("bank")
		gallery(t, client, cluster.Nodes[0].URL, "customers", 100)
		known := people(t, client, cluster.Nodes[0].URL, 0, 8)
		at := cluster.Nodes[0].Node.ShardMap().Shards[0]
		stays, harmed, needed := cluster.Nodes[placeOf(cluster, at.Voters[0])].Node, placeOf(cluster, at.Voters[1]), placeOf(cluster, at.Voters[2])
		order := wire.Order{Node: cluster.Nodes[needed].Node.ID(), State: wire.StateRemoved}
		cluster.Stop(harmed)
		damage(t, filepath.Join(cluster.Nodes[harmed].Config.Dir, "group-1", "raft.db"), "Suffrage")
		cluster.Stop(needed)
		cluster.Restart(harmed)
		eventually(t, stays, "one node is missed", missed(1))
		if err := stays.Admin().SetNodeState(t.Context(), order); err == nil || !strings.Contains(err.Error(), "confirms who votes") {
			t.Fatalf("a node that is down and whose vote is needed is removed: %v", err)
		}
		cluster.Restart(needed)
		eventually(t, stays, "no node is missed", missed(0))
		order.Force = true
		ctx, cancel := context.WithTimeout(t.Context(), movesTimeout)
		defer cancel()
		for err := stays.Admin().SetNodeState(ctx, order); err != nil; err = stays.Admin().SetNodeState(ctx, order) {
			if ctx.Err() != nil {
				t.Fatalf("a node whose vote is not needed stays: %v", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		eventually(t, stays, "three replicas", func(s wire.Status) bool { return settled(s) && s.Voting[3] == 1 })
		cluster.Stop(needed) // it has ended by itself
		everybody(t, client, cluster, known)
	})
}
