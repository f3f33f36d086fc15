package router

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"facet/engine/score"
	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/shard"
	"facet/shard/kernel"
)

// BenchmarkPage reads page 0 and page 500 of a gallery in turn, and reports the
// ratio of their times. The gallery has a million events on 20 shards, a page 1,000
// entries. Later pages must not cost more.
func BenchmarkPage(b *testing.B) {
	const shards, events = 20, 1_000_000
	l := &lists{entries: map[id.Shard][]shard.Entry{}}
	var numbers []id.Shard
	for s := id.Shard(1); s <= shards; s++ {
		numbers = append(numbers, s)
		for i := range events / shards {
			l.entries[s] = append(l.entries[s], shard.Entry{
				Subject: subjectOf(i), Event: id.Event{UUID: id.UUID{byte(s), byte(i >> 16), byte(i >> 8), byte(i)}},
				Time: 1_700_000_000_000 + int64(i)*37 + int64(s),
			})
		}
	}
	r := New(Config{Groups: newFounded(metafsm.LevelCursor), Peers: l, Log: slog.New(slog.DiscardHandler)})
	g := enrolment{Gallery: metafsm.Gallery{}, shards: numbers}
	page := func(start int) time.Duration {
		begin := time.Now()
		if got, err := r.pageAt(b.Context(), g, Page{Start: start, Length: 1000}); err != nil || len(got.Entries) != 1000 {
			b.Fatalf("page from %d: %d entries, %v", start, len(got.Entries), err)
		}
		return time.Since(begin)
	}
	var first, last time.Duration
	for b.Loop() {
		first += page(0)
		last += page(events / 2)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(first.Seconds()*1e3/float64(b.N), "page0-ms")
	b.ReportMetric(last.Seconds()*1e3/float64(b.N), "page500-ms")
	b.ReportMetric(float64(last)/float64(first), "x-page0")
}

// BenchmarkPageOfOneShard is BenchmarkPage for a gallery on one shard.
func BenchmarkPageOfOneShard(b *testing.B) {
	const events = 1_000_000
	table, err := score.NewTable([]score.Point{{Cosine: -1, Score: 0}, {Cosine: .998, Score: 9999}, {Cosine: 1, Score: 9999}})
	if err != nil {
		b.Fatal(err)
	}
	s := shard.New(table, kernel.NewArena(0))
	gallery := id.Gallery{UUID: id.UUID{1}}
	if err := s.Slots().Grant(shard.Grant{Gallery: gallery, Generation: 1, Total: events}); err != nil {
		b.Fatal(err)
	}
	for i := range events {
		e := shard.Event{
			Gallery: gallery, Generation: 1, Time: int64(i), Sealed: []byte{1},
			Subject: id.Subject{UUID: id.UUID{1, byte(i >> 16), byte(i >> 8), byte(i)}},
			Event:   id.Event{UUID: id.UUID{2, byte(i >> 16), byte(i >> 8), byte(i)}},
		}
		if err := s.Put(e, shard.FreeSlots); err != nil {
			b.Fatal(err)
		}
	}
	page := func(start int) time.Duration {
		begin := time.Now()
		if got, _ := s.Listing().List(gallery, start, 1000, shard.Ascending); len(got) != 1000 {
			b.Fatalf("page from %d: %d entries", start, len(got))
		}
		return time.Since(begin)
	}
	var first, last time.Duration
	for b.Loop() {
		first += page(0)
		last += page(events / 2)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(first.Seconds()*1e6/float64(b.N), "page0-µs")
	b.ReportMetric(last.Seconds()*1e6/float64(b.N), "page500-µs")
	b.ReportMetric(float64(last)/float64(first), "x-page0")
}

// BenchmarkPageAfterCursor reads the first page of a gallery and the page behind a
// million events in turn, by cursors, and reports the ratio of their times. A page has
// 1,000 entries.
func BenchmarkPageAfterCursor(b *testing.B) {
	for _, shards := range []int{1, 20} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			const depth = 1_000_000
			each := depth/shards + ListLengthMax
			all, g := books{}, enrolment{Gallery: cursorGallery}
			for s := id.Shard(1); int(s) <= shards; s++ {
				g.shards, all[s] = append(g.shards, s), newBook(b, each)
				for i := range each {
					e := shard.Event{
						Gallery: cursorGallery.ID, Generation: 1, Time: 1_700_000_000_000 + int64(i)*37 + int64(s), Sealed: []byte{1},
						Subject: id.Subject{UUID: id.UUID{byte(s), byte(i >> 16), byte(i >> 8), byte(i)}},
						Event:   id.Event{UUID: id.UUID{byte(s), byte(i >> 16), byte(i >> 8), byte(i)}},
					}
					if err := all[s].Put(e, shard.FreeSlots); err != nil {
						b.Fatal(err)
					}
				}
			}
			r := New(Config{Groups: newFounded(metafsm.LevelCursor), Peers: all, Log: slog.New(slog.DiscardHandler)})
			last := depth / shards // the place of the millionth event, on the last shard
			deep := cursor{Ascending, id.Shard(shards), shard.Position{Time: 1_700_000_000_000 + int64(last-1)*37 + int64(shards), Sequence: uint64(last)}}
			cluster, _ := r.groups.Meta().Cluster()
			page := func(after string) time.Duration {
				begin := time.Now()
				if got, err := r.page(b.Context(), g, Page{Length: ListLengthMax, After: after}); err != nil || len(got.Entries) != ListLengthMax {
					b.Fatalf("page after %q: %d entries, %v", after, len(got.Entries), err)
				}
				return time.Since(begin)
			}
			var first, far time.Duration
			for b.Loop() {
				first += page("")
				far += page(deep.text(cluster.ID, cursorGallery))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(first.Seconds()*1e3/float64(b.N), "first-ms")
			b.ReportMetric(far.Seconds()*1e3/float64(b.N), "far-ms")
			b.ReportMetric(float64(far)/float64(first), "x-first")
		})
	}
}
