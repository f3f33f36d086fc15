package node_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"facet/node/nodetest"
	"facet/router"
)

// A node that does not know yet that the gallery grew gives the receipt of the new list of shards.
func TestReceiptHasEveryShardOfEpoch(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		g := growAGallery(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		const events = 12
		for i, w := range moved(events) {
			if _, err := g.router.Register(ctx, router.Registration{Access: g.access, Write: w, Image: []byte(fmt.Sprint("person ", i))}); err != nil {
				t.Fatal(err)
			}
		}
		before := map[string]uint64{}
		for _, r := range []*router.Router{g.router, g.late(), g.router, g.late()} {
			found, err := r.Search(ctx, router.SearchQuery{
				Access: g.access, Probe: router.Probe{[]byte("person 1")}, Threshold: 9000, Limit: 10, Receipt: true,
			})
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
		plain, err := g.router.Search(ctx, router.SearchQuery{Access: g.access, Probe: router.Probe{[]byte("person 1")}, Threshold: 9000, Limit: 10})
		if err != nil || plain.Receipt != nil {
			t.Errorf("without the wish: %+v, %v", plain.Receipt, err)
		}
	})
}

// A search shows a new list of shards before anything was enrolled by it. A node that has not heard of the
// list gives no receipt of the one before.
func TestReceiptOfLateNodeIsNoOlder(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		g := growAGallery(t)
		if err := g.router.SyncMeta(t.Context()); err != nil {
			t.Fatal(err)
		}
		var epoch uint32
		for _, r := range []*router.Router{g.router, g.late(), g.late()} {
			found, err := r.Search(t.Context(), router.SearchQuery{
				Access: g.access, Probe: router.Probe{[]byte("person 1")}, Threshold: 9000, Limit: 10, Receipt: true,
			})
			if err != nil || found.Receipt == nil {
				t.Fatalf("got %+v, %v", found, err)
			}
			if found.Receipt.Epoch < epoch || found.Receipt.Epoch < 2 {
				t.Errorf("a receipt of epoch %d after one of %d", found.Receipt.Epoch, epoch)
			}
			epoch = found.Receipt.Epoch
		}
	})
}
