package node_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
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
func enrolled(t testing.TB, c *nodetest.Client, base string, people map[string]string) map[string]string {
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
		var first string
		nodetest.Step(t, "every planted pair is found once, in groups", func(t *testing.T) {
			first = begin(t, 0, 1)
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
			within(t, 5*time.Second, "a node leads the comparison's shard", func() bool {
				at = slices.IndexFunc(p.cluster.Nodes, func(m *nodetest.Member) bool { return m.Node.LeadsReport() })
				return at >= 0
			})
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
			batch := begin(t, 1, 3)
			check(t, compared(t, c, p.url(1), 1000), want)
			if again := begin(t, 2, 1); again != first {
				t.Errorf("the first request again: batch %s, want %s", again, first)
			}
			if d := compared(t, c, p.url(0), 1000); d.BatchID != batch {
				t.Errorf("the first request again replaced the report by batch %s", d.BatchID)
			}
			for i, m := range p.cluster.Nodes {
				within(t, 20*time.Second, fmt.Sprintf("node %d has %d pairs", i, len(want)), func() bool { return m.Node.PairsHere() == len(want) })
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

// differentPairs returns the pairs of different subjects, by external ids.
func differentPairs(t *testing.T, c *nodetest.Client, base string) []string {
	t.Helper()
	list := []string{}
	for after := ""; ; {
		var d struct {
			Total int
			Pairs []duplicatePair
			Next  string
		}
		expect(t, c, http.StatusOK, base, http.MethodGet, "/v1.1/jobs/duplicates/different?length=2"+after, nil).Decode(t, &d)
		for _, p := range d.Pairs {
			names := []string{p.Subjects[0].ExternalID, p.Subjects[1].ExternalID}
			slices.Sort(names)
			list = append(list, names[0]+" "+names[1])
		}
		if d.Next == "" {
			slices.Sort(list)
			return list
		}
		after = "&after=" + d.Next
	}
}

func TestDifferentSubjectsAreLeftOut(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		p := promises{nodetest.Start(t, nodetest.Options{SlotsPerShard: 100, Table: nodetest.Table()})}
		c := p.cluster.Client("bank")
		gallery(t, c, p.url(0), "g", 400)
		people := map[string]string{}
		for i := range 6 {
			people[fmt.Sprint("a", i)], people[fmt.Sprint("b", i)] = fmt.Sprint("person ", i), fmt.Sprint("person ", i)
		}
		people["c0"] = "person 0"
		ids := enrolled(t, c, p.url(1), people)
		path := func(a, b string) string { return "/v1.1/jobs/duplicates/different/" + ids[a] + "/" + ids[b] }
		set := func(t *testing.T, i int, a, b string) {
			t.Helper()
			expect(t, c, http.StatusNoContent, p.url(i), http.MethodPut, path(a, b), nil)
		}
		lists := func(t *testing.T, want ...string) {
			t.Helper()
			for i := range 3 {
				if got := differentPairs(t, c, p.url(i)); !slices.Equal(got, want) {
					t.Errorf("node %d: %q, want %q", i, got, want)
				}
			}
		}
		reports := func(t *testing.T, different, groups int, want ...string) {
			t.Helper()
			d := compared(t, c, p.url(0), 1000)
			pairs := pairsOf(t, d, ids)
			for _, name := range want {
				if pairs[name] == 0 {
					t.Errorf("%s is missing: %v", name, pairs)
				}
			}
			if len(pairs) != len(want) || d.Found != len(want) || d.Different != different || d.Groups != groups {
				t.Errorf("%d pairs, %d different, %d groups, want %d, %d, %d: %v", d.Found, d.Different, d.Groups, len(want), different, groups, pairs)
			}
		}
		nodetest.Step(t, "reports leave them out, the one that is there and the next", func(t *testing.T) {
			beginComparison(t, c, p.url(0), 1)
			reports(t, 0, 6, "a0 b0", "a0 c0", "b0 c0", "a1 b1", "a2 b2", "a3 b3", "a4 b4", "a5 b5")
			set(t, 0, "a1", "b1")
			set(t, 2, "c0", "a0")
			set(t, 1, "c0", "b0")
			lists(t, "a0 c0", "a1 b1", "b0 c0")
			reports(t, 3, 5, "a0 b0", "a2 b2", "a3 b3", "a4 b4", "a5 b5")
			beginComparison(t, c, p.url(1), 2)
			reports(t, 3, 5, "a0 b0", "a2 b2", "a3 b3", "a4 b4", "a5 b5")
		})
		nodetest.Step(t, "saying it twice is once, and it can be taken back", func(t *testing.T) {
			set(t, 1, "b1", "a1")
			lists(t, "a0 c0", "a1 b1", "b0 c0")
			expect(t, c, http.StatusNoContent, p.url(2), http.MethodDelete, path("b1", "a1"), nil)
			expect(t, c, http.StatusNotFound, p.url(2), http.MethodDelete, path("a1", "b1"), nil)
			lists(t, "a0 c0", "b0 c0")
			reports(t, 2, 6, "a0 b0", "a1 b1", "a2 b2", "a3 b3", "a4 b4", "a5 b5")
		})
		nodetest.Step(t, "requests at once lose nothing", func(t *testing.T) {
			var all sync.WaitGroup
			for i := 2; i < 6; i++ {
				all.Go(func() {
					if a := c.Call(t, p.url(i%3), http.MethodPut, path(fmt.Sprint("a", i), fmt.Sprint("b", i)), nil); a.Status != http.StatusNoContent {
						t.Errorf("%d %s", a.Status, a.Body)
					}
				})
			}
			all.Wait()
			lists(t, "a0 c0", "a2 b2", "a3 b3", "a4 b4", "a5 b5", "b0 c0")
		})
		nodetest.Step(t, "a restart of all nodes loses nothing", func(t *testing.T) {
			restart(p.cluster, 0, 1, 2)
			lists(t, "a0 c0", "a2 b2", "a3 b3", "a4 b4", "a5 b5", "b0 c0")
		})
		nodetest.Step(t, "who is erased or merged takes the pair along, on each replica", func(t *testing.T) {
			expect(t, c, http.StatusNoContent, p.url(0), http.MethodDelete, "/v1.1/subjects/"+ids["c0"], nil)
			expect(t, c, http.StatusOK, p.url(0), http.MethodPost, "/v1.1/subjects/"+ids["a3"]+"/merge", map[string]string{"source": ids["b3"]})
			lists(t, "a2 b2", "a4 b4", "a5 b5")
			expect(t, c, http.StatusNotFound, p.url(1), http.MethodPut, path("a0", "c0"), nil)
			for _, m := range p.cluster.Nodes {
				if err := m.Node.RedactDuplicates(t.Context()); err != nil {
					t.Error(err)
				}
			}
			for i, m := range p.cluster.Nodes {
				within(t, 20*time.Second, fmt.Sprintf("node %d keeps 3 pairs", i), func() bool { return m.Node.DifferentHere() == 3 })
			}
			set(t, 0, "a0", "b0") // on a place that is free
			lists(t, "a0 b0", "a2 b2", "a4 b4", "a5 b5")
		})
		nodetest.Step(t, "another tenant knows nothing of it", func(t *testing.T) {
			other := p.cluster.Client("another bank")
			gallery(t, other, p.url(0), "g", 10)
			expect(t, other, http.StatusNotFound, p.url(0), http.MethodPut, path("a1", "b1"), nil)
			if got := differentPairs(t, other, p.url(1)); len(got) != 0 {
				t.Errorf("%q", got)
			}
		})
	})
}
