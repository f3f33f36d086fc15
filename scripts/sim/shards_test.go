package sim

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/node/nodetest"
	"facet/node/transport/memnet"
	"facet/node/wire"
)

const (
	// patience is longer than the deadline of a router's request.
	patience = time.Minute
	// trusted is shorter than the time for which a router trusts its copy of meta's
	// state.
	trusted = time.Second
)

// search searches for a person in a gallery, through a node.
func (w *world) search(apiKey string, through int, person string) (nodetest.Answer, error) {
	w.t.Helper()
	client := *w.client
	client.APIKey = apiKey
	base := w.cluster.Nodes[through].URL
	r, err := client.Sign(base, http.MethodPost, "/v1.1/face/search", map[string]any{"probe": nodetest.Image(person)})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	return client.Send(ctx, base, r)
}

// enrol registers a person through a node and returns the shard of the subject.
func (w *world) enrol(apiKey string, through int, person string) id.Shard {
	w.t.Helper()
	client := *w.client
	client.APIKey = apiKey
	a := client.Call(w.t, w.cluster.Nodes[through].URL, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image(person)})
	var s struct{ ID string }
	if a.Decode(w.t, &s); a.Status != http.StatusCreated {
		w.t.Fatalf("enrol %s: %d %s", person, a.Status, a.Body)
	}
	u, err := id.Parse(s.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return u.Shard()
}

// leader returns the index of the node that leads a group.
func (w *world) leader(group id.Shard) int {
	w.t.Helper()
	for range 100 {
		for _, m := range w.cluster.Nodes[0].Node.Status(w.t.Context()).Nodes {
			for _, g := range m.Groups {
				if g.Group == group && g.Role == "leader" {
					return w.indexOf(m)
				}
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Fatalf("group %d has no leader", group)
	return 0
}

func (w *world) indexOf(m wire.Member) int {
	for i, n := range w.cluster.Nodes {
		if n.Node.ID() == m.ID {
			return i
		}
	}
	w.t.Fatalf("node %s is none of the cluster", m.ID)
	return 0
}

// The test cuts each node off and searches through it at once, while it still
// trusts its copy of the galleries. The answer is an error and never a part of the
// gallery.
func TestSearchThatMissesAShardFails(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		w := newWorld(t)
		key := w.client.APIKey
		for n := range 12 {
			w.enrol(key, n%3, fmt.Sprint("person ", n))
		}
		for cut := range w.cluster.Nodes {
			if a, err := w.search(key, cut, "person 1"); err != nil || !strings.Contains(string(a.Body), `"candidates":[{`) {
				t.Fatalf("node %d: %d %s, %v", cut+1, a.Status, a.Body, err)
			}
			w.cut(cut)
			began := time.Now()
			if a, err := w.search(key, cut, "person 1"); err != nil || a.Status < http.StatusInternalServerError {
				t.Errorf("node %d, cut off, answers %d %s, %v", cut+1, a.Status, a.Body, err)
			} else if took := time.Since(began); took < trusted {
				t.Errorf("node %d, cut off, gave up after %s: it asked no shard", cut+1, took)
			}
			w.net.Heal()
			time.Sleep(15 * time.Second)
		}
	})
}

// The test lets a gallery grow. One node can't reach meta's leader and does not
// learn of it, but reaches all shards that it knows.
func TestSearchByAnOldListOfShardsFails(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		const size = 500
		w := newWorldOf(t, nodetest.Options{SlotsPerShard: size}, size)
		meta := w.leader(id.Meta)
		tried := 0
		for n := 0; n < 20 && tried < 3; n++ {
			name := fmt.Sprint("growing ", n)
			g := w.found((meta+1)%3, name, size)
			old := w.enrol(g.APIKey, (meta+1)%3, name)
			leads := w.leader(old)
			if leads == meta {
				continue // otherwise the node would not serve the list
			}
			deaf := 3 - meta - leads
			if a, err := w.search(g.APIKey, deaf, name); err != nil || a.Status != http.StatusOK {
				t.Fatalf("before: %d %s, %v", a.Status, a.Body, err)
			}
			w.sever(meta, deaf)
			began := time.Now()
			w.grow(leads, g.ID, 2*size)
			person := ""
			for i := 0; person == "" && time.Since(began) < trusted; i++ { // its shards learn of it one by one
				if p := fmt.Sprint(name, " ", i); w.enrol(g.APIKey, leads, p) != old {
					person = p
				}
				time.Sleep(10 * time.Millisecond)
			}
			if person == "" {
				t.Errorf("the gallery has not grown within %s", trusted)
				break
			}
			tried++
			if a, err := w.search(g.APIKey, deaf, person); err == nil && a.Status < http.StatusInternalServerError &&
				!strings.Contains(string(a.Body), `"candidates":[{`) {
				t.Errorf("a node that does not know of the new shard answers %d %s", a.Status, a.Body)
			}
			w.net.Heal()
			time.Sleep(15 * time.Second)
			meta = w.leader(id.Meta)
		}
		if tried == 0 {
			t.Error("meta's leader led every shard")
		}
	})
}

// founded is a created gallery.
type founded struct{ ID, APIKey string }

// found creates a gallery through a node.
func (w *world) found(through int, name string, size int) (g founded) {
	w.t.Helper()
	client := *w.client
	client.APIKey = ""
	a := client.Call(w.t, w.cluster.Nodes[through].URL, http.MethodPost, "/api/galleries", map[string]any{
		"name": name, "description": "", "size": size, "faceMinimumQualityScore": 0.45,
	})
	if a.Decode(w.t, &g); a.Status != http.StatusOK {
		w.t.Fatalf("create gallery: %d %s", a.Status, a.Body)
	}
	return g
}

// grow enlarges a gallery through a node.
func (w *world) grow(through int, gallery string, size int) {
	w.t.Helper()
	client := *w.client
	client.APIKey = ""
	if a := client.Call(w.t, w.cluster.Nodes[through].URL, http.MethodPatch, "/api/galleries/"+gallery, map[string]any{"size": size}); a.Status != http.StatusOK {
		w.t.Fatalf("let a gallery grow: %d %s", a.Status, a.Body)
	}
}

// sever cuts the link between two nodes.
func (w *world) sever(a, b int) {
	one, two := w.cluster.Nodes[a].Host, w.cluster.Nodes[b].Host
	w.net.Set(one, two, memnet.Link{Cut: true})
	w.net.Set(two, one, memnet.Link{Cut: true})
}
