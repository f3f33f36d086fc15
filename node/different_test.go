package node_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"facet/node/nodetest"
)

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
				for late := time.Now().Add(20 * time.Second); m.Node.DifferentHere() != 3; time.Sleep(20 * time.Millisecond) {
					if time.Now().After(late) {
						t.Fatalf("node %d keeps %d pairs", i, m.Node.DifferentHere())
					}
				}
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
