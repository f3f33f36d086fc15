package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/raftfsm"
)

// movesTimeout bounds the wait for a cluster's moves.
const movesTimeout = 90 * time.Second

// eventually waits until ok holds for the status that a node gives.
func eventually(t testing.TB, n *node.Node, what string, ok func(wire.Status) bool) {
	t.Helper()
	var s wire.Status
	for late := time.Now().Add(movesTimeout); time.Now().Before(late); time.Sleep(200 * time.Millisecond) {
		if s = n.Status(t.Context()); ok(s) {
			return
		}
	}
	t.Fatalf("%s: not within %s: %+v", what, movesTimeout, s)
}

// holds counts the replicas of shards that a node has, voters only.
func holds(s wire.Status, who id.Node) int {
	n := 0
	for _, m := range s.Nodes {
		for _, g := range m.Groups {
			if m.ID == who && g.Group != id.Meta && g.Role != "non-voter" {
				n++
			}
		}
	}
	return n
}

// votesIn reports whether a node votes in a shard.
func votesIn(m wire.Member, number id.Shard) bool {
	return slices.ContainsFunc(m.Groups, func(g wire.GroupStatus) bool { return g.Group == number && g.Role != "non-voter" })
}

// settled reports whether nothing is on the move.
func settled(s wire.Status) bool { return len(s.Moves) == 0 }

// traffic registers people and searches for each at once, through the nodes that
// answer, until stop. It fails the test on a lost or doubled person and gives how
// many there are.
type traffic struct {
	cluster *nodetest.Cluster
	client  *nodetest.Client
	stop    atomic.Bool
	tickets chan struct{} // one for each client that registers
	work    sync.WaitGroup
	known   sync.Map // person → subject id
	count   atomic.Int64
}

const (
	clientsAtOnce = 3
	// trafficPace is the pause of each client after a registration and its search.
	trafficPace = 250 * time.Millisecond
)

func (w *traffic) run(t *testing.T) {
	t.Cleanup(func() {
		w.stop.Store(true)
		w.work.Wait()
	})
	w.tickets = make(chan struct{}, clientsAtOnce)
	for worker := range clientsAtOnce {
		w.tickets <- struct{}{}
		w.work.Go(func() {
			for i := 0; !w.stop.Load(); i++ {
				w.one(t, fmt.Sprintf("%d of %d", i, worker))
				time.Sleep(trafficPace)
			}
		})
	}
}

// rested runs f while nobody registers. Under traffic followers are always an entry behind.
func (w *traffic) rested(f func()) {
	for range clientsAtOnce {
		<-w.tickets
	}
	f()
	for range clientsAtOnce {
		w.tickets <- struct{}{}
	}
}

// one registers a person, trying nodes in turn with the same request until one
// answers, and searches for it.
func (w *traffic) one(t *testing.T, person string) {
	<-w.tickets
	defer func() { w.tickets <- struct{}{} }()
	face := nodetest.Image(person)
	var s subject
	if !w.until(t, http.StatusCreated, "/v1.1/subjects", map[string]any{"face": face}, &s) {
		return
	}
	w.known.Store(person, s.ID)
	w.count.Add(1)
	w.find(t, person, s.ID)
}

func (w *traffic) find(t *testing.T, person, want string) {
	var r results
	if w.until(t, http.StatusOK, "/v1.1/face/search", map[string]any{"probe": nodetest.Image(person)}, &r) &&
		(len(r.Candidates) != 1 || r.Candidates[0].ID != want) {
		t.Errorf("search for %s: %+v, want %s", person, r, want)
	}
}

// until sends one signed request to nodes in turn until one gives that status.
func (w *traffic) until(t *testing.T, status int, target string, body any, out any) bool {
	var last nodetest.Answer
	signed, err := w.client.Sign(w.cluster.Nodes[0].URL, http.MethodPost, target, body)
	for try := 0; err == nil && try < 200; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		base := w.cluster.Nodes[try%len(w.cluster.Nodes)].URL
		a, failed := w.client.SendAs(ctx, base, w.cluster.Nodes[0].URL, signed)
		cancel()
		if failed != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if last = a; a.Status == status {
			a.Decode(t, out)
			return true
		}
		if a.Status < http.StatusInternalServerError && a.Status != http.StatusTooManyRequests {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%s: %v, last answer %d %s", target, err, last.Status, last.Body)
	return false
}

// check searches for everybody.
func (w *traffic) check(t *testing.T) {
	t.Helper()
	w.stop.Store(true)
	w.work.Wait()
	w.known.Range(func(person, want any) bool {
		w.find(t, person.(string), want.(string))
		return !t.Failed()
	})
	t.Logf("%d people were registered meanwhile", w.count.Load())
}

func TestJoinsAndLeavesLoseNothing(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 4, Founders: 3}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		gallery(t, client, cluster.Nodes[0].URL, "staff", 1_000_000)
		w := &traffic{cluster: cluster, client: client}
		w.run(t)

		cluster.Restart(3) // joins
		first, fourth := cluster.Nodes[0].Node, cluster.Nodes[3].Node
		eventually(t, first, "the new node gets its share of 3 of 12 replicas", func(s wire.Status) bool {
			return settled(s) && holds(s, fourth.ID()) == 3
		})
		leaving := cluster.Nodes[1].Node
		setState(t, first, leaving.ID(), wire.StateDraining)
		eventually(t, first, "the drained node holds nothing", func(s wire.Status) bool {
			return settled(s) && holds(s, leaving.ID()) == 0
		})
		cluster.Stop(1)
		setState(t, first, leaving.ID(), wire.StateRemoved)
		eventually(t, first, "the removed node is no member of meta", func(s wire.Status) bool {
			return !slices.ContainsFunc(s.Nodes, func(m wire.Member) bool { return m.ID == leaving.ID() })
		})
		w.check(t)

		// It comes back, and is no part of anything.
		cluster.Restart(1)
		ended(t, cluster.Nodes[1], "removed from its cluster")
		eventually(t, first, "all is at rest", settled)
	})
}

// The others rebuild them after the grace period.
func TestDeadNodesReplicasAreRebuilt(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 4, Away: 3 * time.Second}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		gallery(t, client, cluster.Nodes[0].URL, "staff", 1_000_000)
		w := &traffic{cluster: cluster, client: client}
		w.run(t)
		dead := cluster.Nodes[3].Node.ID()
		cluster.Stop(3)
		first := cluster.Nodes[0].Node
		eventually(t, first, "three nodes hold three replicas of each of the four shards", func(s wire.Status) bool {
			for _, m := range cluster.Nodes[:3] {
				if holds(s, m.Node.ID()) != 4 {
					return false
				}
			}
			return settled(s)
		})
		cluster.Restart(3)
		eventually(t, first, "the node that came back gets its share again", func(s wire.Status) bool {
			return settled(s) && holds(s, dead) == 3
		})
		w.check(t)
	})
}

// No node leaves that the replicas need.
func TestNeededNodeMayNotLeave(t *testing.T) {
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, cluster *nodetest.Cluster) {
		first, second := cluster.Nodes[0].Node, cluster.Nodes[1].Node
		order := wire.Order{Node: second.ID(), State: wire.StateDraining}
		if err := first.Admin().SetNodeState(t.Context(), order); err == nil {
			t.Fatal("one of three nodes leaves three replicas")
		}
		order.Force = true
		if err := first.Admin().SetNodeState(t.Context(), order); err != nil {
			t.Fatalf("drain by force: %v", err)
		}
		eventually(t, first, "the node holds nothing", func(s wire.Status) bool {
			return settled(s) && holds(s, second.ID()) == 0
		})
		order = wire.Order{Node: second.ID(), State: wire.StateActive}
		if err := first.Admin().SetNodeState(t.Context(), order); err != nil {
			t.Fatalf("take back: %v", err)
		}
		eventually(t, first, "it holds its share again", func(s wire.Status) bool {
			return settled(s) && holds(s, second.ID()) == 4
		})
	})
}

// A move that the plan would undo is refused.
func TestUndoneMoveIsRefused(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		// Each shard has one replica in each zone: two in zone a would be one too many.
		cluster := nodetest.Start(t, nodetest.Options{Nodes: 4, Zones: []string{"a", "b", "c", "a"}})
		first := cluster.Nodes[0].Node
		s := first.Status(t.Context())
		var from, to id.Node
		for _, m := range s.Nodes {
			switch {
			case m.Zone == "b":
				from = m.ID
			case m.Zone == "a" && !votesIn(m, 1):
				to = m.ID
			}
		}
		err := first.Admin().MoveShard(t.Context(), wire.ShardOrder{Shard: 1, From: from, To: to})
		if err == nil || !strings.Contains(err.Error(), "move it back") {
			t.Errorf("from zone b to a, where there is one: %v", err)
		}
		if now := first.Status(t.Context()); !settled(now) {
			t.Errorf("a move that was refused left something behind: %+v", now.Moves)
		}
	})
}

func TestDeadNodeIsOfferedNothing(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		var log logLines
		cluster := nodetest.Start(t, nodetest.Options{Shards: 6, Log: slog.New(slog.NewTextHandler(&log, nil))})
		client := cluster.Client("bank")
		gallery(t, client, cluster.Nodes[1].URL, "staff", 1_000_000)
		cluster.Stop(0)
		// Longer than the rest after which leaderships are offered to those whom the map
		// names first: the dead node is that for two of the six shards.
		for i, late := 0, time.Now().Add(13*time.Second); time.Now().Before(late); i++ {
			enrol(t, client, cluster.Nodes[1+i%2].URL, fmt.Sprint("person ", i))
			time.Sleep(50 * time.Millisecond)
		}
		for _, line := range log.with("leadership was not handed over") {
			if strings.Contains(line, " node=n1 ") { // it offered its own to others before it stopped
				continue
			}
			t.Errorf("a dead node was offered a leadership: %s", line)
		}
	})
}

// A leader with an older map has changed a group's members after meta saw the move end. The
// members become those of the map again.
func TestGroupReturnsToItsMap(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 4}, func(t *testing.T, cluster *nodetest.Cluster) {
		const number = id.Shard(1)
		at, _ := cluster.Nodes[0].Node.ShardMap().Shard(number)
		var leader *nodetest.Member
		var stranger id.Member
		for _, m := range cluster.Nodes {
			switch slices.Index(at.Voters, m.Node.Member()) {
			case 0:
				leader = m
			case -1:
				stranger = m.Node.Member()
			}
		}
		eventually(t, leader.Node, "the first voter leads", func(wire.Status) bool { return leader.Node.Leads(number) })
		group, _ := leader.Node.Group(number)
		for what, change := range map[string]func(context.Context, uint64) error{
			"a voter that was removed votes again": func(ctx context.Context, index uint64) error { return group.Remove(ctx, at.Voters[2], index) },
			"a member that was added leaves":       func(ctx context.Context, index uint64) error { return group.AddNonvoter(ctx, stranger, index) },
		} {
			_, index, err := group.Servers()
			must.Do(t, err)
			if err := change(t.Context(), index); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			eventually(t, leader.Node, what, func(wire.Status) bool {
				servers, now, err := group.Servers()
				return err == nil && now > index && len(servers) == len(at.Voters) && !slices.ContainsFunc(servers, func(s raftfsm.Server) bool {
					return !s.Voter || !slices.Contains(at.Voters, s.Member)
				})
			})
		}
	})
}
