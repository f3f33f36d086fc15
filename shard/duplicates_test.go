package shard

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/scan"
)

// blocked returns the probes of all blocks of n entries.
func (w *twin) blocked(t *testing.T, n int) (blocks [][]Probe) {
	t.Helper()
	ends, err := w.Blocks(testGallery, 1, n)
	must.Do(t, err)
	after := uint64(0)
	for _, end := range ends {
		probes, _, err := w.Probes(t.Context(), testGallery, 1, w.key, after, end)
		if err != nil || len(probes) > n {
			t.Fatalf("%d probes of a block of %d: %v", len(probes), n, err)
		}
		blocks, after = append(blocks, probes), end
	}
	return blocks
}

// duplicates compares all blocks of w with another slice, or with its own.
func (w *twin) duplicates(t *testing.T, other *twin, n, threshold, limit int) (pairs []Pair, complete bool) {
	t.Helper()
	best := map[[2]id.Subject]int{}
	complete = true
	for _, probes := range w.blocked(t, n) {
		q := PairQuery{Probes: probes, Threshold: threshold, Own: other == w, Limit: limit}
		for len(q.Probes) > 0 {
			found, err := other.Pairs(t.Context(), testGallery, 1, w.key, q)
			must.Do(t, err)
			complete = complete && found.Complete
			for _, p := range found.Pairs {
				best[[2]id.Subject{p.A, p.B}] = max(best[[2]id.Subject{p.A, p.B}], p.Score)
			}
			q.Probes = q.Probes[found.Done:]
		}
	}
	return sortedPairs(best), complete
}

func sortedPairs(best map[[2]id.Subject]int) (list []Pair) {
	for k, score := range best {
		list = append(list, Pair{k[0], k[1], score})
	}
	slices.SortFunc(list, ComparePairs)
	return list
}

// plainDuplicates is the definition: every event with every other one.
func (w *twin) plainDuplicates(other *twin, threshold int) []Pair {
	best := map[[2]id.Subject]int{}
	for _, x := range w.rows {
		for _, y := range other.rows {
			s := w.table.Score(score.Dot(x.Template, y.Template))
			if x.Subject == y.Subject || s < threshold {
				continue
			}
			k := [2]id.Subject{x.Subject, y.Subject}
			if bytes.Compare(k[0].UUID[:], k[1].UUID[:]) > 0 {
				k[0], k[1] = k[1], k[0]
			}
			best[k] = max(best[k], s)
		}
	}
	return sortedPairs(best)
}

// renamed makes the ids of a twin others than those of another one.
func (w *twin) renamed() *twin {
	w.made = 1 << 14
	return w
}

func TestDuplicatesEqualPlainScan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		dim := []int{7, 64, 192}[seed%3]
		w, other := newTwin(t, seed, dim, 2000), newTwin(t, seed+100, dim, 2000).renamed()
		for range []int{40, 300, 400}[seed%3] {
			w.write(t)
			other.write(t)
		}
		threshold := []int{1, 5000, 9000, score.Max}[seed%4]
		block := []int{1, 33, 512}[(seed+seed/3)%3]
		for name, with := range map[string]*twin{"itself": w, "another": other} {
			want := w.plainDuplicates(with, threshold)
			got, complete := w.duplicates(t, with, block, threshold, 1<<20)
			if diff := difference(want, got); diff != "" || !complete || len(want) == 0 {
				t.Fatalf("seed %d, with %s, threshold %d, blocks of %d: %d pairs, complete %v (-want +got):\n%.2000s", seed, name, threshold, block, len(want), complete, diff)
			}
		}
		w.Close()
		other.Close()
	}
}

// A person who was enrolled many times is found by each probe more often than expected.
func TestManyCopiesAreAllFound(t *testing.T) {
	t.Parallel()
	const copies = 3 * pairHits
	w := &twin{Shard: newTestShard(t, 1000), key: testKey(t, 1), rows: map[id.Event]scan.Row{}}
	for n := range copies {
		put(t, w.Shard, newEvent(w.key, n, axis(1)))
		put(t, w.Shard, newEvent(w.key, 1000+n, axis(2+n%2)))
	}
	all, found := copies*(copies-1)/2+copies/2*(copies/2-1), 0
	for _, probes := range w.blocked(t, 50) {
		got, err := w.Pairs(t.Context(), testGallery, 1, w.key, PairQuery{probes, score.Max, true, 1 << 20, time.Hour})
		if found += len(got.Pairs); !got.Complete || err != nil {
			t.Errorf("complete %v, %v", got.Complete, err)
		}
	}
	if found != all { // each pair once
		t.Errorf("%d pairs of %d", found, all)
	}
	for _, limit := range []int{1, pairHits - 2, pairHits, 100} {
		for _, probes := range w.blocked(t, 1<<20) {
			got, err := w.Pairs(t.Context(), testGallery, 1, w.key, PairQuery{probes, score.Max, true, limit, time.Hour})
			if len(got.Pairs) != limit || got.Complete || err != nil {
				t.Errorf("%d pairs of at most %d, complete %v, %v", len(got.Pairs), limit, got.Complete, err)
			}
		}
	}
}

// A call ends in time, however many entries and probes there are.
func TestCallHasAsManyPassesAsTimeAllows(t *testing.T) {
	t.Parallel()
	for entries, want := range map[int]int{0: pairsTogether, 4 << 20: pairsTogether, 16 << 20: 8, 1 << 30: 1} {
		if got := probesOfPass(entries); got != want {
			t.Errorf("%d probes share a pass over %d entries, want %d", got, entries, want)
		}
	}
	w := &twin{Shard: newTestShard(t, 1000), key: testKey(t, 1)}
	for n := range 2*pairsTogether + 1 {
		put(t, w.Shard, newEvent(w.key, n, axis(n)))
	}
	probes := w.blocked(t, 1<<20)[0]
	for limit, want := range map[time.Duration]int{0: pairsTogether, time.Hour: len(probes)} {
		got, err := w.Pairs(t.Context(), testGallery, 1, w.key, PairQuery{probes, score.Max, true, 10, limit})
		if got.Done != want || err != nil {
			t.Errorf("in %s: %d of %d probes compared, want %d, %v", limit, got.Done, len(probes), want, err)
		}
	}
}

// Of a probe with more hits than the limit, those with larger ids may be left out. The answer says so.
func TestHiddenPairsAreNotSaidComplete(t *testing.T) {
	t.Parallel()
	w := &twin{Shard: newTestShard(t, 1000), key: testKey(t, 1)}
	for n := range 2 * pairHits {
		put(t, w.Shard, newEvent(w.key, n, axis(1)))
	}
	middle := []Probe{{newEvent(w.key, pairHits+5, axis(1)).Subject, axis(1)}}
	got, err := w.Pairs(t.Context(), testGallery, 1, w.key, PairQuery{middle, score.Max, true, 10, 0})
	if got.Complete || err != nil {
		t.Errorf("%d pairs, complete %v, %v", len(got.Pairs), got.Complete, err)
	}
}

// Pairs that stay are found while others come and go.
func TestDuplicatesBesideWritesAreFound(t *testing.T) {
	t.Parallel()
	const lasting = 200
	w := &twin{Shard: newTestShard(t, 3000), key: testKey(t, 1)}
	template := func(n int) engine.Template {
		v := make(engine.Template, testDim)
		v[n%testDim], v[n/testDim%testDim] = .6, .8
		return v
	}
	for n := range lasting {
		put(t, w.Shard, newEvent(w.key, n, template(n/2)))
	}
	want := map[[2]id.Subject]int{}
	for n := 0; n < lasting; n += 2 {
		a, b := newEvent(w.key, n, axis(1)).Subject, newEvent(w.key, n+1, axis(1)).Subject
		want[[2]id.Subject{a, b}] = w.table.Score(score.Dot(template(n/2), template(n/2)))
	}
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; !done.Load(); n++ {
			e := newEvent(w.key, 1000+n%50_000, template(n))
			if err := w.Put(e, OldestDeleted); err != nil {
				t.Error(err)
				return
			}
			if err := w.Erase(Erasure{testGallery, 1, e.Subject, int64(n)}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 50 {
		got := map[[2]id.Subject]int{}
		pairs, _ := w.duplicates(t, w, 64, 8000, 1<<20)
		for _, p := range pairs {
			got[[2]id.Subject{p.A, p.B}] = p.Score
		}
		for k, s := range want {
			if got[k] != s {
				t.Fatalf("pair %v has %d, want %d", k, got[k], s)
			}
		}
	}
	done.Store(true)
	wg.Wait()
}
