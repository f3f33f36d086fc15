package sim

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"facet/node/nodetest"
	"facet/node/transport/memnet"
)

const (
	// farPersons is how many persons are registered and searched over far links.
	farPersons = 20
	// farWatch is how long the leaders must stay.
	farWatch = 30 * time.Second
	// cutWrites is how many writes begin when a node is cut off. They reach all shards.
	cutWrites = 16
	// cutMax is the longest time that a write may wait for the successor of a leader that
	// fell silent.
	cutMax = 2500 * time.Millisecond
)

// A cluster whose links are slow from before its founding is founded without a setting. It
// writes and searches, and its leaders stay. A node that restarts serves again.
func TestFarNodesFoundAndServe(t *testing.T) {
	for _, delay := range []time.Duration{100 * time.Millisecond, 250 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			nodetest.Virtual(t, func(t *testing.T) { serveFar(t, delay) })
		})
	}
}

func serveFar(t *testing.T, delay time.Duration) {
	for i := range 3 {
		for j := range 3 {
			if i != j {
				nodetest.Network(t).Set(fmt.Sprintf("10.0.0.%d", i+1), fmt.Sprintf("10.0.0.%d", j+1), memnet.Link{Delay: delay})
			}
		}
	}
	began := time.Now()
	w := newWorld(t)
	t.Logf("founded after %s", time.Since(began))
	var writes []time.Duration
	for n := range farPersons {
		began := time.Now()
		w.call(t, n, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image(fmt.Sprint("person-", n))}, http.StatusCreated)
		writes = append(writes, time.Since(began))
	}
	slices.Sort(writes)
	t.Logf("writes took %s (median), %s at most", writes[len(writes)/2], writes[len(writes)-1])
	time.Sleep(30 * time.Second) // leaders hand over to the members that the map names first
	before := w.terms(0)
	for began := time.Now(); time.Since(began) < farWatch; {
		var searches sync.WaitGroup // together they need more connections than a cluster at rest
		for n := range farPersons {
			searches.Go(func() { w.searchFar(t, n) })
		}
		searches.Wait()
	}
	if after := w.terms(0); !maps.Equal(after, before) {
		t.Errorf("leaders changed within %s: %v before, %v after", farWatch, before, after)
	}
	w.cluster.Stop(1)
	began = time.Now()
	w.cluster.Restart(1)
	w.cluster.WaitReady()
	t.Logf("served again %s after a restart", time.Since(began))
	w.call(t, 1, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image("after a restart")}, http.StatusCreated)
	time.Sleep(farWatch)
	if s := w.cluster.Nodes[0].Node.Status(t.Context()); len(s.Warnings) > 0 {
		t.Errorf("warnings: %v", s.Warnings)
	}
}

// searchFar searches a person.
func (w *world) searchFar(t *testing.T, n int) {
	base := w.cluster.Nodes[n%len(w.cluster.Nodes)].URL
	r, err := w.client.Sign(base, http.MethodPost, "/v1.1/face/search", map[string]any{"probe": nodetest.Image(fmt.Sprint("person-", n))})
	if err != nil {
		t.Error(err)
		return
	}
	a, err := w.client.Send(t.Context(), base, r)
	if err != nil || a.Status != http.StatusOK || !strings.Contains(string(a.Body), `"id"`) {
		t.Errorf("person %d was not found: %v %d %s", n, err, a.Status, a.Body)
	}
}

// call sends a request to the node n, counted round, and checks its status.
func (w *world) call(t *testing.T, n int, method, target string, body any, want int) nodetest.Answer {
	t.Helper()
	a := w.client.Call(t, w.cluster.Nodes[n%len(w.cluster.Nodes)].URL, method, target, body)
	if a.Status != want {
		t.Fatalf("%s %s: %d %s", method, target, a.Status, a.Body)
	}
	return a
}

// A node that falls silent, as when its machine loses its power, closes no connection. Its
// leaderships are taken over within cutMax.
func TestSilentLeadersAreReplacedSoon(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		w := newWorld(t)
		for round := range 6 {
			time.Sleep(20 * time.Second)
			victim := round % 3
			w.cut(victim)
			began := time.Now()
			var writes sync.WaitGroup
			for n := range cutWrites {
				writes.Go(func() {
					w.registerAt(t, (victim+1+n%2)%3, fmt.Sprintf("person-%d-%d", round, n))
					if took := time.Since(began); took > cutMax {
						t.Errorf("round %d: a write took %s", round, took)
					}
				})
			}
			writes.Wait()
			t.Logf("round %d: all writes were acknowledged after %s", round, time.Since(began))
			w.net.Heal()
		}
	})
}

// registerAt registers a person through one node.
func (w *world) registerAt(t *testing.T, node int, person string) {
	base := w.cluster.Nodes[node].URL
	r, err := w.client.Sign(base, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image(person)})
	if err != nil {
		t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if a, err := w.client.Send(ctx, base, r); err != nil || a.Status != http.StatusCreated {
		t.Errorf("register %s: %d %v %s", person, a.Status, err, a.Body)
	}
}
