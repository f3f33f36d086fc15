package admin_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"facet/internal/answers"
	"facet/internal/id"
	"facet/internal/must"
	"facet/node/cert"
	"facet/node/nodetest"
	"facet/node/receipt"
	"facet/node/wire"
)

// operator calls the operators' ports of a cluster.
type operator struct {
	cluster *nodetest.Cluster
	http    *http.Client
}

func newOperator(t *testing.T, c *nodetest.Cluster) operator {
	t.Helper()
	dir := t.TempDir()
	files := cert.Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "c.pem"), Key: filepath.Join(dir, "c.key")}
	if _, err := cert.Ensure(files, c.Authority, func() (cert.Pair, error) { return c.Authority.IssueAdmin("ada") }); err != nil {
		t.Fatal(err)
	}
	s, err := cert.Load(files, slog.New(slog.DiscardHandler))
	must.Do(t, err)
	return operator{c, c.Nodes[0].HTTP(s.AdminClientConfig())}
}

// call sends a request to a node and returns its answer.
func (o operator) call(t *testing.T, i int, method, path string, in any) (status int, body []byte) {
	t.Helper()
	text, err := json.Marshal(in)
	must.Do(t, err)
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+o.cluster.Nodes[i].Config.AdminAddress+path, bytes.NewReader(text))
	must.Do(t, err)
	a, err := o.http.Do(r)
	must.Do(t, err)
	defer a.Body.Close()
	if body, err = io.ReadAll(a.Body); err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, body
}

// find returns the records of the cluster's log that a query asks for, when there are as many as wanted, or
// after ten seconds.
func (o operator) find(t *testing.T, query string, want int) []answers.AuditRecord {
	t.Helper()
	for late := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		status, body := o.call(t, 1, http.MethodGet, wire.PathAudit+"?reads=false&length=200&"+query, nil)
		var page struct{ Records []answers.AuditRecord }
		if err := json.Unmarshal(body, &page); err != nil || status != http.StatusOK {
			t.Fatalf("the cluster's log answers %d %s, %v", status, body, err)
		}
		if len(page.Records) >= want || time.Now().After(late) {
			return page.Records
		}
	}
}

// orders has an order for each pattern that changes something, and what its records say of it. Most orders are
// refused: they have records nevertheless.
func orders(c *nodetest.Cluster) map[string]struct {
	in        any
	operation string
	about     string
} {
	node := c.Nodes[0].Node.ID()
	folder := wire.BackupQuery{From: "none://y?secret=1", Name: "monday", Key: []byte("secret")}
	return map[string]struct {
		in        any
		operation string
		about     string
	}{
		"POST " + wire.PathNodes:             {wire.Order{Node: node, State: "asleep"}, "change a node's state", node.String() + " asleep"},
		"POST " + wire.PathShards:            {wire.ShardOrder{Shard: 77, From: node, To: node}, "move a shard", "shard 77 from " + node.String() + " to " + node.String()},
		"POST " + wire.PathReplicas:          {wire.ReplicasOrder{Replicas: 2}, "change the number of replicas", "2"},
		"POST " + wire.PathWrites:            {wire.WriteOrder{Shard: 1}, "put a write back", "shard 1"},
		"POST " + wire.PathCertificates:      {wire.CertificateOrder{Node: node}, "change certificates", node.String() + " 0 bytes of authorities, 0 of a certificate"},
		"POST " + wire.PathRings:             {wire.RingOrder{Ring: wire.RingGossip}, "replace a shared key", "gossip"},
		"POST " + wire.PathReceipt:           {receipt.Order{Subjects: make([]receipt.Subject, 1)}, "make a receipt", "1 subjects"},
		"POST " + wire.PathTenants:           {wire.NewTenant{Name: "shop"}, "create tenant", "shop"},
		"PATCH " + wire.PathTenants:          {wire.SetTenant{Name: "bank", Quotas: map[string]uint64{"searches": 3}, Audit: &wire.Audit{Mode: "strict"}}, "set tenant", "bank searches, audit strict"},
		"DELETE " + wire.PathTenants:         {nil, "delete tenant", "bank"},
		"POST " + wire.PathTenantStates:      {wire.SetTenantState{Name: "bank", State: wire.TenantDisabled}, "set a tenant's state", "bank disabled"},
		"POST " + wire.PathKeys:              {wire.NewKey{Tenant: "bank", Role: "auditor", KeyTerms: wire.KeyTerms{Holder: "eve"}}, "create access key", "bank auditor eve"},
		"DELETE " + wire.PathKeys + "/{key}": {nil, "revoke access key", "bank KEY7"},
		"POST " + wire.PathBackup:            {wire.BackupOrder{To: "none://x?secret=1"}, "start a backup", "none://x"},
		"POST " + wire.PathBackupVerify:      {folder, "verify a backup", "none://y monday"},
		"POST " + wire.PathRestore:           {wire.RestoreOrder{BackupQuery: folder, Gallery: "bank/staff"}, "start a restoration", "none://y monday bank/staff"},
	}
}

// reads are the requests with another method than GET that change nothing.
var reads = map[string]bool{"POST " + wire.PathBackupList: true, "POST " + wire.PathErasures: true}

// Each order of an operator has one intent and one record in the cluster's log, also a refused one.
func TestEachOrderHasOneRecord(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 2}, func(t *testing.T, c *nodetest.Cluster) {
		if _, err := c.CreateTenant("bank"); err != nil {
			t.Fatal(err)
		}
		o := newOperator(t, c)
		all := orders(c)
		answered := map[string]int{}
		for i, pattern := range c.Nodes[0].Node.Admin().Patterns() {
			method, path, _ := strings.Cut(pattern, " ")
			order, known := all[pattern]
			if method == http.MethodGet || reads[pattern] {
				continue
			}
			if !known {
				t.Errorf("%s has no row: what do the records say of it?", pattern)
				continue
			}
			delete(all, pattern)
			path = strings.Replace(path, "{key}", "KEY7", 1)
			if method == http.MethodDelete {
				path += "?tenant=bank"
			}
			answered[order.operation], _ = o.call(t, i%3, method, path, order.in)
		}
		for pattern := range all {
			t.Errorf("%s has a row and no handler", pattern)
		}
		records := map[string][]answers.AuditRecord{}
		for _, kind := range []string{"intent", "command"} {
			for _, r := range o.find(t, "kind="+kind, len(answered)) {
				records[kind+" "+r.Operation] = append(records[kind+" "+r.Operation], r)
			}
		}
		for _, order := range orders(c) {
			intents, outcomes := records["intent "+order.operation], records["command "+order.operation]
			if len(intents) != 1 || len(outcomes) != 1 {
				t.Errorf("%s has %d intents and %d outcomes, want 1 of each", order.operation, len(intents), len(outcomes))
				continue
			}
			intent, outcome := intents[0], outcomes[0]
			if outcome.Status != answered[order.operation] || intent.RequestID != outcome.RequestID || intent.Number > outcome.Number {
				t.Errorf("%s was answered %d, its records are %+v and %+v", order.operation, answered[order.operation], intent, outcome)
			}
			for _, r := range []answers.AuditRecord{intent, outcome} {
				if r.Holder != "ada" || r.Source != c.Nodes[0].Host || r.Reason != order.about {
					t.Errorf("%s: the record is %+v, want about %q", order.operation, r, order.about)
				}
			}
		}
		if n := len(records); n != 2*len(answered) {
			t.Errorf("there are records of %d kinds of orders, want %d", n, 2*len(answered))
		}
	})
}

// The log of the cluster belongs to no tenant: its id is not one that a tenant can have.
func TestClusterLogBelongsToNoTenant(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, c *nodetest.Cluster) {
		o := newOperator(t, c)
		if status, body := o.call(t, 0, http.MethodGet, wire.PathAudit+"/key", nil); status != http.StatusOK || !strings.Contains(string(body), "/"+id.ClusterLog.String()+"+") {
			t.Errorf("the log's key is %d %s", status, body)
		}
		if status, body := o.call(t, 0, http.MethodGet, wire.PathAudit+"/tile/0/x001/000", nil); status != http.StatusNotFound {
			t.Errorf("a tile of the future: %d %s", status, body)
		}
		if status, _ := o.call(t, 0, http.MethodPatch, wire.PathTenants, wire.SetTenant{Name: id.ClusterLog.String(), Audit: &wire.Audit{Mode: "off"}}); status != http.StatusNotFound {
			t.Errorf("switching the cluster's log off: %d", status)
		}
	})
}
