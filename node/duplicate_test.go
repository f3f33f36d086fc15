package node_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
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

// leads returns the groups that a node leads.
func leads(m *nodetest.Member) (list []id.Shard) {
	for _, g := range m.Node.Status(context.Background()).Nodes {
		for _, s := range g.Groups {
			if g.Answers && s.Role == "leader" && g.ID == m.Node.ID() {
				list = append(list, s.Group)
			}
		}
	}
	return list
}

// A copy of a node's data directory starts while the network is split between the two, and
// each has another node on its side. One side only may have leaders.
func TestCopiedNodeNeverVotesTwice(t *testing.T) {
	t.Parallel()
	network := memnet.New(1)
	cluster := nodetest.Start(t, nodetest.Options{Network: network})
	client := cluster.Client("bank", network.Host("10.0.0.100"))
	first := cluster.Nodes[0]
	gallery(t, client, first.URL, "staff", 1000)
	known := people(t, client, first.URL, 0, 10)
	cluster.Stop(0)
	double := cluster.Nodes[cluster.Copy(0, "10.0.0.9", network)]
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
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	if a, err := client.Send(ctx, double.URL, r); err == nil && a.Status < http.StatusInternalServerError {
		t.Errorf("the copy answers %d %s", a.Status, a.Body)
	}
	cancel()
	known["meanwhile"] = enrolUntil(t, client, first.URL, "meanwhile")

	network.Heal()
	select {
	case <-double.Node.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the copy hears the node and does not end")
	}
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
}

// The node on the old directory was cut off when the copy took over. Its own side can't
// commit. It ends when it hears of the other. The copy is as new as the node.
func TestReplacedNodeEnds(t *testing.T) {
	t.Parallel()
	network := memnet.New(2)
	cluster := nodetest.Start(t, nodetest.Options{Network: network})
	client := cluster.Client("bank", network.Host("10.0.0.100"))
	first := cluster.Nodes[0]
	gallery(t, client, first.URL, "staff", 1000)
	known := people(t, client, first.URL, 0, 10)
	cluster.Stop(0)
	double := cluster.Nodes[cluster.Copy(0, "10.0.0.9", network)]
	splitHosts(network, []string{"10.0.0.1"}, []string{"10.0.0.2", "10.0.0.3", "10.0.0.9"})
	cluster.Restart(0) // nobody hears of this start
	cluster.Restart(3)
	select {
	case <-double.Node.Ready():
	case <-time.After(30 * time.Second):
		t.Fatalf("the copy does not take over: %v", double.Node.Err())
	}
	known["by the copy"] = enrolUntil(t, client, double.URL, "by the copy")
	network.Heal()
	select {
	case <-first.Node.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the old node hears of the copy and does not end")
	}
	if err := first.Node.Err(); !errors.Is(err, holder.ErrHeld) || !strings.Contains(err.Error(), double.Config.PeerAddress) {
		t.Errorf("the old node ended: %v", err)
	}
	cluster.Stop(0)
	cluster.Stop(3)
	cluster.Restart(3) // in its place: at once, though nobody forgot it
	select {
	case <-double.Node.Ready():
	case <-time.After(30 * time.Second):
		t.Fatalf("the copy does not start again: %v", double.Node.Err())
	}
	everybody(t, client, cluster, known)
}

// A copy that is older than the node takes over while the node is cut off, learns that its
// state is old, and ends. The node goes on.
func TestOlderCopyEndsAfterTakeover(t *testing.T) {
	t.Parallel()
	network := memnet.New(3)
	cluster := nodetest.Start(t, nodetest.Options{Network: network})
	client := cluster.Client("bank", network.Host("10.0.0.100"))
	first := cluster.Nodes[0]
	gallery(t, client, first.URL, "staff", 1000)
	known := people(t, client, first.URL, 0, 10)
	cluster.Stop(0)
	double := cluster.Nodes[cluster.Copy(0, "10.0.0.9", network)]
	cluster.Restart(0)
	cluster.WaitReady()
	peer := cluster.Nodes[1].Node
	eventually(t, peer, "the new start", func(wire.Status) bool { return peer.KnownStart(first.Node.Member()) == first.Node.OwnStart() })
	splitHosts(network, []string{"10.0.0.1"}, []string{"10.0.0.2", "10.0.0.3", "10.0.0.9"})
	cluster.Restart(3)
	select {
	case <-double.Node.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the older copy goes on")
	}
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
}
