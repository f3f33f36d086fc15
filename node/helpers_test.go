package node_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node"
	"facet/node/cert"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// parsed returns the id in a text.
func parsed(t testing.TB, text string) id.UUID {
	t.Helper()
	u, err := id.Parse(text)
	must.Do(t, err)
	return u
}

func subjectID(t testing.TB, text string) id.Subject {
	t.Helper()
	return id.Subject{UUID: parsed(t, text)}
}

// synced lets all nodes know what meta has.
func synced(t *testing.T, cluster *nodetest.Cluster) {
	t.Helper()
	for _, m := range cluster.Nodes {
		must.Do(t, m.Node.Router().SyncMeta(t.Context()))
	}
}

// restart restarts nodes, one after the other.
func restart(cluster *nodetest.Cluster, nodes ...int) {
	for _, i := range nodes {
		reconfigured(cluster, i, func(*node.Config) {})
	}
}

// reconfigured restarts a node with another configuration.
func reconfigured(cluster *nodetest.Cluster, i int, change func(*node.Config)) {
	if cluster.Nodes[i].Node != nil {
		cluster.Stop(i)
	}
	change(&cluster.Nodes[i].Config)
	cluster.Restart(i)
	cluster.WaitReady()
}

// ended waits until a node has ended by itself, and demands words of its error.
func ended(t *testing.T, m *nodetest.Member, words ...string) {
	t.Helper()
	closes(t, m.Node.Done(), movesTimeout, "it ends", m)
	for _, w := range words {
		if err := m.Node.Err(); !strings.Contains(err.Error(), w) {
			t.Errorf("node %s ended because of %v, want %q", m.Config.Name, err, w)
		}
	}
}

// setState changes the state of a node by an order to another one.
func setState(t *testing.T, by *node.Node, who id.Node, state string) {
	t.Helper()
	if err := by.Admin().SetNodeState(t.Context(), wire.Order{Node: who, State: state}); err != nil {
		t.Fatalf("%s: %v", state, err)
	}
}

// setQuota sets a quota of a tenant on all nodes; 0 is the default.
func setQuota(t *testing.T, cluster *nodetest.Cluster, tenant id.Tenant, quota metafsm.Quota, most uint64) {
	t.Helper()
	if _, err := cluster.Nodes[0].Node.Router().SetQuotas(t.Context(), tenant, []metafsm.QuotaValue{{Quota: quota, Most: most}}); err != nil {
		t.Fatal(err)
	}
	synced(t, cluster)
}

// setAudit sets the mode of a tenant's audit log on all nodes.
func setAudit(t *testing.T, cluster *nodetest.Cluster, tenant id.Tenant, mode metafsm.AuditMode) {
	t.Helper()
	must.Do(t, cluster.Nodes[0].Node.Router().SetAudit(t.Context(), tenant, mode, 0))
	synced(t, cluster)
}

// newKey creates an access key.
func newKey(t testing.TB, cluster *nodetest.Cluster, tenant id.Tenant, terms router.KeyTerms) router.AccessKey {
	t.Helper()
	key, err := cluster.Nodes[0].Node.Router().CreateAccessKey(t.Context(), tenant, terms)
	must.Do(t, err)
	return key
}

// leaderOf returns the index of the node that leads a group.
func leaderOf(t *testing.T, cluster *nodetest.Cluster, group id.Shard) int {
	t.Helper()
	for i, m := range cluster.Nodes {
		if m.Node != nil && m.Node.Leads(group) {
			return i
		}
	}
	t.Fatalf("group %d has no leader", group)
	return 0
}

// galleryID returns the id of the first gallery of c's tenant.
func galleryID(t testing.TB, c *nodetest.Client, base string) string {
	t.Helper()
	var list struct{ Galleries []struct{ ID string } }
	expect(t, c, http.StatusOK, base, http.MethodGet, "/api/galleries", nil).Decode(t, &list)
	return list.Galleries[0].ID
}

// applicationID returns the id of the first application of c's tenant.
func applicationID(t testing.TB, c *nodetest.Client, base string) string {
	t.Helper()
	var list struct{ Applications []struct{ ID string } }
	expect(t, c, http.StatusOK, base, http.MethodGet, "/api/applications", nil).Decode(t, &list)
	return list.Applications[0].ID
}

// adminCall makes a request of the admin port with a certificate, nil for none.
func adminCall(t testing.TB, m *nodetest.Member, s *cert.Source, method, path string) (status int, body string) {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if s != nil {
		config = s.AdminClientConfig()
	}
	client := m.HTTP(config)
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+m.Config.AdminAddress+path, strings.NewReader("no JSON"))
	must.Do(t, err)
	a, err := client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	must.Do(t, err)
	return a.StatusCode, string(b)
}

// isFound demands that a search for a person finds one subject: the given one, if there is one.
func isFound(t *testing.T, c *nodetest.Client, base, person string, subject ...string) {
	t.Helper()
	if got := find(t, c, base, person); len(got) != 1 || len(subject) > 0 && got[0] != subject[0] {
		t.Errorf("%s is found as %v, want one subject: %v", person, got, subject)
	}
}

// isGone demands that a search for a person finds nobody.
func isGone(t *testing.T, c *nodetest.Client, base, person string) {
	t.Helper()
	if got := find(t, c, base, person); len(got) > 0 {
		t.Errorf("%s is still found as %v", person, got)
	}
}
