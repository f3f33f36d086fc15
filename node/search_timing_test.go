package node_test

import (
	"encoding/binary"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/must"
	"facet/internal/settings"
	"facet/node/nodetest"
	"facet/router"
	"facet/shard"
)

// BenchmarkSearchMillion searches a million templates on three nodes of this process
// with a probe whose extraction costs nothing: through a router, and over HTTPS with
// signature and JSON. x-shards is the ratio to the searches of the shards alone, one
// after the other on this machine's cores; the shard's own benchmark has the ratio of
// that to the kernel.
func BenchmarkSearchMillion(b *testing.B) {
	const shards, each = 4, 250_000
	cluster := nodetest.Start(b, nodetest.Options{Shards: shards, SlotsPerShard: each})
	client, tenant := cluster.ClientOf("bench")
	first := cluster.Nodes[0]
	g, err := first.Node.Router().CreateGallery(b.Context(), tenant, router.Write{Operation: id.Operation{1}}, router.NewGallery{
		Gallery: settings.Gallery{Name: "bench", Size: shards * each}, MinimumQuality: .45,
	})
	must.Do(b, err)
	client.APIKey = g.Applications[0].APIKey
	for try := 0; err != nil || try == 0; try++ { // its replica of meta may lag
		if _, _, err = first.Node.DataKey(g.ID); err != nil && try == 100 {
			b.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	fillShards(b, cluster, g.ID, shards, each)

	search := router.SearchQuery{
		Access: router.Access{Tenant: tenant, Application: g.Applications[0].ID, Gallery: g.ID},
		Probe:  router.Probe{[]byte("a stranger")}, Threshold: 7000, Limit: 10,
	}
	key, generation, err := first.Node.DataKey(g.ID)
	must.Do(b, err)
	faces, err := nodetest.HashExtractor{}.Extract(b.Context(), search.Probe[0])
	must.Do(b, err)
	ways := []struct {
		name string
		run  func()
	}{
		{"shards", func() {
			for n := range id.Shard(shards) {
				s, _ := first.Node.ShardHere(n + 1)
				q := shard.Query{Probe: faces[0].Template, Threshold: 7000, Limit: 10}
				if _, err := s.Search(b.Context(), g.ID, generation, key, q); err != nil {
					b.Fatal(err)
				}
			}
		}},
		{"router", func() {
			if _, err := first.Node.Router().Search(b.Context(), search); err != nil {
				b.Fatal(err)
			}
		}},
		{"https", func() {
			a := client.Call(b, first.URL, http.MethodPost, "/v1.1/face/search", map[string]any{"probe": nodetest.Image("a stranger")})
			if a.Status != http.StatusNotFound {
				b.Fatalf("search: %d %s", a.Status, a.Body)
			}
		}},
	}
	times := make([][]time.Duration, len(ways))
	for b.Loop() {
		for i, w := range ways { // in turn, so that all meet the same machine
			begin := time.Now()
			w.run()
			times[i] = append(times[i], time.Since(begin))
		}
	}
	b.ReportMetric(0, "ns/op")
	var alone float64
	for i, w := range ways {
		slices.Sort(times[i])
		median := times[i][len(times[i])/2].Seconds()
		b.ReportMetric(median*1e3, w.name+"-ms")
		if i == 0 {
			alone = median
		} else {
			b.ReportMetric(median/alone, w.name+"-x-shards")
		}
	}
}

// fillShards puts events into all replicas directly, past the log: a registration of
// each would take hours.
func fillShards(b *testing.B, cluster *nodetest.Cluster, gallery id.Gallery, shards, each int) {
	b.Helper()
	key, generation, err := cluster.Nodes[0].Node.DataKey(gallery)
	must.Do(b, err)
	var work sync.WaitGroup
	for n := range shards {
		work.Go(func() {
			var here []*shard.Shard
			for _, m := range cluster.Nodes {
				s, _ := m.Node.ShardHere(id.Shard(n + 1))
				if err := s.Grant(shard.Grant{Gallery: gallery, Generation: generation, Total: uint32(each)}); err != nil {
					b.Error(err)
					return
				}
				here = append(here, s)
			}
			for i := range each {
				e := shard.Event{Gallery: gallery, Generation: generation, Time: int64(i)}
				e.Subject.UUID, e.Event.UUID = [16]byte{1, byte(n)}, [16]byte{2, byte(n)}
				binary.BigEndian.PutUint32(e.Subject.UUID[12:], uint32(i))
				binary.BigEndian.PutUint32(e.Event.UUID[12:], uint32(i))
				faces, err := nodetest.HashExtractor{}.Extract(b.Context(), []byte(strconv.Itoa(n*each+i)))
				if err != nil {
					b.Error(err)
					return
				}
				face := engine.Face{Template: faces[0].Template, Model: faces[0].Model}
				e.Sealed = shard.SealFace(key, shard.FaceRef{Gallery: gallery, Generation: generation, Subject: e.Subject, Event: e.Event}, face)
				for _, s := range here {
					if err := s.Put(e, shard.FreeSlots); err != nil {
						b.Error(err)
						return
					}
				}
			}
		})
	}
	work.Wait()
	for range 600 { // the nodes open them by themselves
		if !cold(cluster, shards) {
			runtime.GC()
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	b.Fatal("templates are not open")
}

func cold(cluster *nodetest.Cluster, shards int) bool {
	for _, m := range cluster.Nodes {
		for n := range shards {
			if s, here := m.Node.ShardHere(id.Shard(n + 1)); here && len(s.Cold()) > 0 {
				return true
			}
		}
	}
	return false
}
