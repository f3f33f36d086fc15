package sim

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"facet/internal/must"
	"facet/node/nodetest"
)

// A signed request does so on every node.
func TestSignedRequestLivesFiveMinutes(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		w := newWorld(t)
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // signatures have whole seconds
		signedAt := time.Now()
		r, err := w.client.Sign(w.cluster.Nodes[0].URL, http.MethodGet, "/v1.1/tags", nil)
		must.Do(t, err)
		f := func(age time.Duration, status int, message string) {
			t.Helper()
			time.Sleep(time.Until(signedAt.Add(age)))
			for i, n := range w.cluster.Nodes {
				a, err := w.client.SendAs(t.Context(), n.URL, w.cluster.Nodes[0].URL, r)
				if err != nil || a.Status != status || !strings.Contains(string(a.Body), message) {
					t.Errorf("node %d, %v after the signature: %d %s %v, want %d %s", i+1, age, a.Status, a.Body, err, status, message)
				}
			}
		}
		f(0, http.StatusOK, "[]")
		f(4*time.Minute+59*time.Second, http.StatusOK, "[]")
		f(5*time.Minute+time.Second, http.StatusForbidden, "Signature expired")
	})
}
