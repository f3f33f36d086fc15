package node_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/engine"
	"facet/node/nodetest"
)

// slowEngine is HashExtractor with one worker that takes a while for an image, as the
// real one does.
type slowEngine struct {
	nodetest.HashExtractor
	worker chan struct{}
	atOnce *atomic.Int64 // the most images that were handed to it at once
	now    *atomic.Int64
}

const slowImage = 5 * time.Millisecond

func newSlowEngine() slowEngine {
	return slowEngine{worker: make(chan struct{}, 1), atOnce: new(atomic.Int64), now: new(atomic.Int64)}
}

func (e slowEngine) Workers() int { return 1 }

func (e slowEngine) Extract(ctx context.Context, image []byte) ([]engine.Face, error) {
	n := e.now.Add(1)
	defer e.now.Add(-1)
	for most := e.atOnce.Load(); n > most && !e.atOnce.CompareAndSwap(most, n); most = e.atOnce.Load() {
	}
	e.worker <- struct{}{}
	defer func() { <-e.worker }()
	time.Sleep(slowImage)
	return e.HashExtractor.Extract(ctx, image)
}

func (e slowEngine) ExtractLarge(ctx context.Context, image []byte, _ float32) ([]engine.Face, error) {
	return e.Extract(ctx, image)
}

// outcomes counts what clients got.
type outcomes struct{ good, refused, other atomic.Int64 }

func (n *outcomes) count(a nodetest.Answer) {
	retry := a.Header.Get("Retry-After") != ""
	switch {
	case a.Status < 300:
		n.good.Add(1)
	case a.Status == 429 && retry, a.Status == 500 && retry:
		n.refused.Add(1)
	default:
		n.other.Add(1)
	}
}

// TestOverloadedNodeShedsLoad: with far more clients than it can serve, a
// node answers every request with what was asked for or with 429 or 500 and when to come
// back, keeps its queue and the memory for bodies within their bounds, serves another
// tenant all the while, and afterwards everybody as before.
func TestOverloadedNodeShedsLoad(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		slow := newSlowEngine()
		c := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 1, Extractor: slow, Table: nodetest.Table()})
		url := c.Nodes[0].URL
		flooder, other := c.Client("flooder"), c.Client("other")
		gallery(t, flooder, url, "crowd", 10_000)
		gallery(t, other, url, "few", 10_000)
		large := strings.Repeat("x", 100<<10)
		enrol := func(client *nodetest.Client, what string) nodetest.Answer {
			r, err := client.Sign(url, "POST", "/v1.1/subjects", map[string]any{"face": nodetest.Image(what + large)})
			if err == nil {
				var a nodetest.Answer
				if a, err = client.Send(t.Context(), url, r); err == nil {
					return a
				}
			}
			t.Errorf("%s: %v", what, err)
			return nodetest.Answer{}
		}
		const clients, lasts = 50, 2 * time.Second
		var flood, others outcomes
		var work sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		for i := range clients {
			work.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					flood.count(enrol(flooder, fmt.Sprint("flood ", i, " ", n)))
					time.Sleep(4 * slowImage)
				}
			})
		}
		work.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				others.count(enrol(other, fmt.Sprint("other ", n)))
				time.Sleep(slowImage)
			}
		})
		waited := 0.0
		for ctx.Err() == nil {
			s := scrape(t, c.Nodes[0])
			waited = max(waited, s["facet_engine_waiting"])
			if s["facet_engine_waiting"] > s["facet_engine_waiting_limit"] || s["facet_engine_waiting_limit"] != 32 {
				t.Errorf("%v images wait, at most %v may", s["facet_engine_waiting"], s["facet_engine_waiting_limit"])
			}
			if s["facet_bodies_bytes"] > s["facet_bodies_limit_bytes"] {
				t.Errorf("bodies take %v bytes, at most %v may be", s["facet_bodies_bytes"], s["facet_bodies_limit_bytes"])
			}
			time.Sleep(50 * time.Millisecond)
		}
		work.Wait()
		if flood.good.Load() == 0 || flood.refused.Load() == 0 || flood.other.Load() != 0 {
			t.Errorf("the flood: %d served, %d refused, %d answered otherwise", flood.good.Load(), flood.refused.Load(), flood.other.Load())
		}
		if others.good.Load() == 0 || others.refused.Load()+others.other.Load() != 0 {
			t.Errorf("the other tenant: %d served, %d refused, %d answered otherwise; want no refusal",
				others.good.Load(), others.refused.Load(), others.other.Load())
		}
		if slow.atOnce.Load() > 2 || waited == 0 {
			t.Errorf("%d images were with the engine at once, want at most 2; %v waited", slow.atOnce.Load(), waited)
		}
		within(t, 10*time.Second, "the node is at rest again", func() bool {
			s := scrape(t, c.Nodes[0])
			return s["facet_engine_waiting"] == 0 && s["facet_bodies_bytes"] == 0 && s["facet_requests_in_flight"] == 0
		})
		if s := scrape(t, c.Nodes[0]); sum(s, "facet_requests_refused_total", `reason="busy"`) == 0 {
			t.Error("no refusal was counted as busy")
		}
		for n := range 10 {
			if a := enrol(flooder, fmt.Sprint("afterwards ", n)); a.Status != 201 {
				t.Errorf("afterwards: %d %s", a.Status, a.Body)
			}
		}
		t.Logf("served %d, refused %d, another tenant %d", flood.good.Load(), flood.refused.Load(), others.good.Load())
	})
}

// A node that was filled to its memory has room again after erasures.
func TestErasureFreesMemory(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		client, m := cluster.Client("tenant"), cluster.Nodes[0]
		gallery(t, client, m.URL, "staff", 10_000)
		cluster.Stop(0)
		m.Config.Memory = 600 << 10 // 200 events or so
		cluster.Restart(0)
		cluster.WaitReady()
		register := func(name string) nodetest.Answer {
			return client.Call(t, m.URL, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image(name)})
		}
		known := map[string]string{}
		const most = 2000
		fill := func(name string) (refused nodetest.Answer) {
			for i := 0; len(known) < most; i++ {
				if i%8 == 7 {
					time.Sleep(300 * time.Millisecond) // it measures four times a second: this is how far it can go beyond
				}
				person := fmt.Sprintf("%s %d", name, i)
				a := register(person)
				if a.Status != http.StatusCreated {
					return a
				}
				var s subject
				a.Decode(t, &s)
				known[person] = s.ID
			}
			t.Fatalf("%d events are in a node with memory for %d bytes", most, m.Config.Memory)
			return refused
		}
		check := func() {
			t.Helper()
			for person, want := range known {
				isFound(t, client, m.URL, person, want)
			}
		}
		a := fill("early")
		if a.Status != http.StatusInternalServerError || a.Header.Get("Retry-After") == "" || !strings.Contains(string(a.Body), "memory") {
			t.Errorf("beyond the memory: %d %v %s, want 500 with Retry-After and why", a.Status, a.Header, a.Body)
		}
		if used := scrape(t, m)["facet_memory_events_bytes"]; used < 600<<10 || used > 650<<10 || len(known) < 50 {
			t.Errorf("it refuses with %d events, of %v bytes", len(known), used)
		}
		check()
		for person, id := range known {
			expect(t, client, http.StatusOK, m.URL, http.MethodPut, "/v1.1/subjects/"+id, face(person)) // it needs no memory
			break
		}
		erased := 0
		for person, id := range known {
			expect(t, client, http.StatusNoContent, m.URL, http.MethodDelete, "/v1.1/subjects/"+id, nil)
			delete(known, person)
			if erased++; erased == 60 {
				break
			}
		}
		full := len(known)
		late := time.Now().Add(10 * time.Second)
		for a := register("again"); a.Status != http.StatusCreated; a = register("again") {
			if time.Now().After(late) {
				t.Fatalf("after %d erasures: %d %s", erased, a.Status, a.Body)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if fill("late"); len(known) < full+5 {
			t.Errorf("after %d erasures there was room for %d", erased, len(known)-full)
		}
		check()
	})
}
