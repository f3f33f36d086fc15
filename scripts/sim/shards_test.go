package sim

import (
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

// search searches for a person through a node.
func (w *world) search(through int, person string) (nodetest.Answer, error) {
	return w.try(patience, through, http.MethodPost, "/v1.1/face/search", map[string]any{"probe": nodetest.Image(person)})
}

// enrol registers a person through a node and returns the shard of the subject.
func (w *world) enrol(through int, person string) id.Shard {
	w.t.Helper()
	return w.shardOf(w.call(through, http.MethodPost, "/v1.1/subjects", face(person), http.StatusCreated))
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
		for n := range 12 {
			w.enrol(n, fmt.Sprint("person ", n))
		}
		for cut := range w.cluster.Nodes {
			if a, err := w.search(cut, "person 1"); err != nil || !strings.Contains(string(a.Body), `"candidates":[{`) {
				t.Fatalf("node %d: %d %s, %v", cut+1, a.Status, a.Body, err)
			}
			w.cut(cut)
			began := time.Now()
			if a, err := w.search(cut, "person 1"); err != nil || a.Status < http.StatusInternalServerError {
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
			in := w.as(g.APIKey)
			old := in.enrol(meta+1, name)
			leads := w.leader(old)
			if leads == meta {
				continue // otherwise the node would not serve the list
			}
			deaf := 3 - meta - leads
			if a, err := in.search(deaf, name); err != nil || a.Status != http.StatusOK {
				t.Fatalf("before: %d %s, %v", a.Status, a.Body, err)
			}
			w.sever(meta, deaf)
			began := time.Now()
			w.as("").call(leads, http.MethodPatch, "/api/galleries/"+g.ID, map[string]any{"size": 2 * size}, http.StatusOK)
			person := ""
			for i := 0; person == "" && time.Since(began) < trusted; i++ { // its shards learn of it one by one
				if p := fmt.Sprint(name, " ", i); in.enrol(leads, p) != old {
					person = p
				}
				time.Sleep(10 * time.Millisecond)
			}
			if person == "" {
				t.Errorf("the gallery has not grown within %s", trusted)
				break
			}
			tried++
			if a, err := in.search(deaf, person); err == nil && a.Status < http.StatusInternalServerError &&
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

// sever cuts the link between two nodes.
func (w *world) sever(a, b int) {
	one, two := w.cluster.Nodes[a].Host, w.cluster.Nodes[b].Host
	w.net.Set(one, two, memnet.Link{Cut: true})
	w.net.Set(two, one, memnet.Link{Cut: true})
}
