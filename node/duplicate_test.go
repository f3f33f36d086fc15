package node_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/holder"
	"facet/node/nodetest"
	"facet/node/replicas"
	"facet/node/transport/memnet"
	"facet/node/wire"
)

// splitHosts cuts all links between two sides.
func splitHosts(network *memnet.Network, one, other []string) {
	for _, a := range one {
		for _, b := range other {
			network.Set(a, b, memnet.Link{Cut: true})
			network.Set(b, a, memnet.Link{Cut: true})
		}
	}
}

// leads returns the groups that a node leads now, as the node itself knows.
func leads(m *nodetest.Member) (list []id.Shard) {
	for _, g := range m.Node.Admin().Own().Groups {
		if g.Role == "leader" {
			list = append(list, g.Group)
		}
	}
	return list
}

// copied is a cluster whose first node was stopped and copied to another address.
type copied struct {
	network       *memnet.Network
	cluster       *nodetest.Cluster
	client        *nodetest.Client
	first, double *nodetest.Member
	known         map[string]string // the subject of each person
}

func copyFirst(t *testing.T, seed uint64) copied {
	t.Helper()
	c := copied{cluster: nodetest.Start(t, nodetest.Options{})}
	c.network = c.cluster.Network
	c.client = c.cluster.Client("bank")
	c.first = c.cluster.Nodes[0]
	gallery(t, c.client, c.first.URL, "staff", 1000)
	c.known = people(t, c.client, c.first.URL, 0, 10)
	c.cluster.Stop(0)
	c.double = c.cluster.Nodes[c.cluster.Copy(0, "10.0.0.9")]
	return c
}

// closes waits for a channel of the node m to be closed.
func closes(t *testing.T, closed <-chan struct{}, most time.Duration, what string, m *nodetest.Member) {
	t.Helper()
	select {
	case <-closed:
	case <-time.After(most):
		t.Fatalf("%s: not within %v; the node's error: %v", what, most, m.Node.Err())
	}
}

// A copy of a node's data directory starts while the network is split between the two, and
// each has another node on its side. One side only may have leaders.
func TestCopiedNodeNeverVotesTwice(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		c := copyFirst(t, 1)
		network, cluster, client, first, double, known := c.network, c.cluster, c.client, c.first, c.double, c.known
		cluster.Restart(0)
		cluster.WaitReady()

		splitHosts(network, []string{"10.0.0.1", "10.0.0.2"}, []string{"10.0.0.3", "10.0.0.9"})
		cluster.Restart(3)
		for late := time.Now().Add(6 * time.Second); time.Now().Before(late); time.Sleep(100 * time.Millisecond) {
			if list := leads(double); len(list) > 0 {
				t.Fatalf("the copy leads %v", list)
			}
			if list := leads(cluster.Nodes[2]); len(list) > 0 && time.Until(late) < 3*time.Second {
				t.Fatalf("with the copy's votes the third node leads %v", list)
			}
		}
		if err := double.Node.Err(); err != nil {
			t.Errorf("the copy does not hear the node and ends: %v", err)
		}
		r, err := client.Sign(double.URL, http.MethodPost, "/v1.1/subjects", face("nobody"))
		must.Do(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if a, err := client.Send(ctx, double.URL, r); err == nil && a.Status < http.StatusInternalServerError {
			t.Errorf("the copy answers %d %s", a.Status, a.Body)
		}
		cancel()
		known["meanwhile"] = enrolUntil(t, client, first.URL, "meanwhile")

		network.Heal()
		closes(t, double.Node.Done(), 20*time.Second, "the copy ends", double)
		if err := double.Node.Err(); !errors.Is(err, holder.ErrHeld) || !strings.Contains(err.Error(), first.Config.PeerAddress) {
			t.Errorf("the copy ended: %v", err)
		}
		within(t, 10*time.Second, "the status names both", func() bool {
			s := cluster.Nodes[1].Node.Status(t.Context())
			return warned(s, first.Config.PeerAddress) && warned(s, double.Config.PeerAddress)
		})
		cluster.Stop(3)

		known["after"] = enrolUntil(t, client, cluster.Nodes[2].URL, "after")
		everybody(t, client, cluster, known)
	})
}

// The node on the old directory was cut off when the copy took over. Its own side can't
// commit. It ends when it hears of the other. The copy is as new as the node.
func TestReplacedNodeEnds(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		c := copyFirst(t, 2)
		network, cluster, client, first, double, known := c.network, c.cluster, c.client, c.first, c.double, c.known
		splitHosts(network, []string{"10.0.0.1"}, []string{"10.0.0.2", "10.0.0.3", "10.0.0.9"})
		cluster.Restart(0) // nobody hears of this start
		cluster.Restart(3)
		closes(t, double.Node.Ready(), 30*time.Second, "the copy takes over", double)
		known["by the copy"] = enrolUntil(t, client, double.URL, "by the copy")
		network.Heal()
		closes(t, first.Node.Done(), 20*time.Second, "the old node hears of the copy and ends", first)
		if err := first.Node.Err(); !errors.Is(err, holder.ErrHeld) || !strings.Contains(err.Error(), double.Config.PeerAddress) {
			t.Errorf("the old node ended: %v", err)
		}
		cluster.Stop(0)
		cluster.Stop(3)
		cluster.Restart(3) // in its place: at once, though nobody forgot it
		closes(t, double.Node.Ready(), 30*time.Second, "the copy starts again", double)
		everybody(t, client, cluster, known)
	})
}

// A copy that is older than the node takes over while the node is cut off, learns that its
// state is old, and ends. The node goes on.
func TestOlderCopyEndsAfterTakeover(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		c := copyFirst(t, 3)
		network, cluster, client, first, double, known := c.network, c.cluster, c.client, c.first, c.double, c.known
		cluster.Restart(0)
		cluster.WaitReady()
		peer := cluster.Nodes[1].Node
		eventually(t, peer, "the new start", func(wire.Status) bool { return peer.KnownStart(first.Node.Member()) == first.Node.OwnStart() })
		splitHosts(network, []string{"10.0.0.1"}, []string{"10.0.0.2", "10.0.0.3", "10.0.0.9"})
		cluster.Restart(3)
		closes(t, double.Node.Done(), 30*time.Second, "the older copy ends", double)
		if err := double.Node.Err(); !errors.Is(err, replicas.ErrNodeStateLost) {
			t.Errorf("the older copy ended: %v", err)
		}
		cluster.Stop(3)
		network.Heal()
		cluster.WaitReady()
		if err := first.Node.Err(); err != nil {
			t.Errorf("the node ended: %v", err)
		}
		known["after"] = enrolUntil(t, client, first.URL, "after")
		everybody(t, client, cluster, known)
	})
}
