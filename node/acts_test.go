package node_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"facet/node/audit/entry"
	"facet/node/nodetest"
	"facet/node/sigv4"
	"facet/node/wire"
	"facet/router"
	"facet/shard/job"
)

// until calls f until it is true, for ten seconds.
func until(f func() bool) bool {
	for late := time.Now().Add(10 * time.Second); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(late) {
			return false
		}
	}
	return true
}

// acts returns the acts of a log with an operation.
func acts(records []*entry.Record, operation string) (list []*entry.Record) {
	for _, r := range records {
		if r.Kind == entry.Act && r.Operation == operation {
			list = append(list, r)
		}
	}
	return list
}

// Events expire on all shards. The tenant's log has as many as went, and names their
// subjects as the records of their enrolments do.
func TestExpiryOfEventsIsRecorded(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		a := startAudited(t)
		waitNewest(t, a.cluster)
		gallery(t, a.client, a.url(0), "staff", 400)
		at := time.Now().Add(8 * time.Second)
		const people = 40
		for i := range people {
			a.call(t, i%3, http.MethodPost, "/v1.1/subjects", expiringFace(fmt.Sprint("gone ", i), at))
		}
		stays := enrol(t, a.client, a.url(0), "stays")
		if time.Until(at) < time.Second {
			t.Skip("the machine is too slow: events expire during their enrolment")
		}
		expect(t, a.client, http.StatusCreated, a.url(0), http.MethodPost, "/v1.1/subjects/"+stays.ID+"/events", expiringFace("second of stays", at))
		enrolled := map[string]bool{}
		for _, r := range a.readAll(t, 0) {
			if r.Kind == entry.Request && r.Operation == "POST /v1.1/subjects" {
				for _, c := range r.List() {
					enrolled[string(c.Subject[:])] = true
				}
				for n := range slices.Chunk(r.Subjects, entry.NameBytes) {
					enrolled[string(n)] = true
				}
			}
		}
		var list []*entry.Record
		count := func() (n uint64) {
			list = acts(a.read(t, 1), "expire events")
			for _, r := range list {
				n += r.Count
			}
			return n
		}
		time.Sleep(time.Until(at))
		until(func() bool { return count() >= people+1 })
		time.Sleep(time.Second)
		if n := count(); n != people+1 {
			t.Errorf("the log has the expiry of %d events, want %d", n, people+1)
		}
		names := map[string]bool{}
		for _, r := range list {
			if r.Gallery.IsZero() || r.Generation == 0 || len(r.Subjects) == 0 {
				t.Errorf("the act is %+v", r)
			}
			for n := range slices.Chunk(r.Subjects, entry.NameBytes) {
				names[string(n)] = true
			}
		}
		if len(names) != people+1 {
			t.Errorf("the acts name %d subjects, want %d", len(names), people+1)
		}
		for n := range names {
			if !enrolled[n] {
				t.Errorf("%x has expired and no record of an enrolment has it", n)
			}
		}
	})
}

// A case that expires has one record, also when all nodes look for it at once.
func TestExpiryOfCaseIsRecorded(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		r := startReview(t, 1)
		a := auditOf(t, r.promises, r.admin, r.tenant(t))
		caseID := r.doubt(t, "staff/0", "visit 1")
		for _, m := range r.cluster.Nodes {
			m.Node.AgeCases(t, func(c *job.Case) { c.Expires = time.Now().UnixMilli() - 1 })
		}
		var work sync.WaitGroup
		for range 3 {
			work.Go(func() {
				for _, m := range r.cluster.Nodes {
					_ = m.Node.RedactDuplicates(context.WithoutCancel(t.Context())) // a case that another round has changed is an error
				}
			})
		}
		work.Wait()
		r.redact(t)
		until(func() bool { return len(acts(a.read(t, 0), "expire case")) > 0 })
		time.Sleep(time.Second)
		list := acts(a.read(t, 0), "expire case")
		if len(list) != 1 || list[0].Case.String() != caseID || list[0].Gallery.IsZero() {
			t.Errorf("the expiry of case %s has the records %+v", caseID, list)
		}
	})
}

// The cluster's log has the signing key's making once, each replacement of a key, and each round of erasure.
func TestClusterRecordsItsActs(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		const erase = 4 * time.Second
		c := nodetest.Start(t, nodetest.Options{Shards: 2, EraseWithin: erase})
		waitNewest(t, c)
		for _, ring := range []string{wire.RingCluster, wire.RingGossip} {
			if _, err := c.Nodes[1].Node.Rotate(t.Context(), wire.RingOrder{Ring: ring}); err != nil {
				t.Fatal(err)
			}
		}
		looks := []func(){}
		for _, m := range c.Nodes {
			looks = append(looks, m.Node.Rounds())
		}
		named := func(operation string) (list []entry.Shown) {
			for _, r := range c.Nodes[2].Node.ClusterRecords(t) {
				if r.Kind == entry.Act.String() && r.Operation == operation {
					list = append(list, r)
				}
			}
			return list
		}
		rounds := func() map[string]int { // by node and group
			got := map[string]int{}
			for _, r := range named("erase removed data") {
				for _, s := range r.Searched {
					got[fmt.Sprint(r.Reason, " ", s.Shard)]++
				}
			}
			return got
		}
		if !until(func() bool {
			for _, look := range looks {
				look()
			}
			return len(rounds()) == 9
		}) {
			t.Errorf("rounds of three nodes and three groups have the records %v", rounds())
		}
		if made := named("make the signing key"); len(made) != 1 {
			t.Errorf("the making of the signing key has the records %+v", made)
		}
		var about []string
		for _, r := range named("replace a shared key") {
			about = append(about, r.Reason)
		}
		if len(about) != 2 || !strings.HasPrefix(about[1], "cluster key ") || !strings.HasPrefix(about[0], "gossip key ") {
			t.Errorf("the replacements of keys have the records %q", about)
		}
	})
}

// Wrong requests from many goroutines to all nodes are counted, each once, by reason. Right ones are not.
func TestRefusedRequestsAreCounted(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 2}, func(t *testing.T, c *nodetest.Cluster) {
		waitNewest(t, c)
		right := c.Client("bank")
		wrong := right.Keyed(router.AccessKey{ID: "FACETNOSUCHKEY000000", Secret: "x"})
		const each = 15
		var work sync.WaitGroup
		for i := range 3 {
			for range 4 {
				work.Go(func() {
					for range each {
						send(t, wrong, c.Nodes[i].URL, http.StatusForbidden, http.StatusTooManyRequests)
						send(t, right, c.Nodes[i].URL, http.StatusOK)
						unsigned(t, c, right, i)
					}
				})
			}
		}
		work.Wait()
		for _, m := range c.Nodes {
			m.Node.RecordRefusals(time.Now().Unix()/60 + 1)
		}
		count := func() (n uint64, reasons string) {
			for _, r := range c.Nodes[0].Node.ClusterRecords(t) {
				if r.Operation == "refuse requests" && r.Source == nodetest.ClientHost {
					n, reasons = n+r.Count, reasons+" "+r.Reason
				}
			}
			return n, reasons
		}
		const want = 3 * 4 * each * 2
		until(func() bool { n, _ := count(); return n >= want })
		if n, reasons := count(); n != want || !strings.Contains(reasons, "NoSignature ") || !strings.Contains(reasons, "UnknownKey ") || strings.Contains(reasons, "WrongSignature") {
			t.Errorf("%d refused requests are recorded, want %d: %s", n, want, reasons)
		}
	})
}

// send sends a signed request that may have some statuses.
func send(t *testing.T, c *nodetest.Client, url string, statuses ...int) {
	t.Helper()
	q, err := c.Sign(url, http.MethodGet, "/api/galleries", nil)
	if err != nil {
		t.Error(err)
		return
	}
	a, err := c.Send(context.WithoutCancel(t.Context()), url, q)
	if err != nil || !slices.Contains(statuses, a.Status) {
		t.Errorf("the request was answered %d, %v, want %v", a.Status, err, statuses)
	}
}

// unsigned sends a request without a signature.
func unsigned(t *testing.T, c *nodetest.Cluster, client *nodetest.Client, i int) {
	t.Helper()
	q, err := client.Sign(c.Nodes[i].URL, http.MethodGet, "/api/galleries", nil)
	if err != nil {
		t.Error(err)
		return
	}
	q.Headers = slices.DeleteFunc(q.Headers, func(h sigv4.Header) bool { return strings.EqualFold(h.Name, "authorization") })
	a, err := client.Send(context.WithoutCancel(t.Context()), c.Nodes[i].URL, q)
	if err != nil || a.Status != http.StatusForbidden {
		t.Errorf("the request was answered %d, %v", a.Status, err)
	}
}
