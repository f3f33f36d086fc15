package sim

import (
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
	farWatch = 15 * time.Second
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
		w.call(n, http.MethodPost, "/v1.1/subjects", face(fmt.Sprint("person-", n)), http.StatusCreated)
		writes = append(writes, time.Since(began))
	}
	slices.Sort(writes)
	t.Logf("writes took %s (median), %s at most", writes[len(writes)/2], writes[len(writes)-1])
	time.Sleep(30 * time.Second) // leaders hand over to the members that the map names first
	before := w.terms(0)
	for began := time.Now(); time.Since(began) < farWatch; {
		var searches sync.WaitGroup // together they need more connections than a cluster at rest
		for n := range farPersons {
			searches.Go(func() {
				a, err := w.search(n, fmt.Sprint("person-", n))
				if err != nil || a.Status != http.StatusOK || !strings.Contains(string(a.Body), `"id"`) {
					t.Errorf("person %d was not found: %v %d %s", n, err, a.Status, a.Body)
				}
			})
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
	w.call(1, http.MethodPost, "/v1.1/subjects", face("after a restart"), http.StatusCreated)
	time.Sleep(farWatch)
	if s := w.cluster.Nodes[0].Node.Status(t.Context()); len(s.Warnings) > 0 {
		t.Errorf("warnings: %v", s.Warnings)
	}
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
					a, err := w.try(30*time.Second, victim+1+n%2, http.MethodPost, "/v1.1/subjects", face(fmt.Sprintf("person-%d-%d", round, n)))
					if err != nil || a.Status != http.StatusCreated {
						t.Errorf("register: %d %v %s", a.Status, err, a.Body)
					}
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
