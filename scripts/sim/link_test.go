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

	"facet/internal/id"
	"facet/node/nodetest"
	"facet/node/transport/memnet"
	"facet/node/wire"
)

const (
	// bridgedAfter is how long after a link is cut each request must succeed.
	bridgedAfter = 3 * time.Second
	// settled is how long a new cluster takes to spread its leaderships.
	settled = 40 * time.Second
	// bridgedTry is the longest time of a request once the link is bridged.
	bridgedTry = 2 * time.Second
)

// outcome is the result of one request.
type outcome struct {
	what   string
	at     time.Time
	took   time.Duration
	status int
	err    error
}

// busy sends a write and two reads to a node, one after the other, until ctx ends.
func (w *world) busy(ctx context.Context, node int) (list []outcome) {
	f := func(what, method, target string, body any) {
		at := time.Now()
		a, err := w.try(20*time.Second, node, method, target, body, keyed(fmt.Sprintf("%s-%d-%d", what, node, at.UnixNano())))
		list = append(list, outcome{what, at, time.Since(at), a.Status, err})
	}
	for n := 0; ctx.Err() == nil; n++ {
		person := fmt.Sprintf("person-%d-%d", node, n)
		f("register", http.MethodPost, "/v1.1/subjects", face(person))
		f("search", http.MethodPost, "/v1.1/face/search", map[string]any{"probe": nodetest.Image(person)})
		f("list", http.MethodGet, "/v1.1/subjects", nil)
		time.Sleep(300 * time.Millisecond)
	}
	return list
}

// terms returns the term of each group's leader, and who leads it.
func (w *world) terms(node int) map[id.Shard]string {
	led := map[id.Shard]string{}
	for _, m := range w.cluster.Nodes[node].Node.Status(w.t.Context()).Nodes {
		for _, g := range m.Groups {
			if g.Role == "leader" {
				led[g.Group] = fmt.Sprintf("%s in term %d", m.Name, g.Term)
			}
		}
	}
	return led
}

func warned(s wire.Status, words string) bool {
	return slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, words) })
}

// The link between meta's leader and another node is cut, in both directions or in one. The
// nodes at its ends continue to serve, and no group elects.
func TestCutLinkIsBridged(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		w := newWorld(t)
		time.Sleep(settled)
		for name, f := range map[string]struct{ to, from bool }{
			"both directions": {true, true}, "to the leader": {true, false}, "from the leader": {false, true},
		} {
			nodetest.Step(t, name, func(t *testing.T) { w.bridge(t, f.to, f.from) })
		}
	})
}

func (w *world) bridge(t *testing.T, toLeader, fromLeader bool) {
	before := w.terms(0)
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	lists := make([][]outcome, 3)
	for i := range lists {
		work.Go(func() { lists[i] = w.busy(ctx, i) })
	}
	time.Sleep(2 * time.Second)
	leader := w.leader(id.Meta)
	other, third := (leader+1)%3, (leader+2)%3
	w.net.Set(w.cluster.Nodes[other].Host, w.cluster.Nodes[leader].Host, memnet.Link{Cut: toLeader})
	w.net.Set(w.cluster.Nodes[leader].Host, w.cluster.Nodes[other].Host, memnet.Link{Cut: fromLeader})
	cut := time.Now()
	time.Sleep(10 * time.Second)
	for i, m := range w.cluster.Nodes {
		s := m.Node.Status(t.Context())
		relay := fmt.Sprintf("n%d relays", third+1)
		if len(s.Warnings) != 1 || !warned(s, "the link between nodes n") || !warned(s, relay) {
			t.Errorf("n%d warns %q, want one warning with %q", i+1, s.Warnings, relay)
		}
	}
	w.net.Heal()
	time.Sleep(8 * time.Second)
	stop()
	work.Wait()
	for i, m := range w.cluster.Nodes {
		if s := m.Node.Status(t.Context()); len(s.Warnings) != 0 {
			t.Errorf("n%d warns after the link is whole: %q", i+1, s.Warnings)
		}
		if got := w.terms(i); !maps.Equal(got, before) {
			t.Errorf("n%d sees the leaders %v, before the cut %v", i+1, got, before)
		}
		judgeBridged(t, i, lists[i], cut)
	}
}

// judgeBridged checks that a node answered each request that came bridgedAfter or more after
// the cut.
func judgeBridged(t *testing.T, node int, list []outcome, cut time.Time) {
	t.Helper()
	early, slowest := 0, time.Duration(0)
	for _, o := range list {
		failed := o.err != nil || o.status >= 300
		switch since := o.at.Sub(cut); {
		case since < bridgedAfter && failed:
			early++
		case since >= bridgedAfter && (failed || o.took > bridgedTry):
			t.Errorf("n%d, %s after the cut: %s got %d %v after %s", node+1, since, o.what, o.status, o.err, o.took)
		}
		slowest = max(slowest, o.took)
	}
	if len(list) < 50 {
		t.Errorf("n%d answered only %d requests", node+1, len(list))
	}
	t.Logf("n%d: %d requests, %d failed within %s of the cut; the slowest took %s", node+1, len(list), early, bridgedAfter, slowest)
}

// A node that is cut off from all others is behind no cut link: nobody reaches it.
func TestIsolatedNodeHasNoCutLink(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		w := newWorld(t)
		time.Sleep(settled)
		w.cut(2)
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			for i, m := range w.cluster.Nodes {
				if s := m.Node.Status(t.Context()); warned(s, "the link between") {
					t.Fatalf("n%d warns %q", i+1, s.Warnings)
				}
			}
		}
		w.net.Heal()
	})
}
