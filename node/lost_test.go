package node_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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
	"facet/node/rollback"
	"facet/node/wire"
)

// dropSnapshots makes a stopped node's replica of a group lose its snapshots. Its log
// begins behind them.
func dropSnapshots(t *testing.T, cluster *nodetest.Cluster, i int, number id.Shard) {
	t.Helper()
	m := cluster.Nodes[i]
	if err := m.Node.CutLog(number); err != nil {
		t.Fatal(err)
	}
	cluster.Stop(i)
	if err := os.RemoveAll(filepath.Join(m.Config.Dir, fmt.Sprint("group-", number), "snapshots")); err != nil {
		t.Fatal(err)
	}
}

// forget removes from a stopped node's directory what it knows of the members. Within a
// second of a write, nodes know it of each other, and would notice what they have lost.
func forget(t *testing.T, dir string, self id.Member) {
	t.Helper()
	table, err := rollback.Open(dir, self, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	table.Drop(func(id.Member) bool { return true })
	if err := table.Save(); err != nil {
		t.Fatal(err)
	}
}

// term returns the term of shard 1, as a node's status shows it.
func term(t *testing.T, m *nodetest.Member) (highest uint64) {
	t.Helper()
	eventually(t, m.Node, "a replica of shard 1", func(s wire.Status) bool {
		for _, n := range s.Nodes {
			for _, g := range n.Groups {
				if g.Group == 1 {
					highest = max(highest, g.Term)
				}
			}
		}
		return highest > 0
	})
	return highest
}

// A replica that comes back to two others with old copies keeps what they have lost, and an
// operator puts it back.
func TestRewrittenHistoryIsPutBack(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		first := cluster.Nodes[0]
		gallery(t, client, first.URL, "staff", 1000)
		known := people(t, client, first.URL, 0, 10)
		repaired(t, cluster, 1)
		copies := t.TempDir()
		folder := func(i int) string { return filepath.Join(cluster.Nodes[i].Config.Dir, "group-1") }
		kept := func(i int) string { return filepath.Join(copies, fmt.Sprint(i)) }
		for i := 1; i < 3; i++ {
			cluster.Stop(i)
			if err := os.CopyFS(kept(i), os.DirFS(folder(i))); err != nil {
				t.Fatal(err)
			}
			cluster.Restart(i)
			cluster.WaitReady()
		}
		maps.Copy(known, people(t, client, first.URL, 10, 20))
		repaired(t, cluster, 1)
		cluster.Stop(0)
		before := term(t, cluster.Nodes[1]) // with that of the election at the stop, which the first node knows
		for i := 1; i < 3; i++ {
			who := cluster.Nodes[i].Node.Member()
			cluster.Stop(i)
			if err := errors.Join(os.RemoveAll(folder(i)), os.CopyFS(folder(i), os.DirFS(kept(i)))); err != nil {
				t.Fatal(err)
			}
			forget(t, cluster.Nodes[i].Config.Dir, who)
		}
		cluster.Restart(1)
		cluster.Restart(2)
		known["after the loss"] = enrolUntil(t, client, cluster.Nodes[1].URL, "after the loss")
		// In a term that the first node knows it would see that the others have lost state, and no
		// replica would be left.
		for i := 1; term(t, cluster.Nodes[1]) <= before; i = 3 - i {
			cluster.Stop(i)
			cluster.Restart(i)
			name := fmt.Sprint("in term ", term(t, cluster.Nodes[i]))
			known[name] = enrolUntil(t, client, cluster.Nodes[i].URL, name)
		}
		cluster.Restart(0)
		eventually(t, first.Node, "the alarm", func(s wire.Status) bool { return warned(s, "HISTORY REWRITTEN") })
		repaired(t, cluster, 1)
		found, err := filepath.Glob(folder(0) + ".rewritten-*")
		if err != nil || len(found) != 1 {
			t.Fatalf("folders set aside: %v, %v; want one", found, err)
		}
		lost, err := backup.ReadLostWrites(found[0], 0)
		if err != nil || len(lost.Writes) == 0 {
			t.Fatalf("lost writes: %+v, %v", lost, err)
		}
		// With the writes before it. One was refused for want of a slot, and came again.
		if lost, err = backup.ReadLostWrites(found[0], 1); err != nil || len(lost.Writes) != 21 {
			t.Fatalf("%d writes in the log, %v; want 21", len(lost.Writes), err)
		}
		outcomes := map[string]int{}
		for _, l := range lost.Writes {
			a, err := cluster.Nodes[1].Node.Admin().PutBack(t.Context(), wire.WriteOrder{Shard: 1, Command: l.Command})
			if err != nil {
				t.Fatal(err)
			}
			outcomes[a.Outcome]++
		}
		if outcomes["done"] != 10 || outcomes["replayed"] != 11 {
			t.Errorf("outcomes %v, want 10 done and 11 replayed", outcomes)
		}
		everybody(t, client, cluster, known)
		if err := os.RemoveAll(found[0]); err != nil {
			t.Fatal(err)
		}
		eventually(t, first.Node, "the alarm's end", func(s wire.Status) bool { return !warned(s, "HISTORY REWRITTEN") })
	})
}

// A replica that has lost its state, in whatever way, must not vote before it has caught up. The others on its node
// go on.
func TestLostStateVotesOnceCaughtUp(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 2}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		first, third := cluster.Nodes[0], cluster.Nodes[2]
		gallery(t, client, first.URL, "staff", 1000)
		known := people(t, client, first.URL, 0, 20)
		who := third.Node.ID()
		both := []id.Shard{1, 2}
		f := func(what string, lost []id.Shard, alarm bool, lose func()) {
			nodetest.Step(t, what, func(t *testing.T) {
				for _, number := range both {
					repaired(t, cluster, number)
				}
				lose()
				cluster.Stop(1)
				eventually(t, first.Node, "no majority", func(wire.Status) bool { return !first.Node.Leads(1) && !first.Node.Leads(2) })
				// One of three votes is left, and it has what was acknowledged. A second one of
				// somebody who has forgotten it would make a majority.
				cluster.Restart(2)
				if alarm {
					eventually(t, third.Node, "an alarm that says what is gone", func(wire.Status) bool {
						return slices.ContainsFunc(third.Node.Alarms(), func(a string) bool { return strings.Contains(a, "is gone") })
					})
				}
				for late := time.Now().Add(4 * time.Second); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
					for _, number := range lost {
						if first.Node.Leads(number) || third.Node.Leads(number) {
							t.Fatalf("the replica of shard %d votes without what it had", number)
						}
					}
				}
				for _, number := range both {
					if !slices.Contains(lost, number) {
						eventually(t, first.Node, "the other shard has a leader", func(wire.Status) bool { return first.Node.Leads(number) || third.Node.Leads(number) })
					}
				}
				cluster.Restart(1)
				eventually(t, first.Node, "it votes again, with all the data", func(s wire.Status) bool {
					return settled(s) && votesEverywhere(s, who) && !warned(s, "out of service")
				})
				everybody(t, client, cluster, known)
			})
		}
		f("folders", both, true, func() {
			cluster.Stop(2)
			vanish(t, third, both...)
		})
		f("snapshots", both[:1], true, func() { dropSnapshots(t, cluster, 2, 1) })
		f("the whole disk", both, false, func() {
			cluster.Stop(2)
			wipe(t, third)
		})
		restart(cluster, 2) // what it has now is what it had
		everybody(t, client, cluster, known)
	})
}

// The log says what to do.
func TestLostMetaStopsNode(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		dropSnapshots(t, cluster, 2, id.Meta)
		cluster.Stop(1)
		vanish(t, cluster.Nodes[1], id.Meta)
		cluster.Stop(0)
		damage(t, filepath.Join(cluster.Nodes[0].Config.Dir, "group-0", "raft.db"), "Suffrage")
		for i, words := range []string{"group 0", "joins as a new one", "joins as a new one"} {
			n, err := node.Open(t.Context(), cluster.Nodes[i].Config)
			if err == nil {
				t.Errorf("node %d was opened", i+1)
				_ = n.Close(context.Background()) // the test has failed
			} else if !strings.Contains(err.Error(), "group 0") || !strings.Contains(err.Error(), words) {
				t.Errorf("got %q, want words that name the group and say what to do", err)
			}
		}
	})
}
