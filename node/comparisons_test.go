package node_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"facet/internal/id"
	"facet/node/nodetest"
	"facet/node/sigv4"
)

type (
	duplicatePair struct {
		Group, Score int
		Subjects     []struct{ ID, ExternalID string }
	}
	duplicates struct {
		BatchID, Status, Next, Reason string
		Threshold, Total, Done, Found int
		Groups, Different             int
		Incomplete                    bool
		Pairs                         []duplicatePair
	}
)

// busyExtractor reports that requests wait, so that comparisons rest between their pieces.
type busyExtractor struct {
	nodetest.HashExtractor
	waiting *atomic.Bool
}

func (b busyExtractor) Waiting() int {
	if b.waiting.Load() {
		return 1
	}
	return 0
}

// enrolled registers people under external ids and returns the ids of the subjects.
func enrolled(t *testing.T, c *nodetest.Client, base string, people map[string]string) map[string]string {
	t.Helper()
	ids := map[string]string{}
	for _, external := range slices.Sorted(maps.Keys(people)) {
		body := face(people[external])
		body["externalId"] = external
		var s subject
		expect(t, c, http.StatusCreated, base, http.MethodPost, "/v1.1/subjects", body).Decode(t, &s)
		ids[external] = s.ID
	}
	return ids
}

// compared waits for the end of a comparison and returns the whole report, in pages of length.
func compared(t *testing.T, c *nodetest.Client, base string, length int) (all duplicates) {
	t.Helper()
	late := time.Now().Add(2 * time.Minute)
	for after := ""; ; {
		var d duplicates
		expect(t, c, http.StatusOK, base, http.MethodGet, fmt.Sprintf("/v1.1/jobs/duplicates?length=%d%s", length, after), nil).Decode(t, &d)
		if d.Status != "Done" {
			if time.Now().After(late) {
				t.Fatalf("after two minutes: %+v", d)
			}
			if len(d.Pairs) > 0 || d.Done >= d.Total {
				t.Errorf("before the end: %+v", d)
			}
			time.Sleep(50 * time.Millisecond)
			continue
		}
		d.Pairs = append(all.Pairs, d.Pairs...)
		if all = d; d.Next == "" {
			return all
		}
		after = "&after=" + d.Next
	}
}

// pairsOf names the pairs of a report by external ids, and their groups.
func pairsOf(t *testing.T, d duplicates, ids map[string]string) map[string]int {
	t.Helper()
	pairs := map[string]int{}
	for _, p := range d.Pairs {
		a, b := p.Subjects[0], p.Subjects[1]
		if ids[a.ExternalID] != a.ID || ids[b.ExternalID] != b.ID || p.Score != 9999 {
			t.Errorf("pair %+v", p)
		}
		names := []string{a.ExternalID, b.ExternalID}
		slices.Sort(names)
		pairs[strings.Join(names, " ")] = p.Group
	}
	if len(pairs) != len(d.Pairs) {
		t.Errorf("%d pairs, %d of them different", len(d.Pairs), len(pairs))
	}
	return pairs
}

// beginComparison returns the id of a comparison. It sends the same request twice, which is once.
func beginComparison(t *testing.T, c *nodetest.Client, base string, number int) (batch string) {
	t.Helper()
	key := sigv4.Header{Name: "idempotency-key", Value: fmt.Sprint("comparison ", number)}
	for range 2 {
		var b struct{ BatchID string }
		a := c.Call(t, base, http.MethodPost, "/v1.1/jobs/duplicates", map[string]any{"threshold": 9500}, key)
		if a.Decode(t, &b); a.Status != http.StatusOK || batch != "" && b.BatchID != batch {
			t.Fatalf("begin: %d %s, before %q", a.Status, a.Body, batch)
		}
		batch = b.BatchID
	}
	return batch
}

// shardsOf counts the shards of subjects.
func shardsOf(t *testing.T, ids map[string]string) int {
	t.Helper()
	shards := map[id.Shard]bool{}
	for _, text := range ids {
		u := parsed(t, text)
		shards[u.Shard()] = true
	}
	return len(shards)
}

func TestComparisonsKeepPromises(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		waiting := &atomic.Bool{}
		p := promises{nodetest.Start(t, nodetest.Options{SlotsPerShard: 100, Extractor: busyExtractor{waiting: waiting}, Table: nodetest.Table()})}
		c := p.cluster.Client("bank")
		gallery(t, c, p.url(0), "g", 400)
		people := map[string]string{}
		for i := range 150 {
			people[fmt.Sprintf("a%03d", i)] = fmt.Sprint("person ", i)
			if i < 20 {
				people[fmt.Sprintf("b%03d", i)] = fmt.Sprint("person ", i)
			}
		}
		people["c000"], people["c001"] = "person 0", "person 0"
		ids := enrolled(t, c, p.url(1), people)
		want := map[string]bool{"a000 c000": true, "a000 c001": true, "b000 c000": true, "b000 c001": true, "c000 c001": true}
		for i := range 20 {
			want[fmt.Sprintf("a%03d b%03d", i, i)] = true
		}
		if n := shardsOf(t, ids); n < 3 {
			t.Fatalf("the gallery lies on %d shards", n)
		}
		nodetest.Step(t, "no report before the first comparison", func(t *testing.T) {
			expect(t, c, http.StatusNotFound, p.url(0), http.MethodGet, "/v1.1/jobs/duplicates", nil)
			expect(t, c, http.StatusNotFound, p.url(0), http.MethodDelete, "/v1.1/jobs/duplicates", nil)
		})
		begin := func(t *testing.T, i, number int) string { return beginComparison(t, c, p.url(i), number) }
		check := func(t *testing.T, d duplicates, want map[string]bool) {
			t.Helper()
			pairs := pairsOf(t, d, ids)
			for name := range want {
				if pairs[name] == 0 {
					t.Errorf("%s is missing", name)
				}
			}
			if len(pairs) != len(want) || d.Found != len(want) || d.Incomplete || d.Reason != "" || d.Threshold != 9500 {
				t.Errorf("%d pairs, want %d: %+v", len(pairs), len(want), d)
			}
		}
		nodetest.Step(t, "every planted pair is found once, in groups", func(t *testing.T) {
			first := begin(t, 0, 1)
			d := compared(t, c, p.url(2), 7)
			check(t, d, want)
			pairs := pairsOf(t, d, ids)
			if d.BatchID != first || d.Groups != 20 || pairs["a000 b000"] != pairs["c000 c001"] || pairs["a001 b001"] == pairs["a002 b002"] {
				t.Errorf("%d groups: %v", d.Groups, pairs)
			}
		})
		nodetest.Step(t, "a comparison goes on without the leader that lent its blocks", func(t *testing.T) {
			waiting.Store(true) // each piece takes half a second
			batch := begin(t, 0, 2)
			at := -1
			for late := time.Now().Add(5 * time.Second); at < 0; time.Sleep(10 * time.Millisecond) {
				at = slices.IndexFunc(p.cluster.Nodes, func(m *nodetest.Member) bool { return m.Node.LeadsReport() })
				if time.Now().After(late) {
					t.Fatal("no node leads the comparison's shard")
				}
			}
			p.cluster.Stop(at)
			waiting.Store(false)
			d := compared(t, c, p.url(at+1), 1000)
			if check(t, d, want); d.BatchID != batch {
				t.Errorf("batch %s, want %s", d.BatchID, batch)
			}
			p.cluster.Restart(at)
			p.cluster.WaitReady()
		})
		nodetest.Step(t, "who is erased is in no page, and soon in no report", func(t *testing.T) {
			expect(t, c, http.StatusNoContent, p.url(0), http.MethodDelete, "/v1.1/subjects/"+ids["b001"], nil)
			expect(t, c, http.StatusNoContent, p.url(0), http.MethodDelete, "/v1.1/subjects/"+ids["c001"], nil)
			left := maps.Clone(want)
			maps.DeleteFunc(left, func(name string, _ bool) bool {
				return strings.Contains(name, "b001") || strings.Contains(name, "c001")
			})
			if d := compared(t, c, p.url(1), 1000); len(pairsOf(t, d, ids)) != len(left) || d.Found != len(want) {
				t.Errorf("%d pairs of %d found, want %d", len(d.Pairs), d.Found, len(left))
			}
			for _, m := range p.cluster.Nodes {
				if err := m.Node.RedactDuplicates(t.Context()); err != nil {
					t.Error(err)
				}
			}
			check(t, compared(t, c, p.url(2), 1000), left)
			want = left
		})
		nodetest.Step(t, "the next comparison replaces the report", func(t *testing.T) {
			begin(t, 1, 3)
			check(t, compared(t, c, p.url(1), 1000), want)
			late := time.Now().Add(20 * time.Second)
			for _, m := range p.cluster.Nodes {
				for m.Node.PairsHere() != len(want) {
					if time.Now().After(late) {
						t.Fatalf("%d pairs on a node, want %d", m.Node.PairsHere(), len(want))
					}
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
		nodetest.Step(t, "a dropped report is gone", func(t *testing.T) {
			expect(t, c, http.StatusNoContent, p.url(2), http.MethodDelete, "/v1.1/jobs/duplicates", nil)
			expect(t, c, http.StatusNotFound, p.url(0), http.MethodGet, "/v1.1/jobs/duplicates", nil)
		})
		nodetest.Step(t, "an empty gallery has no pairs, and another tenant no report", func(t *testing.T) {
			other := p.cluster.Client("another bank")
			gallery(t, other, p.url(0), "g", 10)
			expect(t, other, http.StatusNotFound, p.url(1), http.MethodGet, "/v1.1/jobs/duplicates", nil)
			expect(t, other, http.StatusOK, p.url(1), http.MethodPost, "/v1.1/jobs/duplicates", map[string]any{})
			if d := compared(t, other, p.url(2), 10); d.Found != 0 || d.Groups != 0 || d.Threshold != 9000 {
				t.Errorf("%+v", d)
			}
		})
	})
}
