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
	"facet/node"
	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// grown is a gallery that has grown from one shard to four, and a router on another
// node that has not heard of it.
type grown struct {
	access router.Access
	router *router.Router
	// late returns a router of a node that has heard of nothing yet; each hears when it asks.
	late func() *router.Router
}

func growAGallery(t *testing.T) grown {
	t.Helper()
	p, _ := bulkCluster(t, nodetest.Options{SlotsPerShard: 100})
	first, second := p.cluster.Nodes[0].Node, p.cluster.Nodes[1].Node
	c, tenant := p.cluster.ClientOf("bank")
	gallery(t, c, p.url(0), "g", 100)
	waitLevel(t, second, "the level", metafsm.Level, func(n *node.Node) uint32 { return n.Status(t.Context()).Level })
	for _, n := range []*node.Node{first, second} {
		if err := n.Router().SyncMeta(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	access, ok := second.AccessTo(tenant, "g")
	if !ok {
		t.Fatal("the second node does not know the gallery")
	}
	g := grown{access: access, router: first.Router()}
	const routers = 16
	ready := make(chan *router.Router, routers)
	for range routers {
		r, err := second.RouterBehind()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		ready <- r
	}
	g.late = func() *router.Router {
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
	if _, err := first.Router().UpdateGallery(t.Context(), tenant, write(1), access.Gallery, router.GalleryPatch{Size: &size}); err != nil {
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

// Two nodes get the same request for a job; one of them does not know yet that the gallery
// grew.
func TestStaleNodeStartsJobOnlyOnce(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		g := growAGallery(t)
		for i, w := range moved(4) {
			job := router.BulkRegistration{Access: g.access, Write: w, Items: []router.BulkItem{{Filename: "a.jpg"}, {Filename: "b.jpg"}}}
			begin := []func(context.Context, router.BulkRegistration) (id.Batch, error){g.router.BulkRegister, g.late().BulkRegister}
			if i%2 == 1 {
				slices.Reverse(begin) // the one that was begun by the old list is found
			}
			first, err := begin[0](t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			if second, err := begin[1](t.Context(), job); err != nil || second != first {
				t.Errorf("one write began the jobs %v and %v, %v", first, second, err)
			}
		}
	})
}

// A node that does not know yet that a gallery grew finds what lies on its new shards.
func TestStaleNodeFindsSubjectsOnNewShards(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		g := growAGallery(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for i, w := range moved(2) {
			batch, err := g.router.BulkRegister(ctx, router.BulkRegistration{Access: g.access, Write: w, Items: []router.BulkItem{{Filename: "a.jpg"}}})
			if err != nil {
				t.Fatal(err)
			}
			if p, err := g.late().BulkProgress(ctx, g.access, batch, ""); err != nil || len(p.Records) != 1 {
				t.Errorf("a job on a new shard: %+v, %v", p, err)
			}
			face := []byte(fmt.Sprint("person ", i))
			s, err := g.router.Register(ctx, router.Registration{Access: g.access, Write: w, Image: face})
			if err != nil {
				t.Fatal(err)
			}
			f := func(what string, do func(*router.Router) error) {
				t.Helper()
				if err := do(g.late()); err != nil {
					t.Errorf("%s of a subject on a new shard: %v", what, err)
				}
			}
			f("verification", func(r *router.Router) error {
				_, err := r.VerifySubject(ctx, router.SubjectVerification{Access: g.access, Subject: s.Subject, Probe: router.Probe{face}})
				return err
			})
			f("events", func(r *router.Router) error {
				_, err := r.Events(ctx, g.access, s.Subject)
				return err
			})
			f("a further event", func(r *router.Router) error {
				_, err := r.RegisterEvent(ctx, router.Enrolment{Access: g.access, Write: write(uint64(i)), Subject: s.Subject, Image: face})
				return err
			})
			f("update", func(r *router.Router) error {
				_, err := r.UpdateSubject(ctx, router.Enrolment{Access: g.access, Write: write(uint64(10 + i)), Subject: s.Subject, Image: face})
				return err
			})
			f("removal of an event", func(r *router.Router) error {
				return r.UnregisterEvent(ctx, g.access, s.Subject, s.Event, write(uint64(20+i)).Operation)
			})
			f("removal", func(r *router.Router) error {
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
