package node_test

import (
	"encoding/json"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"facet/internal/id"
	"facet/node"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
)

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
	if err != nil {
		t.Fatal(err)
	}
	var who struct {
		Format int     `json:"format"`
		Node   id.Node `json:"node"`
		Epoch  uint32  `json:"epoch"`
	}
	if err := json.Unmarshal(raw, &who); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
		if err := n.OpenEmpty(9); err != nil {
			t.Fatal(err)
		}
		if got := n.RoleOf(9); got != "non-voter" {
			t.Errorf("a replica that nobody has made a member is called %q", got)
		}
	})
}
