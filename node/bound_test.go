package node_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"facet/node"
	"facet/node/nodetest"
)

const boundHeader = "Facet-Search-Bound"

func TestSearchReportsProbableBounds(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 2, Shards: 2}, func(t *testing.T, cluster *nodetest.Cluster) {
		c := cluster.Client("bank")
		gallery(t, c, cluster.Nodes[0].URL, "staff", 1000)
		var known []string
		for i := range 150 { // more than what is kept without codes
			known = append(known, enrol(t, c, cluster.Nodes[0].URL, fmt.Sprint(i)).ID)
		}
		search := func(n int, person string) nodetest.Answer {
			t.Helper()
			a := c.Call(t, cluster.Nodes[n].URL, http.MethodPost, "/v1.1/face/search", map[string]any{"probe": nodetest.Image(person)})
			if a.Status != http.StatusOK && a.Status != http.StatusNotFound {
				t.Fatalf("search: %d %s", a.Status, a.Body)
			}
			return a
		}
		for n := range cluster.Nodes {
			if got := search(n, "7").Header.Get(boundHeader); got != "" {
				t.Errorf("node %d with certified bounds says %q", n, got)
			}
		}
		cluster.Stop(1)
		cluster.Nodes[1].Config.SearchMiss = node.SearchMissProbable
		cluster.Restart(1)
		cluster.WaitReady()
		const want = "probable 5e-10"
		for n := range cluster.Nodes {
			for _, person := range []string{"7", "a stranger"} { // found, and nobody
				var got string
				for late := time.Now().Add(10 * time.Second); got != want && time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
					got = search(n, person).Header.Get(boundHeader)
				}
				if got != want {
					t.Errorf("node %d, %s: says %q, want %q", n, person, got, want)
				}
			}
			for _, i := range []int{0, 77, 149} {
				if got := find(t, c, cluster.Nodes[n].URL, fmt.Sprint(i)); !slices.Equal(got, []string{known[i]}) {
					t.Errorf("node %d, search for %d: got %v, want %s", n, i, got, known[i])
				}
			}
			if a := c.Call(t, cluster.Nodes[n].URL, http.MethodGet, "/v1.1/subjects", nil); a.Header.Get(boundHeader) != "" {
				t.Errorf("a list says %q", a.Header.Get(boundHeader))
			}
		}
	})
}
