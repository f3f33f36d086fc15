package node_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"facet/node/audit/entry"
	"facet/node/nodetest"
)

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
				expect(t, r.admin, http.StatusCreated, r.url(i%3), http.MethodPost, "/v1.1/subjects",
					expiringFace(fmt.Sprint("gone ", w, " ", i), base.Add(time.Duration(w+1)*time.Hour)))
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
				for k := 0; k+entry.NameBytes <= len(r.Subjects); k += entry.NameBytes {
					names[string(r.Subjects[k:k+entry.NameBytes])]++
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
			if times != 1 {
				t.Errorf("subject %x has %d acts", name, times)
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
