package node_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/nodetest"
	"facet/node/replicas"
	"facet/node/wire"
	"facet/raftfsm"
)

// The default is short. A longer hunt: go test ./node -run SoundRestarts -restarts 100.
var (
	restarts    = flag.Int("restarts", 4, "restarts of TestSoundRestartsRaiseNoAlarm")
	restartSeed = flag.Int("restart-seed", 1, "their seed")
)

// image copies a data directory. Its node may run if nothing is written there.
func image(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "image")
	must.Do(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// rollBack replaces the files of a stopped node by an image. The directory stays the same
// one: a new one would be a copy.
func rollBack(t *testing.T, m *nodetest.Member, from string) {
	t.Helper()
	files, err := os.ReadDir(m.Config.Dir)
	for _, f := range files {
		err = errors.Join(err, os.RemoveAll(filepath.Join(m.Config.Dir, f.Name())))
	}
	must.Do(t, errors.Join(err, os.CopyFS(m.Config.Dir, os.DirFS(from))))
}

// waitKnown waits until one node knows that another one's replica has everything that a
// third one has committed.
func waitKnown(t *testing.T, by, of *nodetest.Member, number id.Shard) {
	t.Helper()
	_, want, _ := of.Node.DigestHere(number)
	eventually(t, by.Node, "what the node knows of another one", func(wire.Status) bool {
		return by.Node.KnownIndex(of.Node.Member(), number) >= want
	})
}

// A replica whose files are older than what it acknowledged is taken out and rebuilt.
func TestRolledBackReplicaIsRebuilt(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		cluster := nodetest.Start(t, nodetest.Options{Shards: 1})
		client := cluster.Client("bank")
		url := cluster.Nodes[0].URL
		gallery(t, client, url, "customers", 1000)
		known := people(t, client, url, 0, 10)
		m := follower(t, cluster)
		repaired(t, cluster, 1) // all have everything
		before := imageOfShards(t, cluster, m, cluster.Nodes[0], func(from int) {
			maps.Copy(known, people(t, client, url, 10+from, 20+from))
			repaired(t, cluster, 1)
			for _, o := range cluster.Nodes {
				if o != m {
					waitKnown(t, o, m, 1)
				}
			}
		})
		url = cluster.Nodes[(slices.Index(cluster.Nodes, m)+1)%3].URL
		cluster.Stop(slices.Index(cluster.Nodes, m))
		rollBack(t, m, before)
		cluster.Restart(slices.Index(cluster.Nodes, m))
		eventually(t, m.Node, "the alarm", func(s wire.Status) bool { return warned(s, "had lost state") })
		cluster.WaitReady()
		repaired(t, cluster, 1)
		everybody(t, client, cluster, known)
		if n := m.Node.StateLost(); n != 1 {
			t.Errorf("the node counts %d losses, want 1", n)
		}
		// What peers know of the old replica does not concern the new one.
		restart(cluster, slices.Index(cluster.Nodes, m))
		known["after the rebuild"] = enrolUntil(t, client, url, "after the rebuild")
		repaired(t, cluster, 1)
		if n := m.Node.StateLost(); n != 0 {
			t.Errorf("the rebuilt replica was taken out again: %s", m.Node.Alarms())
		}
		everybody(t, client, cluster, known)
	})
}

// follower returns a node that leads neither meta nor shard 1.
func follower(t *testing.T, cluster *nodetest.Cluster) *nodetest.Member {
	t.Helper()
	for _, m := range slices.Backward(cluster.Nodes) {
		if _, _, here := m.Node.DigestHere(1); here && !m.Node.Leads(1) && !m.Node.Leads(id.Meta) {
			return m
		}
	}
	t.Fatal("all nodes lead")
	return nil
}

// A shard whose two remaining voters are one that was away and one that was rolled back
// waits for the third, and loses nothing. The knowledge lies on a node without a replica.
func TestRolledBackVoterElectsNobody(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		cluster := nodetest.Start(t, nodetest.Options{Nodes: 4, Shards: 1, Away: time.Hour})
		client := cluster.Client("bank")
		gallery(t, client, cluster.Nodes[0].URL, "customers", 1000)
		back := follower(t, cluster)
		var holders []*nodetest.Member
		var other *nodetest.Member
		for _, m := range cluster.Nodes {
			if _, _, here := m.Node.DigestHere(1); !here {
				other = m
			} else if m != back {
				holders = append(holders, m)
			}
		}
		at := func(m *nodetest.Member) int { return slices.Index(cluster.Nodes, m) }
		stays, away := holders[0], holders[1]
		if away.Node.Leads(id.Meta) || away.Node.Leads(1) {
			stays, away = away, stays
		}
		known := people(t, client, other.URL, 0, 5)
		cluster.Stop(at(away))
		for i := range 3 { // until leaders are elected, after which nothing but the shard changes
			person := fmt.Sprintf("without one, %d", i)
			known[person] = enrolUntil(t, client, other.URL, person)
		}
		var before string
		for try := 0; ; try++ {
			var term uint64
			before = imageOfShards(t, cluster, back, other, func(from int) {
				from += 100*try + 5
				maps.Copy(known, people(t, client, other.URL, from, 10+from))
				waitKnown(t, other, back, 1)
				term = metaAt(t, other)[0]
			})
			cluster.Stop(at(back))
			if metaAt(t, other)[0] == term {
				break
			}
			if try == 5 {
				t.Fatal("meta elects leaders all the time")
			}
			cluster.Restart(at(back)) // a busy machine: meta has elected, and would notice the roll-back itself
			known[fmt.Sprint("again ", try)] = enrolUntil(t, client, other.URL, fmt.Sprint("again ", try))
		}
		cluster.Stop(at(stays))
		rollBack(t, back, before)
		cluster.Restart(at(away))
		cluster.Restart(at(back))
		eventually(t, other.Node, "the alarm", func(s wire.Status) bool {
			if away.Node.Leads(1) || back.Node.Leads(1) {
				t.Fatalf("a majority without the latest writes leads; %d subjects were acknowledged", len(known))
			}
			return warned(s, "had lost state")
		})
		if a := client.Call(t, other.URL, http.MethodPost, "/v1.1/subjects", face("too early")); a.Status == http.StatusCreated {
			t.Error("a shard without a majority that has everything took a write")
		}
		cluster.Restart(at(stays))
		cluster.WaitReady()
		eventually(t, other.Node, "three voters", func(s wire.Status) bool {
			votes := 0
			for _, m := range s.Nodes {
				if votesIn(m, 1) {
					votes++
				}
			}
			return votes == 3 && !warned(s, "out of service")
		})
		everybody(t, client, cluster, known)
	})
}

// imageOfShards copies the data directory of m before write, which writes ten people from the given number
// on. It tries again if meta changes meanwhile, by what peer knows: a node that loses entries of meta ends.
func imageOfShards(t *testing.T, cluster *nodetest.Cluster, m, peer *nodetest.Member, write func(from int)) string {
	t.Helper()
	for try := range 6 {
		for _, o := range cluster.Nodes {
			if o.Node == nil {
				continue
			}
			must.Do(t, o.Node.ReportKeyUses(t.Context()))
		}
		within(t, time.Minute, "the node has all of meta", func() bool { return metaAt(t, m) == metaAt(t, peer) })
		was := metaAt(t, peer)
		before := image(t, m.Config.Dir)
		write(10 * try)
		if metaAt(t, peer) == was {
			return before
		}
	}
	t.Fatal("meta changes all the time")
	return ""
}

// metaAt returns the term of meta on a node and the last entry that it has applied.
func metaAt(t *testing.T, m *nodetest.Member) [2]uint64 {
	t.Helper()
	for _, g := range m.Node.Admin().Own().Groups {
		if g.Group == id.Meta {
			return [2]uint64{g.Term, g.Applied}
		}
	}
	t.Fatal("the node has no replica of meta")
	return [2]uint64{}
}

// A replica that its leader sees fall behind is rebuilt without a restart, and then counts
// again.
func TestReplicaBehindItsMarkIsRebuilt(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		cluster := nodetest.Start(t, nodetest.Options{Shards: 1})
		client := cluster.Client("bank")
		gallery(t, client, cluster.Nodes[0].URL, "customers", 1000)
		known := people(t, client, cluster.Nodes[0].URL, 0, 5)
		m := follower(t, cluster)
		leader := cluster.Nodes[leaderOf(t, cluster, 1)]
		eventually(t, leader.Node, "the life of the other's replica", func(wire.Status) bool {
			return leader.Node.KnownLife(m.Node.Member(), 1) == m.Node.OwnLife(1)
		})
		leader.Node.Accuse(m.Node.Member(), 1)
		eventually(t, leader.Node, "the alarm", func(s wire.Status) bool { return warned(s, "had lost state") })
		repaired(t, cluster, 1)
		maps.Copy(known, people(t, client, cluster.Nodes[0].URL, 5, 10))
		repaired(t, cluster, 1)
		everybody(t, client, cluster, known)
	})
}

// A node whose whole directory is older than its last start ends and says so, and its peers
// raise the alarm.
func TestOlderImageStopsNode(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		cluster := nodetest.Start(t, nodetest.Options{Shards: 1})
		cluster.Client("bank")
		m := follower(t, cluster)
		at := slices.Index(cluster.Nodes, m)
		cluster.Stop(at)
		before := image(t, m.Config.Dir)
		cluster.Restart(at)
		cluster.WaitReady()
		peer := cluster.Nodes[(at+1)%3]
		eventually(t, peer.Node, "the new start", func(wire.Status) bool { return peer.Node.KnownStart(m.Node.Member()) == m.Node.OwnStart() })
		cluster.Stop(at)
		rollBack(t, m, before)
		cluster.Restart(at)
		ended(t, m, "facet node remove")
		if err := m.Node.Err(); !errors.Is(err, replicas.ErrNodeStateLost) {
			t.Errorf("got %v", err)
		}
		eventually(t, peer.Node, "the alarm", func(s wire.Status) bool { return warned(s, "has lost state and stopped") })
		if peer.Node.StateLost() != 1 {
			t.Errorf("the peer counts %d losses, want 1", peer.Node.StateLost())
		}
	})
}

// Restarts, elections, rebuilds and moves raise no alarm.
func TestSoundRestartsRaiseNoAlarm(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		cluster := nodetest.Start(t, nodetest.Options{Shards: 3})
		client := cluster.Client("bank")
		gallery(t, client, cluster.Nodes[0].URL, "customers", 1_000_000) // never full
		w := &traffic{cluster: cluster, client: client}
		w.run(t)
		r := rand.New(rand.NewPCG(uint64(*restartSeed), 0))
		check := func(what string) {
			t.Helper()
			for i, m := range cluster.Nodes {
				if m.Node.StateLost() > 0 || m.Node.Err() != nil {
					t.Fatalf("%s: node %d: %v %v", what, i+1, m.Node.Alarms(), m.Node.Err())
				}
			}
		}
		for range *restarts {
			i := r.IntN(len(cluster.Nodes))
			switch r.IntN(4) {
			case 0:
				cluster.Nodes[i].Node.Break(1, fmt.Errorf("%w: by the test", raftfsm.ErrCorrupt))
				w.rested(func() { repaired(t, cluster, 1) })
				check("after a rebuild")
			case 1:
				cluster.Stop(i)
				cluster.Stop((i + 1) % 3)
				cluster.Restart(i)
				cluster.Restart((i + 1) % 3)
			default:
				cluster.Stop(i)
				cluster.Restart(i)
			}
			cluster.WaitReady()
			check("after a restart")
		}
		w.check(t)
		check("at the end")
	})
}
