package node_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node"
	"facet/node/audit/entry"
	"facet/node/nodetest"
	"facet/raftfsm/fsmtest"
	"facet/raftfsm/metafsm"
)

// expiredWithin is how long after its time an event may still match.
const expiredWithin = 5 * time.Second

// waitNewest waits until all nodes know that the cluster has its level.
func waitNewest(t testing.TB, cluster *nodetest.Cluster) {
	t.Helper()
	for _, n := range cluster.Nodes {
		waitLevel(t, n.Node, "the level", metafsm.Level, func(n *node.Node) uint32 { return n.Status(t.Context()).Level })
	}
}

// expiringFace is a body that registers a person who expires at a time.
func expiringFace(person string, at time.Time) map[string]any {
	body := face(person)
	body["expires"] = at.UTC().Format(time.RFC3339Nano)
	return body
}

// lastMatch searches for a person through all nodes from the time at on, for a while. It returns how
// long after at the last search began that found them.
func lastMatch(t *testing.T, cluster *nodetest.Cluster, c *nodetest.Client, person string, at time.Time) (last time.Duration) {
	t.Helper()
	time.Sleep(time.Until(at))
	for ; time.Since(at) < expiredWithin; time.Sleep(100 * time.Millisecond) {
		for _, n := range cluster.Nodes {
			if asked := time.Since(at); len(find(t, c, n.URL, person)) > 0 {
				last = asked
			}
		}
	}
	return last
}

// TestExpiredEventsLeaveEveryDisk lets events expire and searches for them through all nodes.
// Then it scans the data directories, as TestErasedDataLeavesEveryDisk does.
func TestExpiredEventsLeaveEveryDisk(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		const bound = 8 * time.Second
		cluster := nodetest.Start(t, nodetest.Options{EraseWithin: bound, SlotsPerShard: 25})
		waitNewest(t, cluster)
		url, c := cluster.Nodes[0].URL, cluster.Client("bank")
		gallery(t, c, url, "staff", 100) // on all shards
		at := time.Now().Add(4 * time.Second)
		var gone subject
		expect(t, c, http.StatusCreated, url, http.MethodPost, "/v1.1/subjects", expiringFace("first of gone", at)).Decode(t, &gone)
		for i := range 20 {
			enrol(t, c, url, fmt.Sprint("other ", i))
			expect(t, c, http.StatusCreated, url, http.MethodPost, "/v1.1/subjects", expiringFace(fmt.Sprint("gone ", i), at))
		}
		stays := enrol(t, c, url, "first of stays")
		expect(t, c, http.StatusCreated, url, http.MethodPost, "/v1.1/subjects/"+stays.ID+"/events", expiringFace("second of stays", at))
		// The first event of a subject carries the external id. The next one gets it.
		body := expiringFace("first of named", at)
		body["externalId"] = "staff/1"
		var named subject
		expect(t, c, http.StatusCreated, url, http.MethodPost, "/v1.1/subjects", body).Decode(t, &named)
		expect(t, c, http.StatusCreated, url, http.MethodPost, "/v1.1/subjects/"+named.ID+"/events", face("second of named"))
		var dry struct{ Total int }
		expect(t, c, http.StatusOK, url, http.MethodGet, "/v1.1/subjects?length=3&expiresBefore="+at.Add(time.Second).UTC().Format("2006-01-02T15:04:05Z"), nil).Decode(t, &dry)
		if dry.Total != 23 || time.Now().After(at) {
			t.Fatalf("%d events would go, want 23, in %s", dry.Total, time.Until(at))
		}
		isFound(t, c, url, "first of gone")
		late := lastMatch(t, cluster, c, "first of gone", at)
		t.Logf("the last match was %s after the event's time", late)
		if late > expiredWithin/2 {
			t.Errorf("it matched %s after its time", late)
		}
		if got := fmt.Sprint(eventsOf(t, c, url, stays.ID)); got != fmt.Sprint([]string{stays.EventID}) {
			t.Errorf("events of a subject of which one expired: %s", got)
		}
		expect(t, c, http.StatusNotFound, url, http.MethodGet, "/v1.1/subjects/"+gone.ID+"/events", nil)
		expect(t, c, http.StatusNotFound, url, http.MethodPost, "/v1.1/face/verify", map[string]any{"probe": nodetest.Image("first of gone"), "id": gone.ID})

		isGone(t, c, url, "first of named")
		expect(t, c, http.StatusOK, url, http.MethodGet, "/v1.1/subjects?externalId=staff%2F1", nil)

		files := scanner(t, cluster, c)
		deadline := at.Add(bound + expiredWithin)
		for _, person := range []string{"first of gone", "gone 7", "second of stays"} {
			for found := files(person); len(found) > 0; found = files(person) {
				if time.Now().After(deadline) {
					t.Fatalf("%q is still in %v", person, found)
				}
				time.Sleep(bound / 40)
			}
		}
		if len(files("other 7")) < 3 || len(find(t, c, url, "other 7")) != 1 || len(find(t, c, url, "first of stays")) != 1 {
			t.Error("others are gone too")
		}
	})
}

// galleryOf returns the id of the first gallery of c's tenant, and the key of its data.
func galleryOf(t *testing.T, cluster *nodetest.Cluster, c *nodetest.Client) (gallery string, secret []byte) {
	t.Helper()
	gallery = galleryID(t, c, cluster.Nodes[0].URL)
	secret, err := cluster.Nodes[0].Node.DataSecret(id.Gallery{UUID: parsed(t, gallery)})
	must.Do(t, err)
	return gallery, secret
}

// scanner returns a function that finds the files of all nodes that have a person's template in
// the gallery of c, in clear or sealed.
func scanner(t *testing.T, cluster *nodetest.Cluster, c *nodetest.Client) func(person string) []string {
	t.Helper()
	_, secret := galleryOf(t, cluster, c)
	return func(person string) (found []string) {
		faces, err := nodetest.HashExtractor{}.Extract(t.Context(), []byte(person))
		must.Do(t, err)
		for _, n := range cluster.Nodes {
			found = append(found, fsmtest.NewScanner(faces[0].Template, secret).Files(t, n.Config.Dir)...)
		}
		return found
	}
}

// The clocks of all nodes go on together by days, so that retentions end.
func TestRetentionActsOnExistingEvents(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		var days atomic.Int64
		cluster := nodetest.Start(t, nodetest.Options{Off: func(int) time.Duration { return time.Duration(days.Load()) * 24 * time.Hour }})
		waitNewest(t, cluster)
		url, c := cluster.Nodes[0].URL, cluster.Client("bank")
		gallery(t, c, url, "staff", 100)
		first := enrol(t, c, url, "first")
		keep := func(n int) {
			t.Helper()
			expect(t, c, http.StatusOK, cluster.Nodes[1].URL, http.MethodPatch, "/api/galleries/"+galleryID(t, c, url), map[string]any{"retentionDays": n})
		}
		check := func(what string, present ...string) {
			t.Helper()
			within(t, expiredWithin, fmt.Sprintf("%s: %v are there", what, present), func() bool {
				var got []string
				for _, person := range []string{"first", "second", "third"} {
					if len(findUntil(t, c, cluster.Nodes[2].URL, person)) > 0 {
						got = append(got, person)
					}
				}
				return slices.Equal(got, present)
			})
		}
		later := func(n int64) {
			days.Add(n)
			time.Sleep(time.Second) // until the nodes have heard each other's clocks again
		}
		later(10)
		enrol(t, c, url, "second")
		keep(11)
		time.Sleep(time.Second)
		check("after 10 of 11 days", "first", "second")
		later(2)
		check("after 12 and 2 of 11 days", "second")
		expect(t, c, http.StatusNotFound, url, http.MethodGet, "/v1.1/subjects/"+first.ID+"/events", nil)
		keep(0)
		later(1000)
		enrol(t, c, url, "third")
		check("without a retention", "second", "third")
		keep(999)
		check("with a retention again", "third")
	})
}

// The leader changes between the answer to each expiry and its record, and the new one expires what is due before the
// record, too. Each event has one act, and each case. The shard that changes its leader has the tenant's log, too.
func TestExpiryOutlivesLeaderChange(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		r := startReviewOn(t, nodetest.Options{Shards: 1}, 1)
		a := auditOf(t, r.promises, r.admin, r.tenant(t))
		const waves, each = 6, 5
		base := time.Now().Truncate(time.Second)
		for w := range waves {
			for i := range each {
				a.call(t, i%3, http.MethodPost, "/v1.1/subjects", expiringFace(fmt.Sprint("gone ", w, " ", i), base.Add(time.Duration(w+1)*time.Hour)))
			}
		}
		enrolled := map[string]bool{}
		for _, r := range a.readAll(t, 0) {
			for n := range slices.Chunk(r.Subjects, entry.NameBytes) {
				enrolled[string(n)] = true
			}
			for _, c := range r.List() {
				enrolled[string(c.Subject[:])] = true
			}
		}
		cases := map[string]int{r.doubt(t, "staff/0", "visit 1"): 0, r.doubt(t, "staff/1", "visit 2"): 0}
		changes := 0
		expire := func(ahead time.Duration, meet bool) {
			for _, m := range r.cluster.Nodes {
				m.Node.ExpireMeeting(t, ahead, func() {
					if !meet {
						return
					}
					next := r.cluster.Nodes[(changes+1)%3].Node
					if next == m.Node {
						next = r.cluster.Nodes[(changes+2)%3].Node
					}
					changes++
					m.Node.HandOver(t, next)
					next.ExpireMeeting(t, ahead, func() {})
				})
			}
		}
		for w := range waves {
			expire(time.Duration(w+1)*time.Hour+time.Minute, true)
			r.cluster.WaitReady()
		}
		const days = 8 * 24 * time.Hour // a case is open for seven
		expire(days, true)
		r.cluster.WaitReady()
		expire(days, false) // what a change of the leader has interrupted
		events := func() (n uint64, names map[string]int) {
			names = map[string]int{}
			for _, r := range acts(a.read(t, 0), "expire events") {
				n += r.Count
				if r.Gallery.IsZero() || r.Generation == 0 {
					t.Errorf("the act is %+v", r)
				}
				for name := range slices.Chunk(r.Subjects, entry.NameBytes) {
					names[string(name)]++
				}
			}
			return n, names
		}
		until(func() bool {
			n, _ := events()
			return n >= waves*each && len(acts(a.read(t, 0), "expire case")) >= len(cases)
		})
		time.Sleep(time.Second)
		n, names := events()
		if n != waves*each || len(names) != waves*each || changes < waves {
			t.Errorf("%d events expired in %d changes of the leader, and the acts name %d subjects; want %d", n, changes, len(names), waves*each)
		}
		for name, times := range names {
			if times != 1 || !enrolled[name] {
				t.Errorf("subject %x has %d acts; a record of its enrolment: %v", name, times, enrolled[name])
			}
		}
		for _, r := range acts(a.read(t, 0), "expire case") {
			cases[r.Case.String()]++
		}
		for c, times := range cases {
			if times != 1 {
				t.Errorf("the expiry of case %s has %d acts", c, times)
			}
		}
		if len(cases) != 2 {
			t.Errorf("the acts name cases %v", cases)
		}
	})
}
