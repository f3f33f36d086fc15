package admin_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"facet/internal/answers"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
)

// ask sends an order to a node and reads the answer, whose status it returns, into out.
func (o operator) ask(t *testing.T, i int, method, path string, in, out any) int {
	t.Helper()
	status, body := o.call(t, i, method, path, in)
	if err := json.Unmarshal(body, out); err != nil {
		t.Fatalf("%s %s answers %s: %v", method, path, body, err)
	}
	return status
}

// An order that gives no days leaves those of the tenant. The answer shows what the order made, from each node.
func TestAuditModeLeavesDays(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 2}, func(t *testing.T, c *nodetest.Cluster) {
		for _, name := range []string{"bank", "shop"} {
			if _, err := c.CreateTenant(name); err != nil {
				t.Fatal(err)
			}
		}
		o := newOperator(t, c)
		f := func(i int, tenant string, order, want wire.Audit) {
			t.Helper()
			var now wire.Tenant
			if status := o.ask(t, i, http.MethodPatch, wire.PathTenants, wire.SetTenant{Name: tenant, Audit: &order}, &now); status != http.StatusOK || now.Audit != want {
				t.Errorf("%s %+v is answered %d %+v, want %+v", tenant, order, status, now.Audit, want)
			}
			var all []wire.Tenant
			o.ask(t, (i+1)%3, http.MethodGet, wire.PathTenants, nil, &all)
			if k := slices.IndexFunc(all, func(t wire.Tenant) bool { return t.Name == tenant }); k < 0 || all[k].Audit != want {
				t.Errorf("after %s %+v the tenants are %+v, want %+v", tenant, order, all, want)
			}
		}
		f(0, "bank", wire.Audit{Mode: "strict", Days: 400}, wire.Audit{Mode: "strict", Days: 400})
		for i := range 9 {
			mode := []string{"best-effort", "strict", "off"}[(i+i/3)%3]
			f(i%3, "bank", wire.Audit{Mode: mode}, wire.Audit{Mode: mode, Days: 400})
		}
		f(1, "bank", wire.Audit{Mode: "strict", Days: 200}, wire.Audit{Mode: "strict", Days: 200})
		f(2, "shop", wire.Audit{Mode: "strict"}, wire.Audit{Mode: "strict", Days: metafsm.AuditDaysDefault})
		var about []string
		for _, r := range o.find(t, "kind=command&operation=set", 12) {
			about = append(about, r.Reason)
		}
		for _, want := range []string{"bank audit strict, 400 days", "bank audit best-effort", "bank audit strict, 200 days", "shop audit strict"} {
			if !slices.Contains(about, want) {
				t.Errorf("the records are about %q, without %q", about, want)
			}
		}
	})
}

// The log of a tenant has the intent of an order about it and the outcome: a refused order can be told from one
// that was carried out, and a key's record has its terms.
func TestTenantLogHasOutcomes(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 2}, func(t *testing.T, c *nodetest.Cluster) {
		own, tenant := c.ClientOf("bank")
		gallery := map[string]any{"name": "door", "description": "", "size": 10, "faceMinimumQualityScore": 0.45}
		if a := own.Call(t, c.Nodes[0].URL, http.MethodPost, "/api/galleries", gallery); a.Status != http.StatusOK {
			t.Fatalf("create a gallery: %d %s", a.Status, a.Body)
		}
		o := newOperator(t, c)
		var pair wire.KeyPair
		ends := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		terms := wire.KeyTerms{Holder: "door 3", Galleries: []string{"door"}, Networks: []string{"10.0.0.0/8"}, Ends: &ends}
		text := "search-only door 3 galleries door networks 10.0.0.0/8 until " + ends.Format(time.RFC3339)
		key := wire.NewKey{Tenant: "bank", Role: "search-only", KeyTerms: terms}
		if status := o.ask(t, 0, http.MethodPost, wire.PathKeys, key, &pair); status != http.StatusCreated {
			t.Fatalf("making a key: %d", status)
		}
		steps := []struct {
			method, path string
			in           any
			status       int
			operation    string
			before, then string
		}{
			{http.MethodPost, wire.PathKeys, key, http.StatusCreated, "create access key", text, pair.AccessKey + " " + text},
			{http.MethodPatch, wire.PathTenants, wire.SetTenant{Name: "bank", Quotas: map[string]uint64{"accessKeys": 2}}, http.StatusOK, "set tenant", "accessKeys", "accessKeys"},
			{http.MethodPost, wire.PathKeys, wire.NewKey{Tenant: "bank", Role: "auditor"}, http.StatusTooManyRequests, "create access key", "auditor", "auditor"},
			{http.MethodPost, wire.PathKeys, wire.NewKey{Tenant: "bank", Role: "auditor", KeyTerms: wire.KeyTerms{Galleries: []string{"door"}}}, http.StatusBadRequest, "create access key", "auditor galleries door", "auditor galleries door"},
			{http.MethodDelete, wire.PathKeys + "/" + pair.AccessKey + "?tenant=bank", nil, http.StatusOK, "revoke access key", pair.AccessKey, pair.AccessKey},
			{http.MethodDelete, wire.PathKeys + "/KEY7?tenant=bank", nil, http.StatusNotFound, "revoke access key", "KEY7", "KEY7"},
			{http.MethodPatch, wire.PathTenants, wire.SetTenant{Name: "bank", Audit: &wire.Audit{Mode: "off"}}, http.StatusOK, "set tenant", "audit off", "audit off"},
			{http.MethodPatch, wire.PathTenants, wire.SetTenant{Name: "bank", Audit: &wire.Audit{Mode: "strict"}}, http.StatusOK, "set tenant", "", "audit strict"},
			{http.MethodPost, wire.PathTenantStates, wire.SetTenantState{Name: "bank", State: wire.TenantDisabled}, http.StatusOK, "set a tenant's state", "disabled", "disabled"},
		}
		for _, s := range steps[1:] {
			if status, body := o.call(t, 0, s.method, s.path, s.in); status != s.status {
				t.Errorf("%s %s %+v: %d %s, want %d", s.method, s.path, s.in, status, body, s.status)
			}
		}
		list := func(kind string, want int) []answers.AuditRecord {
			t.Helper()
			r := o.find(t, "tenant=bank&kind="+kind, want)
			slices.Reverse(r)
			return r
		}
		commands, intents := list("command", len(steps)), list("intent", len(steps)-1)
		if len(commands) != len(steps) {
			t.Fatalf("the log of tenant %s has the outcomes %+v, want %d", tenant, commands, len(steps))
		}
		for i, s := range steps {
			if r := commands[i]; r.Operation != s.operation || r.Status != s.status || r.Reason != s.then || r.Holder != "ada" || r.Source != c.Nodes[0].Host {
				t.Errorf("outcome %d is %+v, want %+v", i, r, s)
			}
			k := slices.IndexFunc(intents, func(r answers.AuditRecord) bool { return r.RequestID == commands[i].RequestID })
			if (k < 0) != (s.before == "") || k >= 0 && (intents[k].Reason != s.before || intents[k].Operation != s.operation || intents[k].Number > commands[i].Number) {
				t.Errorf("the intents are %+v, want one of %+v", intents, s)
			}
		}
		for _, m := range c.Nodes {
			if open := m.Node.Router().OpenIntents(tenant, 10); len(open) > 0 {
				t.Errorf("intents are open: %+v", open)
			}
		}
	})
}

// An operator reads the log of a tenant that is disabled and has used all its keys. The log has each read, with
// the operator's name.
func TestOperatorReadsTenantLog(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 2}, func(t *testing.T, c *nodetest.Cluster) {
		if _, err := c.CreateTenant("bank & co"); err != nil {
			t.Fatal(err)
		}
		o := newOperator(t, c)
		at := "?tenant=" + url.QueryEscape("bank & co")
		if status, _ := o.call(t, 0, http.MethodGet, wire.PathAudit+"/checkpoint"+at, nil); status != http.StatusNotFound {
			t.Errorf("the checkpoint of no log: %d", status)
		}
		if status, body := o.call(t, 1, http.MethodPatch, wire.PathTenants, wire.SetTenant{Name: "bank & co", Quotas: map[string]uint64{"accessKeys": 1}, Audit: &wire.Audit{Mode: "strict"}}); status != http.StatusOK {
			t.Fatalf("set: %d %s", status, body)
		}
		if status, body := o.call(t, 1, http.MethodPost, wire.PathTenantStates, wire.SetTenantState{Name: "bank & co", State: wire.TenantDisabled}); status != http.StatusOK {
			t.Fatalf("disable: %d %s", status, body)
		}
		for i, file := range []string{"key", "checkpoint", "tile/0/000.p/1", "tile/entries/000.p/1"} {
			if status, body := o.call(t, i%3, http.MethodGet, wire.PathAudit+"/"+file+at, nil); status != http.StatusOK || len(body) == 0 {
				t.Errorf("%s: %d %s", file, status, body)
			}
		}
		for _, path := range []string{"/tile/0/x001/000" + at, "/checkpoint?tenant=nobody", "?tenant=nobody"} {
			if status, body := o.call(t, 2, http.MethodGet, wire.PathAudit+path, nil); status != http.StatusNotFound {
				t.Errorf("%s: %d %s", path, status, body)
			}
		}
		var page struct{ Records []answers.AuditRecord }
		o.ask(t, 0, http.MethodGet, wire.PathAudit+at+"&operation=GET", nil, &page)
		var read []string
		for _, r := range page.Records {
			if r.Holder != "ada" || r.Kind != "command" || r.Status != http.StatusOK {
				t.Errorf("a read is recorded as %+v", r)
			}
			read = append(read, strings.TrimPrefix(r.Operation, "GET "+wire.PathAudit+"/"))
		}
		if want := []string{"tile/entries/000.p/1", "tile/0/000.p/1", "checkpoint", "key"}; !slices.Equal(read, want) {
			t.Errorf("the log has the reads %q, want %q", read, want)
		}
	})
}
