package node_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/internal/settings"
	"facet/node"
	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/routing"
)

// grown is a gallery that has grown from one shard to four, and a router on another
// node that has not heard of it.
type grown struct {
	access router.Access
	router *routing.Router
	// late returns a router of a node that has heard of nothing yet; each hears when it asks.
	late func() *routing.Router
}

func growAGallery(t *testing.T) grown {
	t.Helper()
	p, _ := bulkCluster(t, nodetest.Options{SlotsPerShard: 100})
	first, second := p.cluster.Nodes[0].Node, p.cluster.Nodes[1].Node
	c, tenant := p.cluster.ClientOf("bank")
	gallery(t, c, p.url(0), "g", 100)
	waitLevel(t, second, "the level", metafsm.Level, func(n *node.Node) uint32 { return n.Status(t.Context()).Level })
	for _, n := range []*node.Node{first, second} {
		must.Do(t, n.Router().SyncMeta(t.Context()))
	}
	access, ok := second.AccessTo(tenant, "g")
	if !ok {
		t.Fatal("the second node does not know the gallery")
	}
	g := grown{access: access, router: first.Router()}
	const routers = 24
	ready := make(chan *routing.Router, routers)
	for range routers {
		r, err := second.RouterBehind()
		must.Do(t, err)
		t.Cleanup(func() { r.Close() })
		ready <- r
	}
	g.late = func() *routing.Router {
		t.Helper()
		select {
		case r := <-ready:
			return r
		default:
			t.Fatal("no router is left that has heard of nothing")
			return nil
		}
	}
	size := 400
	if _, err := first.Router().UpdateGallery(t.Context(), tenant, write(1), access.Gallery, router.GalleryPatch{Change: settings.ChangeTo(settings.Gallery{Size: uint32(size)}, "size")}); err != nil {
		t.Fatal(err)
	}
	return g
}

// write is a keyed write of a number.
func write(n uint64) router.Write {
	var op id.Operation
	random := rand.New(rand.NewPCG(n, 7))
	binary.BigEndian.PutUint64(op[:], random.Uint64())
	binary.BigEndian.PutUint64(op[8:], random.Uint64())
	return router.Write{Operation: op, Request: op, Keyed: true}
}

// moved returns n writes whose shard has changed since the gallery grew.
func moved(n int) (list []router.Write) {
	for i := uint64(100); len(list) < n; i++ {
		if w := write(i); metafsm.Jump(binary.BigEndian.Uint64(w.Operation[:8]), 4) > 0 {
			list = append(list, w)
		}
	}
	return list
}

// A node that does not know yet that a gallery grew finds what lies on its new shards, and starts no job again that
// another node has.
func TestStaleNodeFindsSubjectsOnNewShards(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		g := growAGallery(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for i, w := range moved(4) {
			job := router.BulkRegistration{Access: g.access, Write: w, Items: []router.BulkItem{{Filename: "a.jpg"}, {Filename: "b.jpg"}}}
			begin := []*routing.Router{g.router, g.late()}
			if i%2 == 1 {
				slices.Reverse(begin) // the one that was begun by the old list is found
			}
			first, err := begin[0].BulkRegister(ctx, job)
			must.Do(t, err)
			if second, err := begin[1].BulkRegister(ctx, job); err != nil || second != first {
				t.Errorf("one write began the jobs %v and %v, %v", first, second, err)
			}
		}
		for i, w := range moved(6)[4:] {
			batch, err := g.router.BulkRegister(ctx, router.BulkRegistration{Access: g.access, Write: w, Items: []router.BulkItem{{Filename: "a.jpg"}}})
			must.Do(t, err)
			if p, err := g.late().BulkProgress(ctx, g.access, batch, ""); err != nil || len(p.Records) != 1 {
				t.Errorf("a job on a new shard: %+v, %v", p, err)
			}
			face := []byte(fmt.Sprint("person ", i))
			s, err := g.router.Register(ctx, router.Registration{Access: g.access, Write: w, Image: face})
			must.Do(t, err)
			f := func(what string, do func(*routing.Router) error) {
				t.Helper()
				if err := do(g.late()); err != nil {
					t.Errorf("%s of a subject on a new shard: %v", what, err)
				}
			}
			f("verification", func(r *routing.Router) error {
				_, err := r.VerifySubject(ctx, router.SubjectVerification{Access: g.access, Subject: s.Subject, Probe: router.Probe{face}})
				return err
			})
			f("events", func(r *routing.Router) error {
				_, err := r.Events(ctx, g.access, s.Subject)
				return err
			})
			f("a further event", func(r *routing.Router) error {
				_, err := r.RegisterEvent(ctx, router.Enrolment{Access: g.access, Write: write(uint64(i)), Subject: s.Subject, Image: face})
				return err
			})
			f("update", func(r *routing.Router) error {
				_, err := r.UpdateSubject(ctx, router.Enrolment{Access: g.access, Write: write(uint64(10 + i)), Subject: s.Subject, Image: face})
				return err
			})
			f("removal of an event", func(r *routing.Router) error {
				return r.UnregisterEvent(ctx, g.access, s.Subject, s.Event, write(uint64(20+i)).Operation)
			})
			f("removal", func(r *routing.Router) error {
				_, err := r.Unregister(ctx, g.access, s.Subject, write(uint64(30+i)).Operation)
				return err
			})
		}
		// What lies on no shard at all is told as before.
		var nowhere id.Subject
		if _, err := g.late().Unregister(ctx, g.access, nowhere, write(40).Operation); router.KindOf(err) != router.NotFound {
			t.Errorf("a subject of no shard: %v", err)
		}
	})
}

// A node that does not know yet that the gallery grew gives the receipt of the new list of shards, also before
// anything was enrolled by it.
func TestReceiptHasEveryShardOfEpoch(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		g := growAGallery(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		search := router.SearchQuery{Access: g.access, Probe: router.Probe{[]byte("person 1")}, Threshold: 9000, Limit: 10, Receipt: true}
		must.Do(t, g.router.SyncMeta(ctx))
		var epoch uint32
		for _, r := range []*routing.Router{g.router, g.late(), g.late()} {
			found, err := r.Search(ctx, search)
			if err != nil || found.Receipt == nil || found.Receipt.Epoch < max(epoch, 2) {
				t.Fatalf("got %+v, %v, after a receipt of epoch %d", found, err, epoch)
			}
			epoch = found.Receipt.Epoch
		}
		const events = 12
		for i, w := range moved(events) {
			if _, err := g.router.Register(ctx, router.Registration{Access: g.access, Write: w, Image: []byte(fmt.Sprint("person ", i))}); err != nil {
				t.Fatal(err)
			}
		}
		before := map[string]uint64{}
		for _, r := range []*routing.Router{g.router, g.late(), g.router, g.late()} {
			found, err := r.Search(ctx, search)
			if err != nil || len(found.Candidates) != 1 || found.Receipt == nil {
				t.Fatalf("got %+v, %v", found, err)
			}
			n := 0
			for i, s := range found.Receipt.Shards {
				at := fmt.Sprint(s.Shard)
				if n += s.Searched; s.Shard != found.Receipt.List[i] || s.Searched != s.Active || s.LeftOut != 0 || s.Index < before[at] || s.Index == 0 {
					t.Errorf("shard %d of %v: %+v, before at index %d", i, found.Receipt.List, s, before[at])
				}
				before[at] = s.Index
			}
			if n != events || len(found.Receipt.Shards) != 4 || len(slices.Compact(slices.Sorted(slices.Values(found.Receipt.List)))) != 4 || found.Receipt.Epoch < 2 {
				t.Errorf("%d events of %d: %+v", n, events, found.Receipt)
			}
		}
		search.Receipt = false
		plain, err := g.router.Search(ctx, search)
		if err != nil || plain.Receipt != nil {
			t.Errorf("without the wish: %+v, %v", plain.Receipt, err)
		}
	})
}
