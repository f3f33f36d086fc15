package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/node/nodetest"
)

// candidatesOf returns the subjects that a search with a face finds.
func (w *world) candidatesOf(n int, face string) []string {
	var r struct{ Candidates []struct{ ID string } }
	a := w.insist(n, http.MethodPost, "/v1.1/face/search", map[string]any{"probe": nodetest.Image(face), "threshold": 9000})
	if err := json.Unmarshal(a.Body, &r); err != nil {
		w.t.Errorf("search for %s: %d %s", face, a.Status, a.Body)
	}
	var ids []string
	for _, c := range r.Candidates {
		ids = append(ids, c.ID)
	}
	return ids
}

// merge sends one merge until a node answers.
func (w *world) merge(n int, target, source string) {
	a := w.insist(n, http.MethodPost, "/v1.1/subjects/"+target+"/merge", map[string]any{"source": source}, keyed("merge "+source))
	if a.Status != http.StatusOK {
		w.t.Errorf("merge of %s into %s: %d %s", source, target, a.Status, a.Body)
	}
}

// A merge ends, with every event under the target, while one node after the other, with its
// leaderships, is cut off, and while the source gets further events. No search misses a face.
func TestMergeSurvivesLostLeader(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		const pairs, faces = 3, 3
		w := newWorldOf(t, nodetest.Options{}, 200_000) // on four shards
		w.waitLevel()
		enrol := func(n int, target, face string) string {
			var s struct{ ID string }
			a := w.insist(n, http.MethodPost, target, map[string]any{"face": nodetest.Image(face)})
			if err := json.Unmarshal(a.Body, &s); err != nil || a.Status != http.StatusCreated {
				t.Fatalf("register %s: %d %s", face, a.Status, a.Body)
			}
			return s.ID
		}
		face := func(pair, n int) string { return fmt.Sprintf("pair %d, face %d", pair, n) }
		var stays, goes [pairs]string
		var late [pairs][]string
		for p := range pairs {
			stays[p] = enrol(p, "/v1.1/subjects", fmt.Sprint("stays ", p))
			goes[p] = enrol(p, "/v1.1/subjects", face(p, 0))
			for n := 1; n < faces; n++ {
				enrol(n, "/v1.1/subjects/"+goes[p]+"/events", face(p, n))
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		var searches sync.WaitGroup
		var current atomic.Int32 // pair
		for worker := range 3 {
			searches.Go(func() {
				for n := worker; ctx.Err() == nil; n++ {
					p := int(current.Load())
					if got := w.candidatesOf(n, face(p, n%faces)); !slices.Contains(got, goes[p]) && !slices.Contains(got, stays[p]) {
						t.Errorf("face %d of pair %d is under %v", n%faces, p, got)
					}
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		for p := range pairs {
			var work sync.WaitGroup
			current.Store(int32(p))
			work.Go(func() { w.merge(p, stays[p], goes[p]) })
			work.Go(func() { // until the source is gone
				for n := range 8 {
					face := fmt.Sprintf("pair %d, late face %d", p, n)
					a := w.insist(n, http.MethodPost, "/v1.1/subjects/"+goes[p]+"/events", map[string]any{"face": nodetest.Image(face)})
					if a.Status == http.StatusCreated {
						late[p] = append(late[p], face)
					}
					time.Sleep(900 * time.Millisecond)
				}
			})
			time.Sleep(time.Duration(p) * 7 * time.Millisecond)
			w.cut(p)
			time.Sleep(5 * time.Second)
			w.net.Heal()
			work.Wait()
			time.Sleep(3 * time.Second)
		}
		stop()
		searches.Wait()
		for p := range pairs {
			var list struct{ Events []struct{ ID string } }
			a := w.insist(p, http.MethodGet, "/v1.1/subjects/"+stays[p]+"/events", nil)
			if err := json.Unmarshal(a.Body, &list); err != nil || len(list.Events) < 1+faces+len(late[p]) {
				t.Errorf("pair %d has %d events, want %d or more", p, len(list.Events), 1+faces+len(late[p]))
			}
			if a := w.insist(p, http.MethodGet, "/v1.1/subjects/"+goes[p]+"/events", nil); a.Status != http.StatusNotFound {
				t.Errorf("source %d: %d %s", p, a.Status, a.Body)
			}
			t.Logf("pair %d got %d events while it was merged", p, len(late[p]))
			for n := range faces {
				late[p] = append(late[p], face(p, n))
			}
			for n, face := range late[p] {
				if got := w.candidatesOf(n, face); !slices.Equal(got, []string{stays[p]}) {
					t.Errorf("%s is under %v", face, got)
				}
			}
		}
	})
}
