package shard

import (
	"slices"
	"sync"
	"testing"

	"facet/shard/scan"
	"facet/shard/segment"
)

// Shards that share a floor find together what they find without one: events and subjects, with and
// without subjects' own templates, one after the other and at once.
func TestShardsWithSharedFloorFindSame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		var shards []*twin
		for i := range uint64(3) {
			w := newMeansTwin(t, 10*seed+i, []int{7, 64}[seed])
			w.ordinary = true
			w.Keep(openStore(t, 20_000))
			for range 900 {
				w.write(t)
			}
			w.agreeMeans(t, w.query())
			frozenInto(t, w.Shard, segment.Share)
			if i > 0 {
				chilled(t, w.Shard)
			}
			shards = append(shards, w)
		}
		raised := 0
		for n := range 150 {
			q := shards[0].query()
			if q.After, q.Means = nil, n%2 == 0; n%5 > 0 {
				q.Threshold, q.Tags = 0, nil
			}
			want := joined(t, shards, q, false)
			q.Floor = scan.NewFloor(q.Limit)
			if diff := difference(want, joined(t, shards, q, n%8 > 5)); diff != "" {
				t.Fatalf("seed %d, query %d %+v, least %d (-want +got):\n%s", seed, n, q, q.Floor.Least(), diff)
			}
			if q.Floor.Least() > 0 {
				raised++
			}
		}
		if raised < 20 {
			t.Errorf("seed %d: %d floors rose", seed, raised)
		}
		for _, w := range shards {
			w.Close()
		}
	}
}

// joined returns the best hits of all shards, which search one after the other or at once.
func joined(t *testing.T, shards []*twin, q Query, atOnce bool) []Hit {
	t.Helper()
	lists := make([][]Hit, len(shards))
	var work sync.WaitGroup
	for i, w := range shards {
		work.Go(func() {
			var err error
			if lists[i], err = w.Search(t.Context(), testGallery, 1, w.key, q); err != nil {
				t.Error(err)
			}
		})
		if !atOnce {
			work.Wait()
		}
	}
	work.Wait()
	all := slices.Concat(lists...)
	slices.SortFunc(all, q.Compare)
	return all[:min(len(all), q.Limit)]
}
