package node_test

import (
	"net/http"
	"strings"
	"testing"

	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
)

// While a node may not know the rule on several faces, it is refused in words that say what to do.
func TestDominantFacesWaitForAllNodes(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1, Level: metafsm.LevelSubjects - 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		url, c := cluster.Nodes[0].URL, cluster.Client("bank")
		gallery(t, c, url, "staff", 100)
		var galleries struct{ Galleries []struct{ ID string } }
		c.Call(t, url, http.MethodGet, "/api/galleries", nil).Decode(t, &galleries)
		var list struct{ Applications []struct{ ID string } }
		c.Call(t, url, http.MethodGet, "/api/applications", nil).Decode(t, &list)
		f := func(method, target string, body map[string]any) {
			t.Helper()
			a := c.Call(t, url, method, target, body)
			if a.Status != http.StatusInternalServerError || !strings.Contains(string(a.Body), "finish the upgrade") {
				t.Errorf("%s %s: %d %s", method, target, a.Status, a.Body)
			}
		}
		made := map[string]any{"name": "door", "faceMinimumQualityScore": .5, "galleryId": galleries.Galleries[0].ID, "multipleFaces": "dominant"}
		f(http.MethodPatch, "/api/applications/"+list.Applications[0].ID, map[string]any{"multipleFaces": "dominant"})
		f(http.MethodPost, "/api/applications", made)
		made["multipleFaces"] = "refuse"
		expect(t, c, http.StatusOK, url, http.MethodPost, "/api/applications", made)
	})
}
