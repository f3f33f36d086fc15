package node_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/must"
	"facet/node"
	"facet/node/nodetest"
	"facet/node/sigv4"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// quotas is a cluster in which the tenant noisy runs into its quotas beside another one.
type quotas struct {
	cluster *nodetest.Cluster
	noisy   *nodetest.Client
	who     id.Tenant
	quiet   *nodetest.Client
	n       int // counts names
}

func startQuotas(t *testing.T, o nodetest.Options) *quotas {
	t.Helper()
	q := &quotas{cluster: nodetest.Start(t, o)}
	for _, m := range q.cluster.Nodes {
		waitLevel(t, m.Node, "the noted level", metafsm.Level, (*node.Node).NotedLevel)
	}
	q.noisy, q.who = q.cluster.ClientOf("noisy")
	q.quiet = q.cluster.Client("quiet")
	gallery(t, q.noisy, q.url(), "noisy", 100)
	gallery(t, q.quiet, q.url(), "quiet", 100)
	return q
}

// url returns the nodes' URLs by turns.
func (q *quotas) url() string {
	q.n++
	return q.cluster.Nodes[q.n%len(q.cluster.Nodes)].URL
}

// set sets a quota of the noisy tenant; 0 is the default.
func (q *quotas) set(t *testing.T, quota metafsm.Quota, most uint64) {
	t.Helper()
	setQuota(t, q.cluster, q.who, quota, most)
}

// refused fails unless an answer is the refusal by a quota. wait says whether time alone
// makes room.
func refused(t *testing.T, a nodetest.Answer, quota metafsm.Quota, wait bool) {
	t.Helper()
	var body struct{ Reason, Quota string }
	a.Decode(t, &body)
	want := struct{ Reason, Quota string }{"Quota", quota.String()}
	if quota == metafsm.QuotaRequests {
		want.Reason = "RateLimit"
	}
	if a.Status != http.StatusTooManyRequests || body != want || (a.Header.Get("Retry-After") != "") != wait {
		t.Errorf("%d %s %v, want 429 by the quota %s", a.Status, a.Body, a.Header, quota)
	}
}

func (q *quotas) create(t *testing.T, c *nodetest.Client, size int) nodetest.Answer {
	t.Helper()
	q.n++
	return c.Call(t, q.url(), http.MethodPost, "/api/galleries", map[string]any{
		"name": fmt.Sprint("gallery ", q.n), "description": "", "size": size, "faceMinimumQualityScore": 0.45,
	})
}

// idOf returns the id in an answer.
func idOf(t *testing.T, a nodetest.Answer) string {
	t.Helper()
	var made struct{ ID string }
	if a.Decode(t, &made); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return made.ID
}

func TestEachQuotaRefusesItsTenant(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		bucket := t.TempDir()
		extractor := &countingExtractor{}
		q := startQuotas(t, nodetest.Options{Shards: 2, Bucket: "file://" + bucket, Extractor: extractor, Table: nodetest.Table()})
		nodetest.Step(t, "galleries, subjects and applications", q.recordsAreBounded)
		nodetest.Step(t, "access keys", q.accessKeysAreBounded)
		nodetest.Step(t, "writes", q.writesAreBounded)
		nodetest.Step(t, "writes with a key", func(t *testing.T) { q.keyedWritesAreBounded(t, extractor) })
		nodetest.Step(t, "changes", q.changesAreBounded)
		nodetest.Step(t, "jobs and their items", func(t *testing.T) { q.jobsAreBounded(t, store{dir: filepath.Join(bucket, q.who.String())}) })
		nodetest.Step(t, "requests", q.requestsAreBounded)
		nodetest.Step(t, "shown to operators", q.usesAreShown)
	})
}

func (q *quotas) recordsAreBounded(t *testing.T) {
	q.set(t, metafsm.QuotaGalleries, 2)
	second := idOf(t, q.create(t, q.noisy, 10))
	refused(t, q.create(t, q.noisy, 10), metafsm.QuotaGalleries, false)
	idOf(t, q.create(t, q.quiet, 10))
	q.set(t, metafsm.QuotaGalleries, 0)

	q.set(t, metafsm.QuotaSubjects, 120)
	refused(t, q.create(t, q.noisy, 11), metafsm.QuotaSubjects, false)
	grow := func(size int) nodetest.Answer {
		return q.noisy.Call(t, q.url(), http.MethodPatch, "/api/galleries/"+second, map[string]any{"size": size})
	}
	idOf(t, grow(20))
	refused(t, grow(21), metafsm.QuotaSubjects, false)
	expect(t, q.noisy, http.StatusNoContent, q.url(), http.MethodDelete, "/api/galleries/"+second, nil)
	third := idOf(t, q.create(t, q.noisy, 20)) // into the room of the deleted one
	idOf(t, q.create(t, q.quiet, 1000))
	q.set(t, metafsm.QuotaSubjects, 0)

	q.set(t, metafsm.QuotaApplications, 3)
	app := func() nodetest.Answer {
		return q.noisy.Call(t, q.url(), http.MethodPost, "/api/applications", map[string]any{
			"name": "app", "description": "", "faceMinimumQualityScore": 0.45, "galleryId": third,
		})
	}
	made := idOf(t, app())
	refused(t, app(), metafsm.QuotaApplications, false)
	refused(t, q.create(t, q.noisy, 1), metafsm.QuotaApplications, false)
	expect(t, q.noisy, http.StatusNoContent, q.url(), http.MethodDelete, "/api/applications/"+made, nil)
	idOf(t, app())
	q.set(t, metafsm.QuotaApplications, 0)
}

func (q *quotas) accessKeysAreBounded(t *testing.T) {
	r := q.cluster.Nodes[1].Node.Router()
	q.set(t, metafsm.QuotaAccessKeys, 2)
	key := newKey(t, q.cluster, q.who, router.KeyTerms{Role: router.RoleReadOnly})
	if _, err := r.CreateAccessKey(t.Context(), q.who, router.KeyTerms{Role: router.RoleBiometric}); router.KindOf(err) != router.OverQuota || !strings.Contains(err.Error(), "accessKeys") {
		t.Errorf("a third key: %v", err)
	}
	if err := r.RevokeAccessKey(t.Context(), q.who, key.ID); err != nil {
		t.Error(err)
	}
	newKey(t, q.cluster, q.who, router.KeyTerms{Role: router.RoleBiometric}) // in place of the revoked one
	q.set(t, metafsm.QuotaAccessKeys, 0)
}

func (q *quotas) writesAreBounded(t *testing.T) {
	q.set(t, metafsm.QuotaWrites, 5)
	var s subject
	for i := range 5 {
		s = enrol(t, q.noisy, q.url(), fmt.Sprint("person ", i))
	}
	refused(t, q.noisy.Call(t, q.url(), http.MethodPost, "/v1.1/subjects", face("person 6")), metafsm.QuotaWrites, true)
	refused(t, q.noisy.Call(t, q.url(), http.MethodPut, "/v1.1/subjects/"+s.ID, face("person 6")), metafsm.QuotaWrites, true)
	a := q.noisy.Call(t, q.url(), http.MethodDelete, "/v1.1/subjects/"+s.ID, nil)
	refused(t, a, metafsm.QuotaWrites, true)
	waits(t, a, 10*time.Minute)
	isFound(t, q.noisy, q.url(), "person 4")
	for i := range 8 {
		enrol(t, q.quiet, q.url(), fmt.Sprint("person ", i))
	}
	q.set(t, metafsm.QuotaWrites, 0)
	enrol(t, q.noisy, q.url(), "person 6")
}

// countingExtractor is HashExtractor that counts images.
type countingExtractor struct {
	nodetest.HashExtractor
	images atomic.Int64
}

func (e *countingExtractor) Extract(ctx context.Context, image []byte) ([]engine.Face, error) {
	e.images.Add(1)
	return e.HashExtractor.Extract(ctx, image)
}

func (e *countingExtractor) ExtractLarge(ctx context.Context, image []byte, _ float32) ([]engine.Face, error) {
	return e.Extract(ctx, image)
}

// waits fails unless the Retry-After of an answer is at most that time, and at most a minute
// less.
func waits(t *testing.T, a nodetest.Answer, most time.Duration) {
	t.Helper()
	seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if after := time.Duration(seconds) * time.Second; err != nil || after > most || after < most-time.Minute {
		t.Errorf("Retry-After %q, want %s, or a little less", a.Header.Get("Retry-After"), most)
	}
}

func withKey(key string) sigv4.Header { return sigv4.Header{Name: "Idempotency-Key", Value: key} }

// A write beyond the quota is refused before the models run, and told when there is room.
func (q *quotas) keyedWritesAreBounded(t *testing.T, extractor *countingExtractor) {
	write := func(method, target, person, key string) nodetest.Answer {
		return q.noisy.Call(t, q.url(), method, target, face(person), withKey(key))
	}
	q.set(t, metafsm.QuotaWrites, 3)
	var first subject
	for i := range 3 {
		a := write(http.MethodPost, "/v1.1/subjects", fmt.Sprint("keyed ", i), fmt.Sprint("key ", i))
		if a.Status != http.StatusCreated {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		if i == 0 {
			a.Decode(t, &first)
		}
	}
	round := func() (images int64) {
		before := extractor.images.Load()
		for range q.cluster.Nodes {
			for _, a := range []nodetest.Answer{
				write(http.MethodPost, "/v1.1/subjects", "keyed 3", "key 3"),
				write(http.MethodPost, "/v1.1/subjects/"+first.ID+"/events", "keyed 3", "key 4"),
				write(http.MethodPut, "/v1.1/subjects/"+first.ID, "keyed 3", "key 5"),
			} {
				refused(t, a, metafsm.QuotaWrites, true)
				waits(t, a, 24*time.Hour)
			}
		}
		return extractor.images.Load() - before
	}
	// A replica that lags leaves the refusal to the command.
	within(t, 10*time.Second, "the models run on no image of a refused write", func() bool { return round() == 0 })
	var again subject
	if a := write(http.MethodPost, "/v1.1/subjects", "keyed 0", "key 0"); a.Status != http.StatusCreated {
		t.Errorf("a retry of a remembered write: %d %s", a.Status, a.Body)
	} else if a.Decode(t, &again); again.ID != first.ID {
		t.Errorf("a retry got %s, the first try %s", again.ID, first.ID)
	}
	enrol(t, q.quiet, q.url(), "keyed 3")
	q.set(t, metafsm.QuotaWrites, 0)
}

func (q *quotas) changesAreBounded(t *testing.T) {
	q.set(t, metafsm.QuotaChanges, 20)
	made := 0
	for ; ; made++ {
		a := q.noisy.Call(t, q.url(), http.MethodPost, "/v1.1/tags/"+fmt.Sprint("tag", made), nil)
		if a.Status != http.StatusOK {
			refused(t, a, metafsm.QuotaChanges, true)
			waits(t, a, 10*time.Minute)
			break
		}
	}
	if made == 0 || made > 20 {
		t.Errorf("%d changes went through", made)
	}
	expect(t, q.quiet, http.StatusOK, q.url(), http.MethodPost, "/v1.1/tags/tag", nil)
	q.set(t, metafsm.QuotaChanges, 1)
	create := func(name string) nodetest.Answer {
		return q.noisy.Call(t, q.url(), http.MethodPost, "/api/galleries", map[string]any{
			"name": name, "description": "", "size": 1, "faceMinimumQualityScore": 0.45,
		}, withKey(name))
	}
	idOf(t, create("keyed"))
	a := create("keyed, beyond the quota")
	refused(t, a, metafsm.QuotaChanges, true)
	waits(t, a, 24*time.Hour)
	q.set(t, metafsm.QuotaChanges, 0)
}

func (q *quotas) jobsAreBounded(t *testing.T, files store) {
	name := files.put(t, "a.jpg", "of a job")
	job := func(c *nodetest.Client, n int) nodetest.Answer {
		var list []map[string]string
		for range n {
			list = append(list, map[string]string{"filename": name})
		}
		return c.Call(t, q.url(), http.MethodPost, "/v1.1/jobs/bulkregister", map[string]any{"registrations": list})
	}
	q.set(t, metafsm.QuotaJobItems, 5)
	if a := job(q.noisy, 3); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	refused(t, job(q.noisy, 4), metafsm.QuotaJobItems, true)
	q.set(t, metafsm.QuotaJobItems, 0)
	q.set(t, metafsm.QuotaJobs, 1)
	refused(t, job(q.noisy, 1), metafsm.QuotaJobs, true)
	if a := job(q.quiet, 4); a.Status != http.StatusOK {
		t.Errorf("another tenant's job: %d %s", a.Status, a.Body)
	}
	q.set(t, metafsm.QuotaJobs, 0)
}

func (q *quotas) requestsAreBounded(t *testing.T) {
	q.set(t, metafsm.QuotaRequests, 1)
	url := q.url()
	for range 10 {
		if a := q.noisy.Call(t, url, http.MethodGet, "/v1.1/tags", nil); a.Status != http.StatusOK {
			refused(t, a, metafsm.QuotaRequests, true)
			break
		}
	}
	for range 20 {
		expect(t, q.quiet, http.StatusOK, url, http.MethodGet, "/v1.1/tags", nil)
	}
	q.set(t, metafsm.QuotaRequests, 0)
	expect(t, q.noisy, http.StatusOK, url, http.MethodGet, "/v1.1/tags", nil)
}

func (q *quotas) usesAreShown(t *testing.T) {
	time.Sleep(time.Second) // the records of the audit log reach their shard
	for i := range 20 {     // a node answers from its own records, whether or not it has applied the command
		most := uint64(7 + i%2)
		set, err := q.cluster.Nodes[i%3].Node.Router().SetQuotas(t.Context(), q.who, []metafsm.QuotaValue{{Quota: metafsm.QuotaGalleries, Most: most}})
		must.Do(t, err)
		for _, u := range set.Quotas {
			onShards := u.Quota == metafsm.QuotaWrites || u.Quota == metafsm.QuotaJobs || u.Quota == metafsm.QuotaJobItems || u.Quota == metafsm.QuotaAuditRecords
			if u.Quota == metafsm.QuotaGalleries && (!u.Own || u.Most != most || u.Used == 0) || u.Incomplete != onShards {
				t.Errorf("answer to set: %+v", u)
			}
		}
	}
	q.set(t, metafsm.QuotaGalleries, 7)
	list, err := q.cluster.Nodes[2].Node.Router().Tenants(t.Context())
	if err != nil || len(list) != 2 || list[0].Name != "noisy" {
		t.Fatalf("%+v, %v", list, err)
	}
	used := map[string]bool{}
	for _, u := range list[0].Quotas {
		used[u.Quota.String()] = u.Used > 0
		if u.Incomplete || u.Own != (u.Quota == metafsm.QuotaGalleries) || u.Own && u.Most != 7 {
			t.Errorf("%s: %+v", u.Quota, u)
		}
	}
	want := map[string]bool{
		"subjects": true, "galleries": true, "applications": true, "accessKeys": true, "changes": true,
		"writes": true, "jobs": true, "jobItems": true, "requests": false, "searches": false, "auditRecords": true,
	}
	if diff := cmp.Diff(want, used); diff != "" {
		t.Errorf("used at all (-want +got):\n%s", diff)
	}
}

// Meta decides on its leader, so requests to three nodes at once never exceed a quota. A
// shard does, too.
func TestRacingNodesStayWithinQuota(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		q := startQuotas(t, nodetest.Options{Shards: 1})
		q.set(t, metafsm.QuotaGalleries, 8)
		q.set(t, metafsm.QuotaWrites, 10)
		var made, enrolled atomic.Int64
		var work sync.WaitGroup
		for i := range 30 {
			url := q.cluster.Nodes[i%3].URL
			work.Go(func() {
				a := q.noisy.Call(t, url, http.MethodPost, "/api/galleries", map[string]any{
					"name": fmt.Sprint("race ", i), "description": "", "size": 1, "faceMinimumQualityScore": 0.45,
				})
				if a.Status == http.StatusOK {
					made.Add(1)
				} else {
					refused(t, a, metafsm.QuotaGalleries, false)
				}
				a = q.noisy.Call(t, url, http.MethodPost, "/v1.1/subjects", face(fmt.Sprint("racer ", i)))
				if a.Status == http.StatusCreated {
					enrolled.Add(1)
				} else {
					refused(t, a, metafsm.QuotaWrites, true)
				}
			})
		}
		work.Wait()
		if made.Load() != 7 || enrolled.Load() != 10 {
			t.Errorf("%d galleries and %d subjects were made, want 7 beside the first and 10", made.Load(), enrolled.Load())
		}
	})
}

// What a tenant has beyond a quota that is lowered stays and works. What is counted survives a
// restart.
func TestLoweredQuotasKeepExcess(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		c, who := cluster.ClientOf("bank")
		url := cluster.Nodes[0].URL
		setQuota(t, cluster, who, metafsm.QuotaSubjects, metafsm.QuotaMax)
		gallery(t, c, url, "huge", 20_000_000)
		enrol(t, c, url, "a")
		setQuota(t, cluster, who, metafsm.QuotaSubjects, 0)
		setQuota(t, cluster, who, metafsm.QuotaWrites, 3)
		create := func() nodetest.Answer {
			return c.Call(t, url, http.MethodPost, "/api/galleries", map[string]any{"name": "one more", "description": "", "size": 1, "faceMinimumQualityScore": 0.45})
		}
		enrol(t, c, url, "b")
		enrol(t, c, url, "c")
		for range 2 {
			refused(t, create(), metafsm.QuotaSubjects, false)
			refused(t, c.Call(t, url, http.MethodPost, "/v1.1/subjects", face("d")), metafsm.QuotaWrites, true)
			for _, person := range []string{"a", "b", "c"} {
				isFound(t, c, url, person)
			}
			for number := range id.Shard(2) {
				must.Do(t, cluster.Nodes[0].Node.SnapshotHere(number))
			}
			restart(cluster, 0)
		}
	})
}

// A shard without a leader hides neither the quotas nor that they were set.
func TestQuotasAnswerWithoutAShard(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 5, Shards: 2}, func(t *testing.T, cluster *nodetest.Cluster) {
		nodes := cluster.Nodes
		for _, m := range nodes {
			waitLevel(t, m.Node, "the noted level", metafsm.Level, (*node.Node).NotedLevel)
		}
		c, who := cluster.ClientOf("bank")
		gallery(t, c, nodes[0].URL, "staff", 100)
		eventually(t, nodes[0].Node, "meta has five voters", func(s wire.Status) bool { return metaVoters(s) == 5 })
		stopped := 0
		for i, m := range nodes {
			if _, holds := m.Node.ShardHere(1); holds && stopped < 2 {
				cluster.Stop(i)
				stopped++
			}
		}
		rest := nodes[slices.IndexFunc(nodes, func(m *nodetest.Member) bool { return m.Node != nil })].Node
		eventually(t, rest, "meta has a leader", func(wire.Status) bool { return rest.Router().SyncMeta(t.Context()) == nil })
		if _, err := rest.Router().SetQuotas(t.Context(), who, []metafsm.QuotaValue{{Quota: metafsm.QuotaGalleries, Most: 9}}); err != nil {
			t.Error(err)
		}
		list, err := rest.Router().Tenants(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		for _, u := range list[0].Quotas {
			switch u.Quota {
			case metafsm.QuotaGalleries:
				if u.Used != 1 || u.Most != 9 || u.Incomplete {
					t.Errorf("%+v", u)
				}
			case metafsm.QuotaWrites:
				if !u.Incomplete {
					t.Errorf("%+v looks complete", u)
				}
			default:
			}
		}
	})
}
