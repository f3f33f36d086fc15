package node_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/id"
	"facet/internal/must"
	"facet/internal/tiles"
	"facet/node/audit/entry"
	"facet/node/backup"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/router"
	"facet/shard/job"
)

// backUp makes a backup through a node.
func backUp(t *testing.T, m *nodetest.Member, o wire.BackupOrder) backup.Manifest {
	t.Helper()
	made, err := m.Node.Backups().Backup(t.Context(), o, nil)
	must.Do(t, err)
	return made
}

// restore restores a backup through a node.
func restore(t *testing.T, m *nodetest.Member, o wire.RestoreOrder) backup.Restored {
	t.Helper()
	restored, err := m.Node.Backups().Restore(t.Context(), o, nil)
	must.Do(t, err)
	return restored
}

// newest is the order to restore the newest backup of a folder.
func newest(folder string) wire.RestoreOrder {
	return wire.RestoreOrder{BackupQuery: wire.BackupQuery{From: folder}}
}

// successor starts a cluster with the cluster key of another one.
func successor(t *testing.T, old *nodetest.Cluster, o nodetest.Options) *nodetest.Cluster {
	t.Helper()
	o.ClusterKeyFile = old.Nodes[0].Config.ClusterKeyFile
	young := nodetest.Start(t, o)
	waitNewest(t, young)
	return young
}

// whole is a cluster with something of each kind that a backup has, and its successor.
type whole struct {
	*review
	old       *audited
	known     map[string]string // subjects by person
	first     string            // a case with one verdict of two
	second    string            // an open case
	soon, far time.Time         // when the events of "soon" and "later" expire
	subjects  []id.Subject      // of the external ids staff/0 to staff/3
	records   int               // in the tenant's log before the backup
	young     *nodetest.Cluster
	client    *nodetest.Client // of young
	access    router.Access
}

const retention = 400 // days

// fill writes something of each kind.
func (w *whole) fill(t *testing.T) {
	url, node := w.url(0), w.cluster.Nodes[0].Node
	w.known = people(t, w.admin, url, 10, 30)
	gone := enrol(t, w.admin, url, "gone")
	expect(t, w.admin, http.StatusNoContent, url, http.MethodDelete, "/v1.1/subjects/"+gone.ID, nil)
	w.first, w.second = w.doubt(t, "staff/0", "visit 1"), w.doubt(t, "staff/1", "visit 2")
	w.decide(t, "anna", w.first, "same", http.StatusOK, "open")
	var err error
	if w.access, err = node.Router().Access(t.Context(), w.tenant(t), w.admin.APIKey); err != nil {
		t.Fatal(err)
	}
	for _, external := range []string{"staff/0", "staff/1", "staff/2", "staff/3"} {
		w.subjects = append(w.subjects, subjectID(t, w.ids[external]))
	}
	for _, other := range w.subjects[1:] {
		must.Do(t, node.Router().SetDifferent(t.Context(), w.access, w.subjects[0], other))
	}
	if err := node.Router().UnsetDifferent(t.Context(), w.access, w.subjects[0], w.subjects[2]); err != nil { // leaves a free place
		t.Fatal(err)
	}
	w.soon = time.Now().Add(8 * time.Second).Truncate(time.Millisecond)
	w.far = w.soon.AddDate(0, 0, 300)
	expect(t, w.admin, http.StatusCreated, url, http.MethodPost, "/v1.1/subjects", expiringFace("soon", w.soon))
	expect(t, w.admin, http.StatusCreated, url, http.MethodPost, "/v1.1/subjects", expiringFace("later", w.far))
	expect(t, w.admin, http.StatusOK, url, http.MethodPatch, "/api/galleries/"+w.access.Gallery.String(), map[string]any{"retentionDays": retention})
}

// The successor has another number of shards, so that the gallery, its external ids and its cases have other homes.
func TestBackupRestoresWholeCluster(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		w := &whole{review: startReview(t, 2)}
		w.old = auditOf(t, w.promises, w.admin, w.tenant(t))
		w.fill(t)
		w.records = len(w.old.read(t, 0))
		if !until(func() bool { return len(w.cluster.Nodes[0].Node.ClusterRecords(t)) > 0 }) {
			t.Fatal("the cluster's log has no record")
		}
		to := "file://" + t.TempDir()
		if m := backUp(t, w.cluster.Nodes[1], wire.BackupOrder{To: to, Name: "first"}); m.Active() != 26 || time.Now().After(w.soon) {
			t.Fatalf("the backup has %d events %s before one expires", m.Active(), time.Until(w.soon))
		}
		time.Sleep(time.Until(w.soon))
		w.young = successor(t, w.cluster, nodetest.Options{Shards: 7, SlotsPerShard: 100, Table: nodetest.Table()})
		w.client = w.young.As(w.admin)
		backups := w.young.Nodes[0].Node.Backups()
		for i := range 2 { // the second order finds all restored
			waitJob(t, backups, backups.StartRestore(newest(to)))
			if done := backups.Progress("").Restored; i == 0 && (done == nil || done.Active != 26 || done.Deleted != 1 || done.Galleries != 1) {
				t.Errorf("restored: %+v", done)
			}
		}
		nodetest.Step(t, "the tenant's log names its former checkpoint", w.tenantLogGoesOn)
		nodetest.Step(t, "the cluster's log names its former checkpoint", w.clusterLogGoesOn)
		nodetest.Step(t, "what was due meanwhile has expired", w.eventsExpire)
		nodetest.Step(t, "external ids have their subjects", w.externalIDsAreClaimed)
		nodetest.Step(t, "different subjects are known", w.differentAreKept)
		nodetest.Step(t, "cases go on", w.casesGoOn)
		restart(w.young, 0, 1, 2)
		everybody(t, w.client, w.young, w.known)
		isGone(t, w.client, w.young.Nodes[1].URL, "gone")
		enrol(t, w.client, w.young.Nodes[2].URL, "newcomer")
	})
}

// tenantLogGoesOn sends requests to all nodes at once: the first record is the same all the same.
func (w *whole) tenantLogGoesOn(t *testing.T) {
	key := strings.TrimSpace(string(expect(t, w.old.auditor, http.StatusOK, w.url(0), http.MethodGet, "/api/audit/key", nil).Body))
	again := &audited{promises: promises{w.young}, client: w.client, auditor: w.young.As(w.old.auditor), tenant: w.old.tenant, seen: map[string]int{}}
	synced(t, w.young)
	var at sync.WaitGroup
	for i := range 12 {
		at.Go(func() { again.call(t, i%3, http.MethodGet, "/api/galleries", nil) })
	}
	at.Wait()
	within(t, 10*time.Second, "the restored tenant has a log", func() bool {
		return again.auditor.Call(t, again.url(2), http.MethodGet, "/api/audit/checkpoint", nil).Status == http.StatusOK
	})
	records := again.readAll(t, 2)
	for i, r := range records {
		if (i == 0) != (r.Kind == entry.Act && r.Operation == entry.OperationRestored && r.Former != "") {
			t.Errorf("record %d is %v %q, and names %q", i, r.Kind, r.Operation, r.Former)
		}
	}
	former, _, err := tiles.Open([]byte(records[0].Former), key)
	if err != nil || former.N < int64(w.records) {
		t.Fatalf("the checkpoint has %d records, %v, and %d were there before the backup", former.N, err, w.records)
	}
	var leaves []tlog.Hash
	for _, r := range w.old.read(t, 0)[:former.N] {
		leaves = append(leaves, tlog.RecordHash(r.Encode()))
	}
	if rootOf(leaves) != former.Hash {
		t.Error("the former log has another root at this size")
	}
}

// restoreActs returns what the records of restorations in a cluster's log name as the former log, once there are so many.
func restoreActs(t *testing.T, c *nodetest.Cluster, many int) (former []string) {
	t.Helper()
	until(func() bool {
		former = nil
		for _, r := range c.Nodes[0].Node.ClusterRecords(t) {
			if r.Operation == entry.OperationRestore {
				former = append(former, r.Former)
			}
		}
		return len(former) >= many
	})
	return former
}

// clusterLogGoesOn finds a checkpoint that the former cluster signed in the act of each of the two orders.
func (w *whole) clusterLogGoesOn(t *testing.T) {
	acts := restoreActs(t, w.young, 2)
	if len(acts) != 2 || acts[0] != acts[1] {
		t.Fatalf("the restorations name %q", acts)
	}
	n := w.cluster.Nodes[0].Node
	former, _, err := tiles.Open([]byte(acts[0]), strings.TrimSpace(string(n.ClusterFile(t, "key"))))
	must.Do(t, err)
	now, err := tiles.Claimed(n.ClusterFile(t, tiles.CheckpointPath))
	must.Do(t, err)
	at := tiles.In(tiles.EntryLevel, 0, now.N)
	entries, err := tiles.Entries(n.ClusterFile(t, tiles.Path(at)), at.W)
	must.Do(t, err)
	var leaves []tlog.Hash
	for _, e := range entries[:former.N] {
		leaves = append(leaves, tlog.RecordHash(e))
	}
	if former.N == 0 || rootOf(leaves) != former.Hash {
		t.Errorf("the former log has another root at %d of its %d records", former.N, now.N)
	}
}

func (w *whole) eventsExpire(t *testing.T) {
	url := w.young.Nodes[0].URL
	within(t, expiredWithin, "what was due before the restoration goes", func() bool { return len(find(t, w.client, url, "soon")) == 0 })
	var page struct {
		Subjects []struct{ Expires, LastUpdated time.Time }
	}
	query := "/v1.1/subjects?expiresBefore=" + w.soon.AddDate(0, 0, retention+1).UTC().Format("2006-01-02T15:04:05Z")
	expect(t, w.client, http.StatusOK, url, http.MethodGet, query, nil).Decode(t, &page)
	own, kept := 0, 0
	for _, s := range page.Subjects {
		switch {
		case s.Expires.Equal(w.far):
			own++
		case s.Expires.Sub(s.LastUpdated) == retention*24*time.Hour:
			kept++
		}
	}
	if own != 1 || kept != 24 {
		t.Errorf("%d events have the time of their registration, and %d the gallery's; want 1 and 24: %+v", own, kept, page.Subjects)
	}
}

func (w *whole) externalIDsAreClaimed(t *testing.T) {
	n := w.young.Nodes[0].Node
	within(t, 10*time.Second, "four claims", func() bool { return n.ClaimsHere() == 4 })
	for external, subject := range w.ids {
		if got, err := n.Router().SubjectWith(t.Context(), w.access, external); err != nil || got.String() != subject {
			t.Errorf("%s finds %s, %v, want %s", external, got, err, subject)
		}
	}
	_, err := n.Router().Register(t.Context(), router.Registration{
		Access: w.access, Write: write(99), Image: []byte("another"), Note: router.Note{ExternalID: "staff/3"},
	})
	if router.KindOf(err) != router.Duplicate {
		t.Errorf("a restored external id is registered again: %v", err)
	}
}

func (w *whole) differentAreKept(t *testing.T) {
	r := w.young.Nodes[0].Node.Router()
	list, total, _, err := r.Different(t.Context(), w.access, "", 10)
	if err != nil || total != 2 || len(list) != 2 {
		t.Fatalf("%+v, %d, %v", list, total, err)
	}
	for _, p := range list {
		pair := []id.Subject{p.Subjects[0].Subject, p.Subjects[1].Subject}
		if !slices.Contains(pair, w.subjects[0]) || !slices.Contains(pair, w.subjects[1]) && !slices.Contains(pair, w.subjects[3]) {
			t.Errorf("%v of %v", pair, w.subjects)
		}
	}
	if err := r.SetDifferent(t.Context(), w.access, w.subjects[1], w.subjects[2]); err != nil {
		t.Error(err)
	}
}

func (w *whole) casesGoOn(t *testing.T) {
	r := w.young.Nodes[0].Node.Router()
	page, err := r.Cases(t.Context(), w.access, router.CaseQuery{Length: 10})
	if err != nil || len(page.Cases) != 2 || page.Cases[0].ID.String() != w.first || len(page.Cases[0].Verdicts) != 1 || page.Cases[1].ID.String() != w.second || page.Cases[1].Reference != "visit 2" {
		t.Fatalf("%+v, %v", page.Cases, err)
	}
	if c, err := r.Decide(t.Context(), w.access, router.Decision{Case: page.Cases[0].ID, Same: true, Holder: "ben"}); err != nil || c.State != job.CaseSame || len(c.Verdicts) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}
