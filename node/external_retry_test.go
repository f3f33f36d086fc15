package node_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"facet/node/nodetest"
	"facet/node/sigv4"
)

// A retry of a rename finds its outcome by the old external id, also when another subject has
// that id by then.
func TestRetriedRenameGetsFirstAnswer(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		e := startExternals(t, nodetest.Options{})
		url, c := e.cluster.Nodes[0].URL, e.client
		register := func(person string) string {
			body := face(person)
			body["externalId"] = "old"
			var s subject
			expect(t, c, http.StatusCreated, url, http.MethodPost, "/v1.1/subjects", body).Decode(t, &s)
			return s.ID
		}
		was := register("a person")
		renamed, key := face("a person"), sigv4.Header{Name: "idempotency-key", Value: "rename"}
		renamed["externalId"] = "new"
		rename := func(node int) (int, string) {
			var s subject
			a := c.Call(t, e.cluster.Nodes[node].URL, http.MethodPut, "/v1.1/subjects/externalId:old", renamed, key)
			if a.Status == http.StatusOK {
				a.Decode(t, &s)
			}
			return a.Status, s.ID
		}
		for try := range 3 {
			if status, got := rename(try); status != http.StatusOK || got != was {
				t.Errorf("try %d: %d, subject %q, want %s", try, status, got, was)
			}
		}
		other := register("another person")
		if status, got := rename(1); status != http.StatusOK || got != was {
			t.Errorf("with another subject of the old id: %d, subject %q, want %s", status, got, was)
		}
		if found := find(t, c, url, "another person"); !slices.Equal(found, []string{other}) {
			t.Errorf("the other subject is found as %v", found)
		}
	})
}

// All matches have the notes that the candidates of a search have.
func TestMatchesShowNotes(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		e := startExternals(t, nodetest.Options{})
		body := face("a person")
		body["externalId"], body["userData"] = "staff/7", map[string]any{"door": 3}
		url := e.cluster.Nodes[0].URL
		expect(t, e.client, http.StatusCreated, url, http.MethodPost, "/v1.1/subjects", body)
		enrol(t, e.client, url, "somebody else")
		for person, noted := range map[string]bool{"a person": true, "somebody else": false} {
			for _, path := range []string{"search", "matches"} {
				a := expect(t, e.client, http.StatusOK, url, http.MethodPost, "/v1.1/face/"+path, probe(person))
				text := string(a.Body)
				if got := strings.Contains(text, `"externalId":"staff/7"`) && strings.Contains(text, `"userData":{"door":3}`); got != noted {
					t.Errorf("%s of %s: notes %v, want %v: %s", path, person, got, noted, text)
				}
			}
		}
	})
}
