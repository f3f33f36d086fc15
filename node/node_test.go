package node_test

import (
	"fmt"
	"net/http"
	"testing"

	"facet/node/nodetest"
)

type (
	subject struct{ ID, EventID string }
	results struct {
		Candidates []struct {
			ID     string
			Score  int
			Events []struct {
				ID    string
				Score int
			}
		}
	}
)

// gallery makes a gallery through base and gives the client its key.
func gallery(t *testing.T, c *nodetest.Client, base, name string, size int) {
	t.Helper()
	a := c.Call(t, base, http.MethodPost, "/api/galleries", map[string]any{
		"name": name, "description": "", "size": size, "faceMinimumQualityScore": 0.45,
	})
	var g struct{ APIKey string }
	if a.Decode(t, &g); a.Status != http.StatusOK || len(g.APIKey) != 40 {
		t.Fatalf("create gallery: %d %s", a.Status, a.Body)
	}
	c.APIKey = g.APIKey
}

func TestEveryNodeServesWhatWasWrittenThroughAnother(t *testing.T) {
	cluster := nodetest.Start(t, nodetest.Options{})
	client := cluster.Client("bank", nil)
	gallery(t, client, cluster.Nodes[0].URL, "staff", 100)
	registered := map[string]string{}
	for i := range 30 {
		face := nodetest.Image(fmt.Sprint("person ", i))
		a := client.Call(t, cluster.Nodes[i%3].URL, http.MethodPost, "/v1.1/subjects", map[string]any{"face": face})
		var s subject
		if a.Decode(t, &s); a.Status != http.StatusCreated {
			t.Fatalf("register %d: %d %s", i, a.Status, a.Body)
		}
		registered[face] = s.ID
		a = client.Call(t, cluster.Nodes[(i+1)%3].URL, http.MethodPost, "/v1.1/face/search", map[string]any{"probe": face})
		var r results
		if a.Decode(t, &r); a.Status != http.StatusOK || len(r.Candidates) != 1 || r.Candidates[0].ID != s.ID || r.Candidates[0].Score != 9999 {
			t.Fatalf("search %d right after its registration: %d %s", i, a.Status, a.Body)
		}
	}
	a := client.Call(t, cluster.Nodes[2].URL, http.MethodPost, "/v1.1/face/search", map[string]any{"probe": nodetest.Image("nobody")})
	if a.Status != http.StatusNotFound {
		t.Fatalf("search for a stranger: %d %s", a.Status, a.Body)
	}
	var list struct {
		Subjects []subject
		Total    int
	}
	a = client.Call(t, cluster.Nodes[1].URL, http.MethodGet, "/v1.1/subjects", nil)
	if a.Decode(t, &list); list.Total != len(registered) || len(list.Subjects) != len(registered) {
		t.Fatalf("list: %d %s", a.Status, a.Body)
	}
}
