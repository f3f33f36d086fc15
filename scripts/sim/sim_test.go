package sim

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"facet/node/nodetest"
	"facet/node/sigv4"
	"facet/node/transport/memnet"
)

// world is a cluster in virtual time and a client of it.
type world struct {
	t       *testing.T
	net     *memnet.Network
	cluster *nodetest.Cluster
	client  *nodetest.Client
}

func newWorld(t *testing.T) *world { return newWorldOf(t, nodetest.Options{}, 10_000) }

// newWorldOf returns a world whose client has a gallery of that size.
func newWorldOf(t *testing.T, o nodetest.Options, size int) *world {
	w := &world{t: t, cluster: nodetest.Start(t, o)}
	w.net, w.client = w.cluster.Network, w.cluster.Client("bank")
	a := w.client.Call(t, w.cluster.Nodes[0].URL, http.MethodPost, "/api/galleries", map[string]any{
		"name": "staff", "description": "", "size": size, "faceMinimumQualityScore": 0.45,
	})
	var g struct{ APIKey string }
	if a.Decode(t, &g); a.Status != http.StatusOK {
		t.Fatalf("create gallery: %d %s", a.Status, a.Body)
	}
	w.client.APIKey = g.APIKey
	return w
}

// cut separates a node from the other nodes; clients still reach it.
func (w *world) cut(i int) {
	host := w.cluster.Nodes[i].Host
	for j, other := range w.cluster.Nodes {
		if j != i {
			w.net.Set(host, other.Host, memnet.Link{Cut: true})
			w.net.Set(other.Host, host, memnet.Link{Cut: true})
		}
	}
}

// enrolled maps each person to the subject id that the clients know.
type enrolled struct {
	mu       sync.Mutex
	subjects map[string]string
	tries    int
	history  []string
}

// register sends a registration to the nodes in turn until one acknowledges it.
// Every node gets the same bytes.
func (w *world) register(ctx context.Context, e *enrolled, worker, n int) {
	person := fmt.Sprintf("person-%d-%d", worker, n)
	for try := 0; ctx.Err() == nil; try++ {
		base := w.cluster.Nodes[(worker+try)%len(w.cluster.Nodes)].URL
		r, err := w.client.Sign(base, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image(person)},
			sigv4.Header{Name: "idempotency-key", Value: person})
		if err != nil {
			w.t.Error(err)
			return
		}
		attempt, cancel := context.WithTimeout(ctx, 8*time.Second)
		a, err := w.client.Send(attempt, base, r)
		cancel()
		e.mu.Lock()
		e.tries++
		e.history = append(e.history, fmt.Sprintf("%s %s: %d %v", time.Now().Format("05.000"), person, a.Status, err))
		e.mu.Unlock()
		if err != nil || a.Status != http.StatusCreated {
			if err == nil && a.Status != http.StatusInternalServerError {
				w.t.Errorf("register %s: %d %s", person, a.Status, a.Body)
				return
			}
			continue
		}
		var s struct{ ID string }
		a.Decode(w.t, &s)
		e.mu.Lock()
		e.subjects[person] = s.ID
		e.mu.Unlock()
		return
	}
}

// check compares the cluster's content with what the clients were told.
func (w *world) check(e *enrolled) {
	w.t.Helper()
	base := w.cluster.Nodes[0].URL
	held := map[string]int{}
	total := 0
	for {
		var page struct {
			Subjects []struct{ ID string }
			Total    int
		}
		w.client.Call(w.t, base, http.MethodGet, fmt.Sprintf("/v1.1/subjects?start=%d", total), nil).Decode(w.t, &page)
		for _, s := range page.Subjects {
			held[s.ID]++
		}
		if total += len(page.Subjects); total >= page.Total || len(page.Subjects) == 0 {
			break
		}
	}
	for person, subject := range e.subjects {
		if held[subject] != 1 {
			w.t.Errorf("%s was acknowledged as %s and is held %d times", person, subject, held[subject])
		}
	}
	if total != len(e.subjects) {
		w.t.Errorf("the gallery holds %d entries for %d persons", total, len(e.subjects))
	}
	if w.t.Failed() {
		for _, line := range e.history {
			w.t.Log(line)
		}
	}
}

// No acknowledged registration is lost or doubled.
func TestPartitionsLoseNoRegistration(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		w := newWorld(t)
		e := &enrolled{subjects: map[string]string{}}
		ctx, stop := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		for worker := range 4 {
			workers.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					w.register(context.WithoutCancel(ctx), e, worker, n)
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		for round := range 4 {
			time.Sleep(3 * time.Second)
			w.cut(round % 3)
			time.Sleep(12 * time.Second)
			w.net.Heal()
		}
		time.Sleep(10 * time.Second)
		stop()
		workers.Wait()
		w.check(e)
		t.Logf("%d persons in %d tries", len(e.subjects), e.tries)
		if len(e.subjects) < 300 {
			t.Errorf("only %d registrations in 70 seconds: the cluster hardly served", len(e.subjects))
		}
	})
}
