package sim

import (
	"net/http"
	"testing"
	"time"

	"facet/node/nodetest"
)

// The nodes' clocks agree and contradict the time that the process reads past them, as the clocks of
// the others contradict a node whose clock is ahead. A merge moves the clock of no shard.
func TestMergeTakesTimeOfNodes(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		w := newWorldOf(t, nodetest.Options{Shards: 1, Off: func(int) time.Duration { return -year }}, 4)
		w.waitLevel()
		time.Sleep(settled)
		enrol := func(path, person string) string {
			var s struct{ ID string }
			w.insist(0, http.MethodPost, path, face(person)).Decode(t, &s)
			return s.ID
		}
		check := func(after string) {
			t.Helper()
			if at, now := w.updated(0), time.Now().Add(-year); now.Sub(at).Abs() > expiredWithin {
				t.Errorf("a write after %s got the time %s, now is %s", after, at, now)
			}
		}
		merge := func(target, source string, want int) {
			t.Helper()
			if a := w.insist(0, http.MethodPost, "/v1.1/subjects/"+target+"/merge", map[string]any{"source": source}); a.Status != want {
				t.Fatalf("merge: %d %s, want %d", a.Status, a.Body, want)
			}
		}
		target, source := enrol("/v1.1/subjects", "stays"), enrol("/v1.1/subjects", "goes")
		enrol("/v1.1/subjects/"+source+"/events", "goes too")
		merge(target, source, http.StatusBadRequest) // only one of two copies has a slot
		later := enrol("/v1.1/subjects", "later")
		check("a merge that was given up")
		w.insist(0, http.MethodDelete, "/v1.1/subjects/"+source, nil)
		merge(target, later, http.StatusOK)
		enrol("/v1.1/subjects", "last")
		check("a merge")
	})
}
