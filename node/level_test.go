package node_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"facet/node"
	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
)

// upgraded starts a node again as software that knows another level.
func upgraded(t *testing.T, c *nodetest.Cluster, i int, level uint32) {
	t.Helper()
	reconfigured(c, i, func(o *node.Config) { o.Level = level })
}

// waitLevel waits until a node sees the cluster's level, or its records' levels.
func waitLevel(t testing.TB, n *node.Node, what string, want uint32, of func(*node.Node) uint32) {
	t.Helper()
	within(t, 20*time.Second, fmt.Sprintf("%s is %d", what, want), func() bool { return of(n) == want })
}

// newForms is a cluster of old nodes that are upgraded one by one.
type newForms struct {
	cluster *nodetest.Cluster
	client  *nodetest.Client
	again   nodetest.Request // a registration
	first   subject          // its answer
}

// repeat sends the same registration to a node.
func (f *newForms) repeat(t *testing.T, i int) {
	t.Helper()
	a, err := f.client.SendAs(t.Context(), f.cluster.Nodes[i].URL, f.cluster.Nodes[0].URL, f.again)
	if err != nil || a.Status != http.StatusCreated {
		t.Fatalf("register: %v, %d %s", err, a.Status, a.Body)
	}
	var s subject
	if a.Decode(t, &s); f.first.ID == "" {
		f.first = s
	}
	if s.ID != f.first.ID {
		t.Fatalf("the same request made %s and %s", f.first.ID, s.ID)
	}
}

// check writes through all nodes.
func (f *newForms) check(t *testing.T, step string) {
	t.Helper()
	f.repeat(t, 0)
	for i, m := range f.cluster.Nodes[:3] {
		enrol(t, f.client, m.URL, fmt.Sprint(step, i))
	}
}

// New forms are used only when all nodes know them, and then for good.
func TestNewFormsWaitForAllNodes(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 4, Founders: 3, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		const now, next = metafsm.Level, metafsm.Level + 1
		f := &newForms{cluster: cluster, client: cluster.Client("bank")}
		c, first := f.client, cluster.Nodes[0]
		gallery(t, c, first.URL, "staff", 100)
		var err error
		if f.again, err = c.Sign(first.URL, http.MethodPost, "/v1.1/subjects", face("the first")); err != nil {
			t.Fatal(err)
		}
		recorded := func(n *node.Node) (sum uint32) {
			for _, level := range n.RecordedLevels() {
				sum += level
			}
			return sum
		}
		level := func(n *node.Node) uint32 { return n.Status(t.Context()).Level }
		f.check(t, "old nodes")
		for i := range uint32(2) {
			upgraded(t, cluster, int(i), next)
			waitLevel(t, cluster.Nodes[i].Node, "the sum of what nodes know", 3*now+i+1, recorded)
			if got := level(cluster.Nodes[i].Node); got != now {
				t.Fatalf("with %d of 3 nodes upgraded the level is %d", i+1, got)
			}
		}
		f.check(t, "an old node among new ones")
		// One step back is possible as long as not all have gone forward.
		upgraded(t, cluster, 1, now)
		waitLevel(t, cluster.Nodes[1].Node, "the sum of what nodes know", 3*now+1, recorded)
		upgraded(t, cluster, 1, next)
		upgraded(t, cluster, 2, next)
		for _, m := range cluster.Nodes[:3] {
			waitLevel(t, m.Node, "the noted level", next, (*node.Node).NotedLevel)
		}
		f.check(t, "new nodes")
		cluster.Restart(3)
		ended(t, cluster.Nodes[3])
		if err := cluster.Nodes[3].Node.Err(); !errors.Is(err, metafsm.ErrLevel) {
			t.Errorf("an old node that would join stops because of %v", err)
		}
		upgraded(t, cluster, 3, next)
		cluster.Stop(0)
		old := first.Config
		old.Level = now
		if n, err := node.Open(t.Context(), old); !errors.Is(err, metafsm.ErrLevel) {
			t.Errorf("an old node opens the new data: %v, %v", n, err)
		}
		cluster.Stop(1)
		cluster.Stop(2)
		for i := range 3 {
			cluster.Restart(i)
		}
		cluster.WaitReady()
		for i := range cluster.Nodes {
			f.repeat(t, i)
			isFound(t, c, cluster.Nodes[i].URL, "the first", f.first.ID)
		}
	})
}

// A node does not start on the data directory of facet 0.3.1, and leaves it as it is.
func TestOldDirectoryStartsNoNode(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		cluster := nodetest.Prepare(t, nodetest.Options{Nodes: 1, Shards: 2, Dir: filepath.Join("testdata", "before", "level-3")})
		dir := cluster.Nodes[0].Config.Dir
		n, err := node.Open(t.Context(), cluster.Nodes[0].Config)
		if !errors.Is(err, metafsm.ErrOldLevel) || !strings.Contains(err.Error(), "facet 0.3.1 reads it") {
			t.Fatalf("a node of today opens it: %v, %v", n, err)
		}
		if level, err := os.ReadFile(filepath.Join(dir, "level")); err != nil || string(level) != "3" {
			t.Errorf("its level is now %q, %v", level, err)
		}
	})
}
