package node_test

import (
	"net/http"
	"testing"

	"facet/node/nodetest"
)

func TestANodeWithoutMemoryRefusesRegistrationsAndNothingElse(t *testing.T) {
	t.Parallel()
	cluster := nodetest.Start(t, nodetest.Options{Shards: 1})
	client := cluster.Client("tenant", nil)
	gallery(t, client, cluster.Nodes[0].URL, "staff", 100)
	known := enrol(t, client, cluster.Nodes[0].URL, "anna")
	for i, m := range cluster.Nodes {
		cluster.Stop(i)
		m.Config.Memory = 1
		cluster.Restart(i)
		cluster.WaitReady()
	}
	url := cluster.Nodes[1].URL
	a := client.Call(t, url, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image("berta")})
	if a.Status != http.StatusInternalServerError || a.Header.Get("Retry-After") == "" {
		t.Errorf("register: %d %v %s, want 500 with Retry-After", a.Status, a.Header, a.Body)
	}
	a = client.Call(t, url, http.MethodPut, "/v1.1/subjects/"+known.ID, map[string]any{"face": nodetest.Image("anna, older")})
	if a.Status != http.StatusOK {
		t.Errorf("update: %d %s", a.Status, a.Body)
	}
	if got := find(t, client, url, "anna, older"); len(got) != 1 || got[0] != known.ID {
		t.Errorf("search: got %v, want %s", got, known.ID)
	}
	if a := client.Call(t, url, http.MethodDelete, "/v1.1/subjects/"+known.ID, nil); a.Status != http.StatusNoContent {
		t.Errorf("delete: %d %s", a.Status, a.Body)
	}
}
