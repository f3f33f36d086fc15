package node_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router"
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

// check writes through all nodes, and demands that they have operations in files or not.
func (f *newForms) check(t *testing.T, step string, want bool) {
	t.Helper()
	f.repeat(t, 0)
	for i, m := range f.cluster.Nodes[:3] {
		enrol(t, f.client, m.URL, fmt.Sprint(step, i))
	}
	for i, m := range f.cluster.Nodes[:3] {
		must.Do(t, m.Node.SnapshotHere(1))
		if got := nodetest.HasOperationFiles(t, m.Config.Dir); got != want {
			t.Errorf("%s: node %d has operations in files: %v", step, i, got)
		}
	}
}

// New forms are used only when all nodes know them, and then for good.
func TestNewFormsWaitForAllNodes(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 4, Founders: 3, Shards: 1, Level: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		const next = metafsm.LevelBatches
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
		f.check(t, "old nodes", false)
		for i := range uint32(2) {
			upgraded(t, cluster, int(i), next)
			waitLevel(t, cluster.Nodes[i].Node, "the sum of what nodes know", 3+(i+1)*(next-1), recorded)
			if got := level(cluster.Nodes[i].Node); got != 1 {
				t.Fatalf("with %d of 3 nodes upgraded the level is %d", i+1, got)
			}
		}
		f.check(t, "an old node among new ones", false)
		order, before := wire.RingOrder{Ring: wire.RingCluster}, keyIn(t, first.Config.ClusterKeyFile)
		eventually(t, first.Node, "words that say which node is old", func(wire.Status) bool {
			_, err := first.Node.Rotate(t.Context(), order)
			if err == nil {
				t.Fatal("a rotation is begun with an old node")
			}
			return strings.Contains(err.Error(), "upgrade n3 first") // and not that meta has no leader just now
		})
		if after := keyIn(t, first.Config.ClusterKeyFile); string(after) != string(before) {
			t.Error("what was refused has changed a key file")
		}
		// One step back is possible as long as not all have gone forward.
		upgraded(t, cluster, 1, 1)
		waitLevel(t, cluster.Nodes[1].Node, "the sum of what nodes know", 3+next-1, recorded)
		upgraded(t, cluster, 1, next)
		upgraded(t, cluster, 2, next)
		for _, m := range cluster.Nodes[:3] {
			waitLevel(t, m.Node, "the noted level", next, (*node.Node).NotedLevel)
		}
		f.check(t, "new nodes", true)
		if _, err := first.Node.Rotate(t.Context(), order); err != nil {
			t.Errorf("a rotation with new nodes only: %v", err)
		}
		cluster.Restart(3)
		ended(t, cluster.Nodes[3])
		if err := cluster.Nodes[3].Node.Err(); !errors.Is(err, metafsm.ErrLevel) {
			t.Errorf("an old node that would join stops because of %v", err)
		}
		upgraded(t, cluster, 3, next)
		cluster.Stop(0)
		old := first.Config
		old.Level = 1
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

// Each new form is refused in words that say what to do while a node may not know it.
func TestOldClusterRefusesNewForms(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 2, Level: metafsm.LevelReplicas - 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		m, url := cluster.Nodes[0], cluster.Nodes[0].URL
		c, tenant := cluster.ClientOf("bank")
		gallery(t, c, url, "staff", 100)
		s := enrol(t, c, url, "ann")
		list := galleryID(t, c, url)
		f := func(method, target string, body any) {
			t.Helper()
			a := c.Call(t, url, method, target, body)
			if a.Status != http.StatusInternalServerError || !strings.Contains(string(a.Body), "finish the upgrade") {
				t.Errorf("%s %s: %d %s", method, target, a.Status, a.Body)
			}
		}
		with := func(name string, value any) map[string]any {
			body := face("bob")
			body[name] = value
			return body
		}
		later, never := expiringFace("bob", time.Now().Add(time.Hour)), with("expires", "")
		f(http.MethodPost, "/v1.1/subjects", with("externalId", "staff/1"))
		f(http.MethodPost, "/v1.1/subjects", later)
		f(http.MethodPost, "/v1.1/subjects/"+s.ID+"/events", later)
		f(http.MethodPut, "/v1.1/subjects/"+s.ID, later)
		f(http.MethodPut, "/v1.1/subjects/"+s.ID, never)
		f(http.MethodGet, "/v1.1/subjects?expiresBefore=2199-01-01T00:00:00Z", nil)
		f(http.MethodPatch, "/api/galleries/"+list, map[string]any{"retentionDays": 3})
		f(http.MethodPost, "/api/galleries", map[string]any{"name": "kept", "size": 10, "faceMinimumQualityScore": 0.45, "retentionDays": 3})
		door := map[string]any{"name": "door", "faceMinimumQualityScore": .5, "galleryId": list, "multipleFaces": "dominant"}
		f(http.MethodPatch, "/api/applications/"+applicationID(t, c, url), map[string]any{"multipleFaces": "dominant"})
		f(http.MethodPost, "/api/applications", door)
		door["multipleFaces"] = "refuse"
		expect(t, c, http.StatusOK, url, http.MethodPost, "/api/applications", door)
		if _, err := m.Node.Admin().SetReplicas(t.Context(), wire.ReplicasOrder{Replicas: 5}); err == nil || !strings.Contains(err.Error(), "upgrade all nodes first") {
			t.Errorf("the number of replicas: %v", err)
		}
		if got := m.Node.Status(t.Context()).Replicas; got != 3 {
			t.Errorf("%d replicas are wanted", got)
		}
		r := m.Node.Router()
		if _, err := r.SetQuotas(t.Context(), tenant, []metafsm.QuotaValue{{Quota: metafsm.QuotaWrites, Most: 2}}); router.KindOf(err) != router.Unavailable {
			t.Errorf("a quota: %v", err)
		}
		if err := r.EnsureClusterLog(t.Context()); err != nil {
			t.Error(err)
		}
		m.Node.RecordRefusals(time.Now().Unix()/60 + 1)
		if _, err := r.BeginAudit(t.Context(), id.ClusterLog); err == nil {
			t.Error("the cluster's log begins")
		}
		if _, err := r.AuditHead(t.Context(), id.ClusterLog); router.KindOf(err) != router.NotFound {
			t.Errorf("the cluster's log: %v", err)
		}
		// A backup without a log is restored, and the act names none.
		to := "file://" + t.TempDir()
		backUp(t, m, wire.BackupOrder{To: to, Name: "first"})
		young := successor(t, cluster, nodetest.Options{Nodes: 1, Shards: 2})
		backups := young.Nodes[0].Node.Backups()
		waitJob(t, backups, backups.StartRestore(newest(to)))
		if acts := restoreActs(t, young, 1); !slices.Equal(acts, []string{""}) {
			t.Errorf("the restoration names %q", acts)
		}
		isFound(t, young.As(c), young.Nodes[0].URL, "ann")
	})
}
