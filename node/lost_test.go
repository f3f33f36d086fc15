package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node"
	"facet/node/backup"
	"facet/node/nodetest"
	"facet/node/rollback"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
)

// dropSnapshots makes a stopped node's replica of a group lose its snapshots. Its log
// begins behind them.
func dropSnapshots(t *testing.T, cluster *nodetest.Cluster, i int, number id.Shard) {
	t.Helper()
	m := cluster.Nodes[i]
	must.Do(t, m.Node.CutLog(number))
	cluster.Stop(i)
	must.Do(t, os.RemoveAll(filepath.Join(m.Config.Dir, fmt.Sprint("group-", number), "snapshots")))
}

// forget removes from a stopped node's directory what it knows of the members. Within a
// second of a write, nodes know it of each other, and would notice what they have lost.
func forget(t *testing.T, dir string, self id.Member) {
	t.Helper()
	table, err := rollback.Open(dir, self, slog.New(slog.DiscardHandler))
	must.Do(t, err)
	table.Drop(func(id.Member) bool { return true })
	must.Do(t, table.Save())
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
			must.Do(t, os.CopyFS(kept(i), os.DirFS(folder(i))))
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
			must.Do(t, errors.Join(os.RemoveAll(folder(i)), os.CopyFS(folder(i), os.DirFS(kept(i)))))
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
			must.Do(t, err)
			outcomes[a.Outcome]++
		}
		if outcomes["done"] != 10 || outcomes["replayed"] != 11 {
			t.Errorf("outcomes %v, want 10 done and 11 replayed", outcomes)
		}
		everybody(t, client, cluster, known)
		must.Do(t, os.RemoveAll(found[0]))
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
		must.Do(t, err)
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
		must.Do(t, err)
		if a, err := client.Send(ctx, m.URL, r); err == nil && a.Status != http.StatusInternalServerError {
			t.Errorf("a search over what is lost is answered: %d %s", a.Status, a.Body)
		}
	})
}

// groupsOf reads the groups that a data directory's record names.
func groupsOf(t *testing.T, m *nodetest.Member) []id.Shard {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(m.Config.Dir, "node.json"))
	var who struct{ Groups []id.Shard }
	if err == nil {
		err = json.Unmarshal(raw, &who)
	}
	must.Do(t, err)
	return who.Groups
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
				return settled(s) && done(groupsOf(t, m)) && !warned(s, "out of service")
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
		must.Do(t, err)
		must.Do(t, errors.Join(r.Carry(), r.Close()))
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

// otherPorts changes a stopped node's addresses to ones that it never had.
func otherPorts(m *nodetest.Member) {
	for i, address := range []*string{&m.Config.PeerAddress, &m.Config.PublicAddress, &m.Config.AdminAddress} {
		*address = net.JoinHostPort(m.Host, strconv.Itoa(8001+i))
	}
	m.URL = "https://" + m.Config.PublicAddress
}

// votesEverywhere reports whether a node votes in all shards and has applied what they
// have committed.
func votesEverywhere(s wire.Status, who id.Node) bool {
	n := 0
	for _, m := range s.Nodes {
		for _, g := range m.Groups {
			if m.ID == who && g.Group != id.Meta && g.Role != "non-voter" && g.Lag == 0 && !g.Leader.IsZero() {
				n++
			}
		}
	}
	return n == s.Shards
}

func TestMovedNodeKeepsIdentity(t *testing.T) {
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		first := cluster.Nodes[0]
		gallery(t, client, first.URL, "staff", 1000)
		known := people(t, client, first.URL, 0, 10)
		who := cluster.Nodes[2].Node.ID()
		cluster.Stop(2)
		otherPorts(cluster.Nodes[2])
		maps.Copy(known, people(t, client, first.URL, 10, 20))
		cluster.Restart(2)
		if got := cluster.Nodes[2].Node.ID(); got != who {
			t.Fatalf("it is %s now, and was %s", got, who)
		}
		eventually(t, first.Node, "it votes as before", func(s wire.Status) bool {
			return len(s.Nodes) == 3 && settled(s) && votesEverywhere(s, who)
		})
		// Its vote counts: with the second node away, nothing goes without it.
		cluster.Stop(1)
		person := "with the third node's vote"
		known[person] = enrolUntil(t, client, first.URL, person)
		cluster.Restart(1)
		eventually(t, first.Node, "all are there", func(s wire.Status) bool { return votesEverywhere(s, cluster.Nodes[1].Node.ID()) })
		everybody(t, client, cluster, known)
	})
}

// wipe empties a stopped node's disk, all but its name: the id that its certificate
// has, under which it comes back.
func wipe(t *testing.T, m *nodetest.Member) {
	t.Helper()
	file := filepath.Join(m.Config.Dir, "node.json")
	raw, err := os.ReadFile(file)
	must.Do(t, err)
	var who struct {
		Format int     `json:"format"`
		Node   id.Node `json:"node"`
		Epoch  uint32  `json:"epoch"`
	}
	must.Do(t, json.Unmarshal(raw, &who))
	who.Epoch++ // made with the directory
	if raw, err = json.Marshal(who); err == nil {
		err = os.RemoveAll(m.Config.Dir)
	}
	if err == nil {
		err = os.MkdirAll(m.Config.Dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	must.Do(t, err)
}

// The answer of a node's new member does not count for its old one.
func TestNewMemberIsNotTheOld(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		first := cluster.Nodes[0].Node
		waitLevel(t, first, "the level", metafsm.Level, func(n *node.Node) uint32 { return n.Status(t.Context()).Level })
		third := cluster.Nodes[2].Node
		old, who := third.Member(), third.ID()
		if !first.HasCaughtUp(t.Context(), 1, old) {
			t.Fatal("a member that runs and has nothing to catch up has not caught up")
		}
		cluster.Stop(2)
		wipe(t, cluster.Nodes[2])
		cluster.Restart(2)
		eventually(t, first, "its successor votes", func(s wire.Status) bool { return settled(s) && votesEverywhere(s, who) })
		if now := cluster.Nodes[2].Node.Member(); now == old || !first.HasCaughtUp(t.Context(), 1, now) {
			t.Errorf("the successor %s has not caught up", now)
		}
		if first.HasCaughtUp(t.Context(), 1, old) {
			t.Errorf("%s, which is gone, counts as one that has caught up", old)
		}
	})
}

// A replica that is no member of its group does not count as caught up.
func TestNonMemberIsNotCounted(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		n := cluster.Nodes[0].Node
		if got := n.RoleOf(1); got != "leader" {
			t.Fatalf("a group's only member is its %s", got)
		}
		must.Do(t, n.OpenEmpty(9))
		if got := n.RoleOf(9); got != "non-voter" {
			t.Errorf("a replica that nobody has made a member is called %q", got)
		}
	})
}
