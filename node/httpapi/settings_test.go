package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"facet/node/nodetest"
)

// A node that has answered a change of settings uses them from the next request on, though its
// replica of meta may be behind. Other nodes take up to two seconds.
func TestNodeUsesSettingsThatItChanged(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		s := &service{Cluster: nodetest.Start(t, nodetest.Options{Shards: 1, Extractor: people{}, Table: nodetest.Table()})}
		own := s.tenant(t, "settings", 0)
		app := own.gallery(t, "app", 100)
		var list struct{ Applications []struct{ ID string } }
		own.admin.Call(t, own.base, http.MethodGet, "/api/applications", nil).Decode(t, &list)
		search := map[string]any{"probe": nodetest.Image("person ann"), "limit": 2}
		for i, n := range s.Nodes {
			for j := range 20 {
				most, want := 50, http.StatusNotFound
				if j%2 == 0 {
					most, want = 1, http.StatusBadRequest
				}
				if a := own.admin.Call(t, n.URL, http.MethodPatch, "/api/applications/"+list.Applications[0].ID, map[string]any{"searchLimitMax": most, "description": fmt.Sprint(i, j)}); a.Status != http.StatusOK {
					t.Fatalf("node %d: %d %s", i, a.Status, a.Body)
				}
				if a := app.Call(t, n.URL, http.MethodPost, "/v1.1/face/search", search); a.Status != want {
					t.Errorf("node %d, at most %d: %d %s, want %d", i, most, a.Status, a.Body, want)
				}
			}
		}
	})
}
