package lists

import (
	"fmt"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/router"
	"facet/router/cluster"
	"facet/shard"
)

// BenchmarkPageAfterCursor reads the first page of a gallery and the page behind a
// million events in turn, by cursors, and reports the ratio of their times. A page has
// 1,000 entries.
func BenchmarkPageAfterCursor(b *testing.B) {
	for _, shards := range []int{1, 20} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			const depth = 1_000_000
			each := depth/shards + router.ListLengthMax
			all, g := books{}, cluster.Gallery{Gallery: cursorGallery}
			for s := id.Shard(1); int(s) <= shards; s++ {
				g.ShardIDs, all[s] = append(g.ShardIDs, s), newBook(b, each)
				for i := range each {
					e := shard.Event{
						Gallery: cursorGallery.ID, Generation: 1, Time: 1_700_000_000_000 + int64(i)*37 + int64(s), Sealed: []byte{1},
						Subject: id.Subject{UUID: id.UUID{byte(s), byte(i >> 16), byte(i >> 8), byte(i)}},
						Event:   id.Event{UUID: id.UUID{byte(s), byte(i >> 16), byte(i >> 8), byte(i)}},
					}
					must.Do(b, all[s].Put(e, shard.FreeSlots))
				}
			}
			r := newNode(all)
			last := depth / shards // the place of the millionth event, on the last shard
			deep := cursor{router.Ascending, id.Shard(shards), shard.Position{Time: 1_700_000_000_000 + int64(last-1)*37 + int64(shards), Sequence: uint64(last)}}
			record, _ := r.cluster.Groups.Meta().Cluster()
			page := func(after string) time.Duration {
				begin := time.Now()
				if got, err := r.page(b.Context(), g, router.Page{Length: router.ListLengthMax, After: after}); err != nil || len(got.Entries) != router.ListLengthMax {
					b.Fatalf("page after %q: %d entries, %v", after, len(got.Entries), err)
				}
				return time.Since(begin)
			}
			var first, far time.Duration
			for b.Loop() {
				first += page("")
				far += page(deep.text(record.ID, cursorGallery))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(first.Seconds()*1e3/float64(b.N), "first-ms")
			b.ReportMetric(far.Seconds()*1e3/float64(b.N), "far-ms")
			b.ReportMetric(float64(far)/float64(first), "x-first")
		})
	}
}
