package node_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/nodetest"
	"facet/node/sigv4"
	"facet/router"
)

type (
	bulkRecord struct {
		ID, Filename, Attempts, SubjectID, EventID, RegisterStatus, Reason, Status, AttributesJSON string
	}
	bulkPage struct {
		BatchID          string
		Processed        []bulkRecord
		LastEvaluatedKey string
	}
)

// store is the folder of a tenant in the object store of a test's cluster.
type store struct {
	dir    string
	tenant id.Tenant
}

// bulkCluster starts a cluster whose nodes read files from a folder.
func bulkCluster(t *testing.T, o nodetest.Options) (promises, string) {
	t.Helper()
	o.Bucket = "file://" + t.TempDir()
	return promises{nodetest.Start(t, o)}, strings.TrimPrefix(o.Bucket, "file://")
}

// openStore returns a client of a new tenant with a gallery, and its place in the
// object store.
func (p promises) openStore(t *testing.T, bucket string, size int) (*nodetest.Client, store) {
	t.Helper()
	c, tenant := p.cluster.ClientOf(fmt.Sprint("tenant ", tenants.Add(1)))
	gallery(t, c, p.url(0), "g", size)
	dir := filepath.Join(bucket, tenant.String())
	must.Do(t, os.MkdirAll(dir, 0o700))
	return c, store{dir, tenant}
}

func (s store) put(t *testing.T, name, text string) string {
	t.Helper()
	full := filepath.Join(s.dir, filepath.FromSlash(name))
	must.Do(t, os.MkdirAll(filepath.Dir(full), 0o700))
	must.Do(t, os.WriteFile(full, []byte(text), 0o600))
	return name
}

// people puts n images of persons into the store and gives the body of a job.
func (s store) people(t *testing.T, n int) map[string]any {
	t.Helper()
	list := make([]map[string]any, 0, n)
	for i := range n {
		list = append(list, map[string]any{"filename": s.put(t, fmt.Sprintf("staff/%05d.jpg", i), fmt.Sprint("person ", i))})
	}
	return map[string]any{"registrations": list}
}

func begin(t *testing.T, c *nodetest.Client, base string, body any) string {
	t.Helper()
	var b struct{ BatchID string }
	expect(t, c, http.StatusOK, base, http.MethodPost, "/v1.1/jobs/bulkregister", body).Decode(t, &b)
	return b.BatchID
}

// records returns all records of a batch, page by page.
func records(t *testing.T, c *nodetest.Client, base, batch string) []bulkRecord {
	t.Helper()
	var all []bulkRecord
	for key := ""; ; {
		var p bulkPage
		expect(t, c, http.StatusOK, base, http.MethodGet, "/v1.1/jobs/bulkregister/"+batch+"/"+key, nil).Decode(t, &p)
		all = append(all, p.Processed...)
		if key = p.LastEvaluatedKey; key == "" {
			return all
		}
	}
}

// processed counts the records that are processed.
func processed(all []bulkRecord) int {
	n := 0
	for _, r := range all {
		if r.Status == "Processed" {
			n++
		}
	}
	return n
}

// awaitTimeout is for a machine that does other work, too.
const awaitTimeout = 3 * time.Minute

// await waits until at least n records of a batch are processed.
func await(t *testing.T, c *nodetest.Client, base, batch string, n int) []bulkRecord {
	t.Helper()
	late := time.Now().Add(awaitTimeout)
	for {
		all := records(t, c, base, batch)
		if processed(all) >= n {
			return all
		}
		if time.Now().After(late) {
			t.Fatalf("%d of %d records are processed after %s", processed(all), n, awaitTimeout)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// once demands that each record was registered, and the gallery holds exactly these.
func once(t *testing.T, c *nodetest.Client, base string, all []bulkRecord) {
	t.Helper()
	want := map[string]string{}
	for i, r := range all {
		if r.RegisterStatus != "Success" || r.Reason != "" || !strings.Contains(r.AttributesJSON, `"faceQualityScore":"0.9"`) {
			t.Fatalf("record %d: %+v", i, r)
		}
		want[r.SubjectID] = r.EventID
	}
	if len(want) != len(all) {
		t.Errorf("%d records have %d subjects", len(all), len(want))
	}
	var list struct {
		Subjects []subject
		Total    int
	}
	expect(t, c, http.StatusOK, base, http.MethodGet, "/v1.1/subjects", nil).Decode(t, &list)
	if list.Total != len(all) || len(list.Subjects) != min(1000, list.Total) {
		t.Errorf("the gallery has %d entries after %d files, %d of them on the first page", list.Total, len(all), len(list.Subjects))
	}
	for _, s := range list.Subjects {
		if want[s.ID] != s.EventID {
			t.Errorf("subject %s, event %s is not in the records", s.ID, s.EventID)
		}
	}
}

func TestJobsKeepPromises(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		p, bucket := bulkCluster(t, nodetest.Options{SlotsPerShard: 100})
		in := func(f func(*testing.T, promises, string)) func(*testing.T) {
			return func(t *testing.T) { f(t, p, bucket) }
		}
		nodetest.Step(t, "every file of a job is registered once", in(everyFileIsRegisteredOnce))
		nodetest.Step(t, "a file that can't be registered says why", in(aFileSaysWhy))
		nodetest.Step(t, "a job is its own retry, and no other gallery's", in(aJobIsItsOwnRetry))
		nodetest.Step(t, "a job is shown to the holder that may only enrol", in(aJobIsShownToItsHolder))
		nodetest.Step(t, "a retry finds its job though the gallery grew", in(aRetryFindsItsJob))
		nodetest.Step(t, "no file of another tenant is read", in(noFileOfAnotherTenant))
		nodetest.Step(t, "a deleted gallery's jobs end", in(aDeletedGallerysJobsEnd))
		nodetest.Step(t, "tags are given to all, or the job is refused", in(tagsAreGiven))
	})
}

func everyFileIsRegisteredOnce(t *testing.T, p promises, bucket string) {
	c, s := p.openStore(t, bucket, 2000)
	body := s.people(t, 1100)
	batch := begin(t, c, p.url(1), body)
	all := await(t, c, p.url(2), batch, 1100)
	once(t, c, p.url(0), all)
	ids := map[string]bool{}
	for i, r := range all {
		if ids[r.ID] = true; r.Filename != fmt.Sprintf("staff/%05d.jpg", i) || r.Attempts != "1" {
			t.Fatalf("record %d: %+v", i, r)
		}
	}
	if len(ids) != len(all) {
		t.Errorf("%d ids of %d records", len(ids), len(all))
	}
	own := c.APIKey
	var first bulkPage
	expect(t, c, http.StatusOK, p.url(0), http.MethodGet, "/v1.1/jobs/bulkregister/"+batch, nil).Decode(t, &first)
	if len(first.Processed) != 1000 || first.LastEvaluatedKey == "" || first.BatchID != batch {
		t.Errorf("the first page has %d records, key %q", len(first.Processed), first.LastEvaluatedKey)
	}
	isFound(t, c, p.url(1), "person 1099", all[1099].SubjectID)
	key := first.LastEvaluatedKey
	for _, target := range []string{"/" + key, "/?pagingId=" + key, "?pagingId=" + key} {
		var next bulkPage
		expect(t, c, http.StatusOK, p.url(1), http.MethodGet, "/v1.1/jobs/bulkregister/"+batch+target, nil).Decode(t, &next)
		if len(next.Processed) != 100 || next.Processed[0] != all[1000] || next.LastEvaluatedKey != "" {
			t.Errorf("%s: %d records, key %q", target, len(next.Processed), next.LastEvaluatedKey)
		}
	}
	gallery(t, c, p.url(0), "another", 1)
	expect(t, c, http.StatusNotFound, p.url(1), http.MethodGet, "/v1.1/jobs/bulkregister/"+batch+"/"+key, nil)
	c.APIKey = own
	expect(t, c, http.StatusBadRequest, p.url(1), http.MethodGet, "/v1.1/jobs/bulkregister/"+batch+"/x"+key[1:], nil)
}

func aJobIsShownToItsHolder(t *testing.T, p promises, bucket string) {
	c, s := p.openStore(t, bucket, 500)
	keyed := func(role router.Role, holder string) *nodetest.Client {
		t.Helper()
		k, err := p.cluster.Nodes[0].Node.Router().CreateAccessKey(t.Context(), s.tenant, router.KeyTerms{Role: role, Holder: holder})
		must.Do(t, err)
		keyed := c.Keyed(k)
		keyed.APIKey = c.APIKey
		return keyed
	}
	desk, other, writer := keyed(router.RoleEnrolOnly, "desk 1"), keyed(router.RoleEnrolOnly, "desk 2"), keyed(router.RoleBiometric, "desk 1")
	batch := begin(t, desk, p.url(0), s.people(t, 2))
	await(t, desk, p.url(1), batch, 2)
	f := func(who string, c *nodetest.Client, status, jobs int) {
		t.Helper()
		expect(t, c, status, p.url(2), http.MethodGet, "/v1.1/jobs/bulkregister/"+batch, nil)
		var list struct{ Jobs []struct{ BatchID string } }
		expect(t, c, http.StatusOK, p.url(0), http.MethodGet, "/v1.1/jobs/bulkregister", nil).Decode(t, &list)
		if len(list.Jobs) != jobs {
			t.Errorf("%s sees %d jobs, want %d", who, len(list.Jobs), jobs)
		}
	}
	f("its holder", desk, http.StatusOK, 1)
	f("another holder", other, http.StatusNotFound, 0)
	f("who may list all subjects", writer, http.StatusOK, 1)
	begin(t, writer, p.url(1), s.people(t, 1))
	f("its holder, after a job of a higher role", desk, http.StatusOK, 1)
}

func aFileSaysWhy(t *testing.T, p promises, bucket string) {
	c, s := p.openStore(t, bucket, 1)
	batch := begin(t, c, p.url(0), map[string]any{"registrations": []map[string]any{
		{"filename": "missing.jpg"},
		{"filename": s.put(t, "empty.jpg", "")},
		{"filename": s.put(t, "large.jpg", strings.Repeat("x", 20<<20+1))},
		{"filename": "staff"},
	}})
	must.Do(t, os.Mkdir(filepath.Join(s.dir, "staff"), 0o700))
	for i, want := range []string{"FileNotFound", "UnreadableImage", "InvalidRequest", "FileNotFound"} {
		r := await(t, c, p.url(i), batch, 4)[i]
		if r.RegisterStatus != "Failed" || !strings.HasPrefix(r.Reason, want+": ") || r.AttributesJSON != "" || r.SubjectID != "" {
			t.Errorf("record %d: %+v, want %s", i, r, want)
		}
	}
	batch = begin(t, c, p.url(1), s.people(t, 2))
	all := await(t, c, p.url(2), batch, 2)
	full := 0
	for _, r := range all {
		if strings.HasPrefix(r.Reason, "GalleryFull: ") {
			full++
		}
	}
	if full != 1 {
		t.Errorf("of two files in a gallery of one: %+v", all)
	}
}

func aJobIsItsOwnRetry(t *testing.T, p promises, bucket string) {
	c, s := p.openStore(t, bucket, 500)
	r, err := c.Sign(p.url(0), http.MethodPost, "/v1.1/jobs/bulkregister", s.people(t, 10))
	must.Do(t, err)
	var batches [3]struct{ BatchID string }
	for i := range batches {
		a, err := c.SendAs(t.Context(), p.url(i), p.url(0), r)
		if err != nil || a.Status != http.StatusOK {
			t.Fatalf("try %d: %v %d %s", i, err, a.Status, a.Body)
		}
		a.Decode(t, &batches[i])
	}
	batch := batches[0].BatchID
	if batches[1].BatchID != batch || batches[2].BatchID != batch {
		t.Errorf("three tries made %v", batches)
	}
	once(t, c, p.url(1), await(t, c, p.url(1), batch, 10))
	other := p.cluster.Client("a stranger")
	gallery(t, other, p.url(0), "g", 10)
	expect(t, other, http.StatusNotFound, p.url(1), http.MethodGet, "/v1.1/jobs/bulkregister/"+batch, nil)
}

func aRetryFindsItsJob(t *testing.T, p promises, bucket string) {
	c, s := p.openStore(t, bucket, 100)
	body := s.people(t, 3)
	keyed := func(i int) string {
		key := sigv4.Header{Name: "idempotency-key", Value: fmt.Sprint("job ", i)}
		a := c.Call(t, p.url(i), http.MethodPost, "/v1.1/jobs/bulkregister", body, key)
		var b struct{ BatchID string }
		if a.Decode(t, &b); a.Status != http.StatusOK {
			t.Fatalf("begin job %d: %d %s", i, a.Status, a.Body)
		}
		return b.BatchID
	}
	const jobs = 8
	var before [jobs]string
	for i := range before {
		before[i] = keyed(i)
	}
	register := func(i int) (s subject) {
		key := sigv4.Header{Name: "idempotency-key", Value: fmt.Sprint("subject ", i)}
		c.Call(t, p.url(i), http.MethodPost, "/v1.1/subjects", face(fmt.Sprint("alone ", i)), key).Decode(t, &s)
		return s
	}
	var alone [jobs]subject
	for i := range alone {
		alone[i] = register(i)
	}
	expect(t, c, http.StatusOK, p.url(0), http.MethodPatch, "/api/galleries/"+galleryID(t, c, p.url(0)), map[string]any{"size": 400})
	shards := map[id.Shard]bool{}
	for i, first := range alone {
		if again := register(i); again != first || first.ID == "" {
			t.Errorf("subject %d: first %v, then %v", i, first, again)
		}
	}
	for i, batch := range before {
		if again := keyed(i); again != batch {
			t.Errorf("job %d: first %s, then %s", i, batch, again)
		}
		await(t, c, p.url(i), batch, 3)
	}
	for i := range jobs {
		batch := keyed(jobs + i)
		await(t, c, p.url(i), batch, 3)
		u := parsed(t, batch)
		shards[u.Shard()] = true
	}
	if len(shards) < 2 {
		t.Errorf("jobs of a gallery of four shards lie on %d", len(shards))
	}
}

func noFileOfAnotherTenant(t *testing.T, p promises, bucket string) {
	_, s := p.openStore(t, bucket, 10)
	s.put(t, "secret.jpg", "ann")
	outside := filepath.Base(s.dir)
	c, tenant := p.cluster.ClientOf("another tenant")
	gallery(t, c, p.url(0), "g", 10)
	own := store{dir: filepath.Join(bucket, tenant.String())}
	own.put(t, "x", "bob")
	for _, name := range []string{
		"../" + outside + "/secret.jpg", "/etc/passwd", "a/../../" + outside + "/secret.jpg", `..\secret.jpg`,
		"file:///etc/passwd", "a//b", "./x", "", "a\x00b", strings.Repeat("x", 1025),
	} {
		a := c.Call(t, p.url(1), http.MethodPost, "/v1.1/jobs/bulkregister", map[string]any{"registrations": []any{map[string]any{"filename": name}}})
		if a.Status != http.StatusBadRequest {
			t.Errorf("%q: %d %s", name, a.Status, a.Body)
		}
	}
	must.Do(t, os.Symlink(filepath.Join(s.dir, "secret.jpg"), filepath.Join(own.dir, "link.jpg")))
	batch := begin(t, c, p.url(2), map[string]any{"registrations": []any{map[string]any{"filename": "link.jpg"}}})
	if r := await(t, c, p.url(0), batch, 1)[0]; r.RegisterStatus != "Failed" || !strings.HasPrefix(r.Reason, "ObjectStore: ") || r.Attempts != "3" {
		t.Errorf("a link that leads outside: %+v", r)
	}
}

func aDeletedGallerysJobsEnd(t *testing.T, p promises, bucket string) {
	c, s := p.openStore(t, bucket, 5000)
	batch := begin(t, c, p.url(0), s.people(t, 1500))
	await(t, c, p.url(0), batch, 1)
	expect(t, c, http.StatusNoContent, p.url(1), http.MethodDelete, "/api/galleries/"+galleryID(t, c, p.url(0)), nil)
	expect(t, c, http.StatusForbidden, p.url(2), http.MethodGet, "/v1.1/jobs/bulkregister/"+batch, nil)
	late := time.Now().Add(20 * time.Second)
	for _, m := range p.cluster.Nodes {
		for shard := range 4 {
			for !m.Node.Router().Idle(id.Shard(shard + 1)) {
				if time.Now().After(late) {
					t.Fatalf("shard %d still has work for a deleted gallery", shard+1)
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
	}
}

func tagsAreGiven(t *testing.T, p promises, bucket string) {
	c, s := p.openStore(t, bucket, 10)
	expect(t, c, http.StatusOK, p.url(0), http.MethodPost, "/v1.1/tags/crew", nil)
	item := map[string]any{"filename": s.put(t, "ann.jpg", "ann"), "tags": []string{"crew", "crew"}}
	bad := map[string]any{"filename": s.put(t, "bob.jpg", "bob"), "tags": []string{"pilots"}}
	a := expect(t, c, http.StatusBadRequest, p.url(1), http.MethodPost, "/v1.1/jobs/bulkregister", map[string]any{"registrations": []any{item, bad}})
	if !strings.Contains(string(a.Body), "UnknownTag") {
		t.Errorf("an unknown tag: %s", a.Body)
	}
	batch := begin(t, c, p.url(1), map[string]any{"registrations": []any{item}})
	await(t, c, p.url(0), batch, 1)
	expect(t, c, http.StatusOK, p.url(2), http.MethodPost, "/v1.1/face/search", probe("ann", "crew"))
	expect(t, c, http.StatusNotFound, p.url(2), http.MethodGet, "/v1.1/subjects/"+batch+"/events", nil)
}

// The nodes die and return in turn.
func TestJobSurvivesEveryNodesDeath(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		p, bucket := bulkCluster(t, nodetest.Options{})
		c, s := p.openStore(t, bucket, 5000)
		const files = 1500
		batch := begin(t, c, p.url(0), s.people(t, files))
		for i := range 3 {
			done := processed(await(t, c, p.url(i+1), batch, 1))
			p.cluster.Stop(i)
			all := await(t, c, p.url(i+1), batch, min(done+files/8, files))
			t.Logf("node %d stopped at %d, started again at %d", i+1, done, processed(all))
			p.cluster.Restart(i)
			p.cluster.WaitReady()
		}
		once(t, c, p.url(0), await(t, c, p.url(0), batch, files))
	})
}
