package sim

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"facet/node/nodetest"
)

// A node may accept a revoked access key for refusedAfter. askEvery is the pause
// between two requests.
const (
	refusedAfter = 2 * time.Second
	askEvery     = 100 * time.Millisecond
)

// asked is one request for health, which needs only an access key.
type asked struct {
	at     time.Time
	node   int
	status int
}

// sampler requests health from nodes all the time.
type sampler struct {
	mu   sync.Mutex
	seen []asked
	work sync.WaitGroup
	stop context.CancelFunc
}

// sample requests health from each of the nodes, every askEvery, until halt.
func (w *world) sample(nodes ...int) *sampler {
	ctx, stop := context.WithCancel(context.Background())
	s := &sampler{stop: stop}
	for _, node := range nodes {
		s.work.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(askEvery) {
				s.work.Go(func() { s.ask(w, node) })
			}
		})
	}
	return s
}

func (s *sampler) ask(w *world, node int) {
	at := time.Now()
	a, err := w.try(20*time.Second, node, http.MethodGet, "/v1.1/health", nil)
	if err != nil {
		return // the node is not running
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, asked{at, node, a.Status})
}

// halt ends the requests and returns their results.
func (s *sampler) halt() []asked {
	s.stop()
	s.work.Wait()
	return s.seen
}

// revoke revokes the client's access key through node, and returns when that was
// acknowledged.
func (w *world) revoke(node int) time.Time {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	r := w.cluster.Nodes[node].Node.Router()
	tenant, err := r.TenantNamed(ctx, "bank")
	if err != nil {
		w.t.Fatal(err)
	}
	keys, err := r.AccessKeys(ctx, tenant)
	if err != nil || len(keys) != 1 {
		w.t.Fatalf("access keys: %+v, %v", keys, err)
	}
	if err := r.RevokeAccessKey(ctx, tenant, keys[0].ID); err != nil {
		w.t.Fatal(err)
	}
	return time.Now()
}

// judge checks that no node accepted the key after its time. It returns how often
// each status came from node after from.
func judge(t *testing.T, seen []asked, revoked time.Time, node int, from time.Time) map[int]int {
	t.Helper()
	at := map[int]int{}
	for _, a := range seen {
		if a.status == http.StatusOK && a.at.Sub(revoked) > refusedAfter {
			t.Errorf("node %d accepted the key %v after it was revoked", a.node+1, a.at.Sub(revoked))
		}
		if a.node == node && a.at.After(from) {
			at[a.status]++
		}
	}
	return at
}

// Every node refuses it, in every partition.
func TestRevokedKeyIsRefusedInTwoSeconds(t *testing.T) {
	for cut := range 3 { // one of them leads meta
		t.Run(fmt.Sprintf("node %d cut off", cut+1), func(t *testing.T) {
			nodetest.Virtual(t, func(t *testing.T) {
				w := newWorld(t)
				s := w.sample(0, 1, 2)
				time.Sleep(5 * time.Second)
				w.cut(cut)
				cutAt := time.Now()
				revoked := w.revoke((cut + 1) % 3)
				time.Sleep(30 * time.Second)
				w.net.Heal()
				healed := time.Now()
				time.Sleep(20 * time.Second)
				seen := s.halt()
				during := judge(t, seen, revoked, cut, cutAt)
				if during[200] == 0 || during[500] == 0 {
					t.Errorf("the node that was cut off answered %v: it should have accepted the key for a moment, then failed", during)
				}
				if after := judge(t, seen, revoked, cut, healed.Add(10*time.Second)); !refusedOnly(after) {
					t.Errorf("long after the partition the node answers %v, want 403 and 429 only", after)
				}
				if healthy := judge(t, seen, revoked, (cut+1)%3, revoked.Add(refusedAfter)); !refusedOnly(healthy) {
					t.Errorf("a healthy node answers %v, want 403 and 429 only", healthy)
				}
			})
		})
	}
}

// refusedOnly reports whether all answers refuse the key. After 20 of them it is 429.
func refusedOnly(answers map[int]int) bool {
	refused := 0
	for status := range answers {
		if status == 403 || status == 429 {
			refused++
		}
	}
	return answers[403] > 0 && refused == len(answers)
}

// The keys were revoked while the node was away.
func TestReturningNodeRefusesRevokedKeys(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		w := newWorld(t)
		w.cluster.Stop(2)
		revoked := w.revoke(0)
		time.Sleep(time.Minute)
		s := w.sample(2)
		time.Sleep(time.Second)
		w.cluster.Restart(2)
		time.Sleep(20 * time.Second)
		seen := s.halt()
		if at := judge(t, seen, revoked, 2, revoked); at[403] == 0 || at[200] != 0 {
			t.Errorf("the node that came back answered %v", at)
		}
	})
}
