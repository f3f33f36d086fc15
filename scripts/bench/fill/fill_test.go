package fill_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/datadir"
	"facet/node/nodetest"
	"facet/scripts/bench/fill"
)

const (
	events     = 200
	searchPath = "/v1.1/face/search"
)

// TestNodeFindsFilledEvents: with three nodes, four shards and a gallery
// that was filled while no node ran, every node finds the registered face in each shard,
// and nothing where nothing is.
func TestNodeFindsFilledEvents(t *testing.T) {
	c := nodetest.Start(t, nodetest.Options{SlotsPerShard: events / 4})
	client := c.Client("bench")
	a := client.Call(t, c.Nodes[0].URL, http.MethodPost, "/api/galleries", map[string]any{
		"name": "bench", "description": "", "size": events + 100, "faceMinimumQualityScore": .45,
	})
	var gallery struct{ APIKey string }
	a.Decode(t, &gallery)
	client.APIKey = gallery.APIKey
	a = client.Call(t, c.Nodes[0].URL, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image("person")})
	var subject struct {
		ID     string
		Events []struct{ ID string }
		Event  string `json:"eventId"`
	}
	a.Decode(t, &subject)
	if subject.Event == "" && len(subject.Events) > 0 {
		subject.Event = subject.Events[0].ID
	}
	g := fill.Gallery{Name: "bench", ClusterKey: c.Nodes[0].Config.ClusterKeyFile, Subject: id.Subject{UUID: parse(t, subject.ID)}, Event: id.Event{UUID: parse(t, subject.Event)}}
	for i, n := range c.Nodes {
		who, err := datadir.Identify(n.Config.Dir)
		must.Do(t, err)
		g.Nodes = append(g.Nodes, fill.Node{ID: who, Dir: n.Config.Dir})
		c.Stop(i)
	}
	filled, err := fill.Fill(t.Context(), g, events)
	must.Do(t, err)
	for i := range c.Nodes {
		c.Restart(i)
	}
	c.WaitReady()

	want := []string{subject.ID}
	rows := 0
	for _, p := range filled.Shards {
		want = append(want, p.Planted.String())
		for range filled.Rows(p, nil) {
			rows++
		}
	}
	if len(filled.Shards) != 4 || rows != events-1 {
		t.Errorf("%d shards with %d events that were put there, want 4 with %d", len(filled.Shards), rows, events-1)
	}
	for _, n := range c.Nodes {
		found := search(t, client, n.URL, "person")
		for _, s := range want {
			if !strings.Contains(found, s) {
				t.Errorf("%s does not find subject %s: %s", n.URL, s, found)
			}
		}
		if found := search(t, client, n.URL, "stranger"); !strings.Contains(found, `"candidates":[]`) {
			t.Errorf("%s finds a stranger: %s", n.URL, found)
		}
	}
}

// search asks until the node answers: it opens what it has after its start.
func search(t *testing.T, c *nodetest.Client, url, who string) string {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		a := c.Call(t, url, http.MethodPost, searchPath, map[string]any{"probe": nodetest.Image(who)})
		if a.Status == http.StatusOK || a.Status == http.StatusNotFound {
			var compact json.RawMessage
			a.Decode(t, &compact)
			return strings.ReplaceAll(strings.ReplaceAll(string(compact), " ", ""), "\n", "")
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("%s answers %d %s", url, a.Status, a.Body)
		}
	}
}

func parse(t *testing.T, text string) id.UUID {
	t.Helper()
	u, err := id.Parse(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return u
}
