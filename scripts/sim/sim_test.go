package sim

import (
	"context"
	"net/http"
	"testing"
	"time"

	"facet/internal/id"
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
	w.client.APIKey = w.found(0, "staff", size).APIKey
	return w
}

// founded is a created gallery.
type founded struct{ ID, APIKey string }

// found creates a gallery through a node.
func (w *world) found(through int, name string, size int) (g founded) {
	w.t.Helper()
	body := map[string]any{"name": name, "description": "", "size": size, "faceMinimumQualityScore": 0.45}
	w.as("").call(through, http.MethodPost, "/api/galleries", body, http.StatusOK).Decode(w.t, &g)
	return g
}

// as returns the world for a client with another API key.
func (w *world) as(apiKey string) *world {
	other, client := *w, *w.client
	client.APIKey = apiKey
	other.client = &client
	return &other
}

// try sends a request to the node n, counted round, and gives up after a time.
func (w *world) try(patience time.Duration, n int, method, target string, body any, headers ...sigv4.Header) (nodetest.Answer, error) {
	base := w.cluster.Nodes[n%len(w.cluster.Nodes)].URL
	r, err := w.client.Sign(base, method, target, body, headers...)
	if err != nil {
		return nodetest.Answer{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), patience)
	defer cancel()
	return w.client.Send(ctx, base, r)
}

// insist tries a request on the nodes in turn, from node n on, until one answers with another status than 500 and 429.
func (w *world) insist(n int, method, target string, body any, headers ...sigv4.Header) nodetest.Answer {
	for ; ; n++ {
		a, err := w.try(8*time.Second, n, method, target, body, headers...)
		if err == nil && a.Status != http.StatusInternalServerError && a.Status != http.StatusTooManyRequests {
			return a
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// call sends a request to the node n, counted round, and demands a status.
func (w *world) call(n int, method, target string, body any, want int) nodetest.Answer {
	w.t.Helper()
	a := w.client.Call(w.t, w.cluster.Nodes[n%len(w.cluster.Nodes)].URL, method, target, body)
	if a.Status != want {
		w.t.Fatalf("%s %s: %d %s", method, target, a.Status, a.Body)
	}
	return a
}

// keyed is the header of a write that may be sent again.
func keyed(key string) sigv4.Header { return sigv4.Header{Name: "idempotency-key", Value: key} }

func face(person string) map[string]any { return map[string]any{"face": nodetest.Image(person)} }

// shardOf returns the shard of the subject in an answer.
func (w *world) shardOf(a nodetest.Answer) id.Shard {
	w.t.Helper()
	var s struct{ ID string }
	if a.Decode(w.t, &s); a.Status != http.StatusCreated {
		w.t.Fatalf("register: %d %s", a.Status, a.Body)
	}
	u, err := id.Parse(s.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return u.Shard()
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
