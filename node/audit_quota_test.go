package node_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"facet/internal/must"
	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
)

// await sends a request to each node until all of them answer with a status. It returns the last answer.
func (a *audited) await(t *testing.T, status int, method, target string, body any) (last nodetest.Answer) {
	t.Helper()
	within(t, 10*time.Second, fmt.Sprintf("%s %s is answered %d", method, target, status), func() bool {
		same := 0
		for i := range a.cluster.Nodes {
			if last = a.call(t, i, method, target, body); last.Status == status {
				same++
			}
		}
		return same == len(a.cluster.Nodes)
	})
	return last
}

// used returns the tenant's use of the quota as operators see it.
func (a *audited) used(t *testing.T) (n uint64) {
	t.Helper()
	all, err := a.cluster.Nodes[1].Node.Router().Tenants(t.Context())
	must.Do(t, err)
	for _, tenant := range all {
		for _, q := range tenant.Quotas {
			if tenant.ID == a.tenant && q.Quota == metafsm.QuotaAuditRecords && !q.Incomplete {
				n = q.Used
			}
		}
	}
	return n
}

// A tenant with all the records of its quota gets no search and no write. It can remove and read, and each
// answer has its record.
func TestAuditRecordsAreBounded(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		a := startAudited(t)
		gallery(t, a.client, a.url(0), "staff", 50)
		subject := enrol(t, a.client, a.url(0), "anna")
		search := map[string]any{"probe": nodetest.Image("anna")}
		if got := a.call(t, 0, http.MethodPost, "/v1.1/face/search", search); got.Status != http.StatusOK {
			t.Fatalf("without a quota: %d %s", got.Status, got.Body)
		}
		setQuota(t, a.cluster, a.tenant, metafsm.QuotaAuditRecords, 3)
		refused(t, a.await(t, http.StatusTooManyRequests, http.MethodPost, "/v1.1/face/search", search), metafsm.QuotaAuditRecords, false)
		refused(t, a.call(t, 0, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image("berta")}), metafsm.QuotaAuditRecords, false)
		for i, want := range []struct {
			status         int
			method, target string
		}{
			{http.StatusOK, http.MethodGet, "/v1.1/subjects"},
			{http.StatusNoContent, http.MethodDelete, "/v1.1/subjects/" + subject.ID},
		} {
			if got := a.call(t, i, want.method, want.target, nil); got.Status != want.status {
				t.Errorf("%s %s: %d %s", want.method, want.target, got.Status, got.Body)
			}
		}
		records := a.readAll(t, 0)
		if n := a.used(t); n < uint64(len(records)) {
			t.Errorf("operators see %d records, the log has %d", n, len(records))
		}
		head, err := a.cluster.Nodes[0].Node.Router().AuditHead(t.Context(), a.tenant)
		must.Do(t, err)
		setQuota(t, a.cluster, a.tenant, metafsm.QuotaAuditRecords, head.Size)          // what has expired does not count
		expired := slices.ContainsFunc(a.cluster.Nodes, func(m *nodetest.Member) bool { // its leader can
			err = m.Node.Router().ExpireAudit(t.Context(), a.tenant, head.Size)
			return err == nil
		})
		if !expired {
			t.Fatal(err)
		}
		a.await(t, http.StatusNotFound, http.MethodPost, "/v1.1/face/search", search) // after expiry
		if n := a.used(t); n >= head.Size {
			t.Errorf("operators see %d records after %d have expired", n, head.Size)
		}
		setQuota(t, a.cluster, a.tenant, metafsm.QuotaAuditRecords, 1)
		a.await(t, http.StatusTooManyRequests, http.MethodPost, "/v1.1/face/search", search)
		setQuota(t, a.cluster, a.tenant, metafsm.QuotaAuditRecords, 0)
		a.await(t, http.StatusNotFound, http.MethodPost, "/v1.1/face/search", search)
	})
}
