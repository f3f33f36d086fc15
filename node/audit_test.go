package node_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/answers"
	"facet/internal/id"
	"facet/internal/must"
	"facet/internal/tiles"
	"facet/node/audit"
	"facet/node/audit/entry"
	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/shard/auditlog"
)

// audited is a tenant of a cluster, with what the client has seen.
type audited struct {
	promises
	client, auditor *nodetest.Client
	tenant          id.Tenant

	mu   sync.Mutex // guards seen
	seen map[string]int
}

func startAudited(t *testing.T) *audited {
	t.Helper()
	p := promises{nodetest.Start(t, nodetest.Options{SlotsPerShard: 100, Table: nodetest.Table()})}
	client, tenant := p.cluster.ClientOf("bank")
	return auditOf(t, p, client, tenant)
}

// auditOf switches the audit log of a tenant on.
func auditOf(t *testing.T, p promises, client *nodetest.Client, tenant id.Tenant) *audited {
	t.Helper()
	a := &audited{promises: p, client: client, tenant: tenant, seen: map[string]int{}}
	setAudit(t, a.cluster, a.tenant, metafsm.AuditBestEffort)
	a.auditor = a.client.Keyed(newKey(t, a.cluster, a.tenant, router.KeyTerms{Role: router.RoleAuditor, Holder: "auditor"}))
	return a
}

// call sends a request and notes its answer.
func (a *audited) call(t *testing.T, i int, method, target string, body any) nodetest.Answer {
	t.Helper()
	answer := a.client.Call(t, a.url(i), method, target, body)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen[answer.Header.Get("X-Request-Id")] = answer.Status
	return answer
}

// read returns the whole log of the tenant as an auditor reads it. It checks every hash up to the signed
// root.
func (a *audited) read(t *testing.T, i int) (records []*entry.Record) {
	t.Helper()
	get := func(path string) []byte {
		t.Helper()
		return expect(t, a.auditor, http.StatusOK, a.url(i), http.MethodGet, "/api/audit/"+path, nil).Body
	}
	key := strings.TrimSpace(string(get("key")))
	c, _, err := tiles.Open(get("checkpoint"), key)
	must.Do(t, err)
	var leaves []tlog.Hash
	for n := range (c.N + tiles.Width - 1) / tiles.Width {
		bundle := tiles.In(tiles.EntryLevel, n, c.N)
		contents, err := tiles.Entries(get(tiles.Path(bundle)), bundle.W)
		must.Do(t, err)
		hashes := get(tiles.Path(tiles.In(0, n, c.N)))
		for k, content := range contents {
			r, err := entry.Decode(content)
			must.Do(t, err)
			records = append(records, r)
			leaf := tlog.RecordHash(content)
			if string(leaf[:]) != string(hashes[k*tlog.HashSize:(k+1)*tlog.HashSize]) {
				t.Fatalf("record %d has another leaf", len(records)-1)
			}
			leaves = append(leaves, leaf)
		}
	}
	if root := rootOf(leaves); root != c.Hash {
		t.Fatalf("the root is %v, signed is %v", root, c.Hash)
	}
	return records
}

// readAll reads the log until it has a record for each answer that the client has seen, for ten seconds.
func (a *audited) readAll(t *testing.T, i int) []*entry.Record {
	t.Helper()
	a.mu.Lock()
	seen := maps.Clone(a.seen)
	a.mu.Unlock()
	for late := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		records := a.read(t, i)
		missing := maps.Clone(seen)
		for _, r := range records {
			if r.Kind == entry.Request {
				delete(missing, fmt.Sprintf("%x", r.ID))
			}
		}
		if len(missing) == 0 || time.Now().After(late) {
			return records
		}
	}
}

// rootOf computes a root as RFC 6962, section 2.1, defines it.
func rootOf(leaves []tlog.Hash) tlog.Hash {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leaves[0]
	}
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	return tlog.NodeHash(rootOf(leaves[:k]), rootOf(leaves[k:]))
}

// check finds exactly one record for each answer that the client has seen, and the intent before each
// write's.
func (a *audited) check(t *testing.T, i int) []*entry.Record {
	t.Helper()
	records := a.readAll(t, i)
	answers, intents := map[string]int{}, map[string]bool{}
	for _, r := range records {
		name := fmt.Sprintf("%x", r.ID)
		if r.Kind == entry.Intent {
			intents[name] = true
		}
		if r.Kind != entry.Request {
			continue
		}
		if answers[name] != 0 {
			t.Errorf("request %s has two records", name)
		}
		answers[name] = r.Status
		if write := !strings.HasPrefix(r.Operation, "GET") && !strings.Contains(r.Operation, "/face/"); write && r.Status < 300 && !intents[name] {
			t.Errorf("%s %s has no intent before it", r.Operation, name)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, status := range a.seen {
		if answers[name] != status {
			t.Errorf("request %s was answered %d, its record says %d", name, status, answers[name])
		}
	}
	return records
}

func TestEachAnswerHasOneRecord(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		a := startAudited(t)
		gallery(t, a.client, a.url(0), "staff", 400)
		var work sync.WaitGroup
		for w := range 6 {
			work.Go(func() {
				for n := range 20 {
					i, person := (w+n)%3, fmt.Sprint("person ", w, " ", n)
					a.call(t, i, http.MethodPost, "/v1.1/subjects", face(person))
					a.call(t, i+1, http.MethodPost, "/v1.1/face/search", probe(person))
					a.call(t, i, http.MethodGet, "/v1.1/subjects?length=3", nil)
					a.call(t, i, http.MethodPost, "/v1.1/face/search", map[string]any{"probe": 7})
					a.call(t, i, http.MethodGet, "/v1.1/no/such", nil)
				}
			})
		}
		work.Wait()
		for i := range 3 {
			a.check(t, i)
		}
		restart(a.cluster, 1)
		records := a.check(t, 1)
		var search *entry.Record
		for _, r := range records {
			if r.Operation == "POST /v1.1/face/search" && r.Status == http.StatusOK {
				search = r
			}
		}
		if search == nil || len(search.List()) != 1 || search.Threshold == 0 || search.Limit == 0 || search.Probe == (entry.Name{}) || search.Gallery.IsZero() {
			t.Errorf("the record of a search is %+v", search)
		}
		var page answers.AuditPage
		expect(t, a.auditor, http.StatusOK, a.url(2), http.MethodGet, "/api/audit?operation=search&status=200&length=5", nil).Decode(t, &page)
		if len(page.Records) != 5 || page.Size < uint64(len(records)) || page.Records[0].Number < page.Records[4].Number || page.Records[0].Status != 200 {
			t.Errorf("a filtered page is %+v", page)
		}
		if !page.Recording || page.Records[0].Content != nil {
			t.Errorf("a page without contents is %+v", page)
		}
		page = answers.AuditPage{}
		expect(t, a.auditor, http.StatusOK, a.url(1), http.MethodGet, "/api/audit?content=true&reads=false&length=200", nil).Decode(t, &page)
		for _, r := range page.Records {
			got, err := entry.Decode(r.Content)
			must.Do(t, err)
			want := got.Show(r.Number)
			if want.Content = r.Content; !reflect.DeepEqual(r, want) || strings.Contains(r.Operation, "/api/audit") {
				t.Errorf("record %d is %+v, its content shows %+v", r.Number, r, want)
			}
		}
		if text, err := json.Marshal(page); err != nil || strings.Contains(string(text), "person") {
			t.Errorf("%s, %v", text, err)
		}
		expect(t, a.client.Keyed(newKey(t, a.cluster, a.tenant, router.KeyTerms{Role: router.RoleBiometric})), http.StatusForbidden, a.url(0), http.MethodGet, "/api/audit", nil)
	})
}

// Reads of a log that is not there, of tiles beyond it and with wrong queries are explained.
func TestAuditReadsAreExplained(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		a := startAudited(t)
		other, tenant := a.cluster.ClientOf("office")
		setAudit(t, a.cluster, tenant, metafsm.AuditOff)
		key := newKey(t, a.cluster, tenant, router.KeyTerms{Role: router.RoleAuditor})
		for _, target := range []string{"", "/checkpoint", "/tile/0/000.p/1", "/tile/entries/000.p/1"} {
			expect(t, other.Keyed(key), http.StatusNotFound, a.url(0), http.MethodGet, "/api/audit"+target, nil)
		}
		gallery(t, a.client, a.url(0), "staff", 100)
		for target, want := range map[string]int{
			"?reads=no": 400, "?content=1": 400, "?before=-1": 400, "?since=today": 400, "?status=7": 400, "?length=201": 400, "?length=1": 200, "/key": 200, "/checkpoint": 200,
			"/tile/0/000": 404, "/tile/7/000.p/1": 404, "/tile/0/x001/000.p/1": 404, "/tile/entries/009.p/1": 404, "/tile/0/0": 404, "/tile/0/000.p/256": 404,
		} {
			expect(t, a.auditor, want, a.url(1), http.MethodGet, "/api/audit"+target, nil)
		}
	})
}

// appendOld appends records of a node whose clock is years behind.
func (a *audited) appendOld(t *testing.T, n int) {
	t.Helper()
	r := a.cluster.Nodes[0].Node.Router()
	key, err := r.AuditKey(a.tenant)
	must.Do(t, err)
	b := auditlog.Batch{Tenant: a.tenant, Writer: auditlog.Writer{1}, Number: 1}
	for range n {
		content := entry.New(entry.Act, time.Now().AddDate(-3, 0, 0)).Encode()
		b.Entries = append(b.Entries, auditlog.New{Entry: auditlog.Entry{Leaf: auditlog.LeafHash(content), Sealed: key.Seal(content, a.tenant.UUID[:])}})
	}
	if _, err := r.AppendAudit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// Contents go after their days, on every disk and in every answer. Those of younger records stay, whatever is
// among them. The log still verifies.
func TestRecordsExpireAndHashesStay(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		a := startAudited(t)
		gallery(t, a.client, a.url(0), "staff", 100)
		for n := range 300 {
			if n == 150 {
				a.readAll(t, 0) // all have arrived
				a.appendOld(t, 40)
			}
			a.call(t, n%3, http.MethodGet, "/v1.1/tags", nil)
		}
		records := a.readAll(t, 0)
		days, _ := a.cluster.Nodes[0].Node.Router().AuditDays(a.tenant)
		var said uint64 // by the acts
		add := func(tenant id.Tenant, e audit.Event) {
			if tenant == a.tenant && e.Operation == entry.OperationExpire {
				said = e.Count
			}
		}
		for i, want := range []uint64{0, uint64(len(records))} {
			after := time.Duration(days)*24*time.Hour + time.Duration(i)*2*time.Hour
			for _, m := range a.cluster.Nodes {
				if more, err := audit.NewKeeper(m.Node.Router(), nil, add).Expire(t.Context(), time.Now().Add(after)); more || err != nil {
					t.Fatal(more, err)
				}
			}
			head, err := a.cluster.Nodes[0].Node.Router().AuditHead(t.Context(), a.tenant)
			if err != nil || head.Bare < want || want == 0 && head.Bare != 0 {
				t.Errorf("after %v the contents of %d records are gone, %v, want %d", after, head.Bare, err, want)
			}
			if said != head.Bare {
				t.Errorf("the contents of %d records are gone, and the act says %d", head.Bare, said)
			}
			if want == 0 {
				a.check(t, 1)
			}
		}
		expect(t, a.auditor, http.StatusGone, a.url(1), http.MethodGet, "/api/audit/tile/entries/000", nil)
		if b := expect(t, a.auditor, http.StatusOK, a.url(2), http.MethodGet, "/api/audit/tile/0/000", nil).Body; len(b) != tiles.Width*tlog.HashSize {
			t.Errorf("the tile has %d bytes", len(b))
		}
	})
}

// With strict records no answer comes without a majority. With best effort answers come, and their
// records follow.
func TestRecordsNeedMajorityIfStrict(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		a := startAudited(t)
		gallery(t, a.client, a.url(0), "staff", 100)
		extract := map[string]any{"faces": nodetest.Image("person")}
		a.call(t, 0, http.MethodPost, "/v1.1/face/extract", extract)
		a.cluster.Stop(1)
		a.cluster.Stop(2)
		if answer := a.call(t, 0, http.MethodPost, "/v1.1/face/extract", extract); answer.Status != http.StatusOK {
			t.Errorf("best effort without a majority: %d %s", answer.Status, answer.Body)
		}
		a.cluster.Restart(1)
		a.cluster.Restart(2)
		a.cluster.WaitReady()
		setAudit(t, a.cluster, a.tenant, metafsm.AuditStrict)
		a.call(t, 0, http.MethodPost, "/v1.1/face/extract", extract)
		a.check(t, 0)
		a.cluster.Stop(1)
		a.cluster.Stop(2)
		began := time.Now()
		if answer := a.call(t, 0, http.MethodPost, "/v1.1/face/extract", extract); answer.Status != http.StatusInternalServerError || answer.Header.Get("Retry-After") == "" {
			t.Errorf("strict without a majority: %d %s after %v", answer.Status, answer.Body, time.Since(began))
		}
	})
}
