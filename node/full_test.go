package node_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"facet/node/nodetest"
)

// A node without memory refuses registrations and nothing else.
func TestFullMemoryRefusesOnlyWrites(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("tenant")
		gallery(t, client, cluster.Nodes[0].URL, "staff", 100)
		known := enrol(t, client, cluster.Nodes[0].URL, "anna")
		for i, m := range cluster.Nodes {
			cluster.Stop(i)
			m.Config.Memory = 1
			cluster.Restart(i)
			cluster.WaitReady()
		}
		url := cluster.Nodes[1].URL
		a := client.Call(t, url, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image("berta")})
		if a.Status != http.StatusInternalServerError || a.Header.Get("Retry-After") == "" {
			t.Errorf("register: %d %v %s, want 500 with Retry-After", a.Status, a.Header, a.Body)
		}
		a = client.Call(t, url, http.MethodPut, "/v1.1/subjects/"+known.ID, map[string]any{"face": nodetest.Image("anna, older")})
		if a.Status != http.StatusOK {
			t.Errorf("update: %d %s", a.Status, a.Body)
		}
		if got := find(t, client, url, "anna, older"); len(got) != 1 || got[0] != known.ID {
			t.Errorf("search: got %v, want %s", got, known.ID)
		}
		if a := client.Call(t, url, http.MethodDelete, "/v1.1/subjects/"+known.ID, nil); a.Status != http.StatusNoContent {
			t.Errorf("delete: %d %s", a.Status, a.Body)
		}
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
				if got := find(t, client, m.URL, person); len(got) != 1 || got[0] != want {
					t.Fatalf("search for %s: got %v, want %s", person, got, want)
				}
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
		erased := 0
		for person, id := range known {
			if a := client.Call(t, m.URL, http.MethodDelete, "/v1.1/subjects/"+id, nil); a.Status != http.StatusNoContent {
				t.Fatalf("erase: %d %s", a.Status, a.Body)
			}
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
