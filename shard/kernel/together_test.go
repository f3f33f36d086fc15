package kernel

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/scan"
)

// Rows that upset the bounds, and many of one template, where searches share a pass: in every kernel, with every kind
// of coding.
func TestHostileTemplatesAreFoundInPass(t *testing.T) {
	t.Parallel()
	const dim, n = 64, laneSlots + 700
	r := rand.New(rand.NewPCG(dim, 50))
	for _, w := range codedTwins(t, r, dim) {
		vectors := slices.DeleteFunc(hostile(r, dim, 100), func(v []float32) bool { return w.m.shape.check(v) != nil })
		for i := range n {
			v := vectors[1] // all alike, a third of them
			if i%3 > 0 {
				v = vectors[r.IntN(len(vectors))]
			}
			w.add(t, eventOf(r, i), v)
		}
		qs := make([]request, laneCount)
		for i := range qs {
			qs[i].query = randomQuery(r, vectors[i%len(vectors)])
			qs[i].query.Tags = nil // those with tags go alone
		}
		w.agreeAll(t, qs)
	}
}

// Rows come and go beside searches that share a pass, with so many better rows than they want that others are put off.
func TestPassBesideWritesSeesWholeRows(t *testing.T) {
	t.Parallel()
	const dim, fixed, best, live, passes = 64, laneSlots + 2000, 20, 50, 40
	const stays, enough, comes, never = 0, 1, 2, 3 // kinds of events
	r := rand.New(rand.NewPCG(1, 51))
	w := newTwin(t, dim)
	probe := unit(r, dim)
	good, fair, bad := near(r, probe, .9), near(r, probe, .8), near(r, probe, -.9)
	eventOf := func(kind byte, i int) *event {
		return &event{Event: id.Event{UUID: id.UUID{kind, byte(i >> 16), byte(i >> 8), byte(i)}}}
	}
	for i := range fixed {
		if i%(fixed/best) == 0 && i/(fixed/best) < best {
			w.add(t, eventOf(stays, i), good)
		} else {
			w.add(t, eventOf(enough, i), fair)
		}
	}
	worth := map[byte]int{
		stays: w.table.Score(score.Dot(probe, good)), comes: w.table.Score(score.Dot(probe, good)), enough: w.table.Score(score.Dot(probe, fair)),
	}
	qs := make([]scan.Query, laneCount)
	for i := range qs {
		qs[i] = scan.Query{Probe: probe, Threshold: 100 * (i % 2), Limit: best + 2*live + i%3}
	}
	var done atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		defer done.Store(passes) // also after an error
		for range passes {
			found, err := w.m.SearchAll(w.table, qs)
			if err != nil {
				t.Error(err)
				return
			}
			for i, hits := range found {
				staying := 0
				for _, h := range hits {
					kind := h.Event.UUID[0]
					if kind == stays {
						staying++
					}
					if kind == never || h.Score != worth[kind] {
						t.Errorf("search %d: hit %v, want scores by kind %v", i, h, worth)
						return
					}
				}
				if len(hits) != qs[i].Limit || staying != best {
					t.Errorf("search %d: %d hits, %d of those that stay, want %d and %d", i, len(hits), staying, qs[i].Limit, best)
					return
				}
			}
			done.Add(1)
		}
	})
	var slots []int
	for i := 0; done.Load() < passes; i++ {
		if len(slots) == live {
			w.m.Erase(slots[0])
			slots = slots[1:]
		}
		kind, v := byte(comes), good
		if r.IntN(2) == 0 {
			kind, v = never, bad
		}
		slot, err := w.m.Add(w.own(eventOf(kind, i)), v)
		must.Do(t, err)
		slots = append(slots, slot)
	}
	wg.Wait()
}

// A filter is used before any code is read: of rows without the tag, nothing is.
func TestRareTagReadsTaggedRowsOnly(t *testing.T) {
	t.Parallel()
	const dim, n, rare = 64, 20_000, 100
	r := rand.New(rand.NewPCG(1, 52))
	w := newTwin(t, dim)
	for i := range n {
		o := &event{Event: id.Event{UUID: id.UUID{byte(i >> 8), byte(i)}}}
		if i%rare == 0 {
			o.Tags = []uint32{7}
		}
		w.add(t, o, unit(r, dim))
	}
	read := func(k kernel, tags []uint32, slotsScanned *int) (compared int) {
		inner := k
		if k.blocks != nil {
			k.blocks = func(p *plane) { *slotsScanned += len(p.masks) * blockSlots; inner.blocks(p) }
		}
		k.groups = func(p *plane) { *slotsScanned += len(p.list) * groupSlots; inner.groups(p) }
		k.dots = func(d *dots) { compared += len(d.list); inner.dots(d) }
		q := scan.Query{Probe: unit(r, dim), Limit: 10, Tags: tags}
		s := w.prepared(t, q, &k)
		if got, want := run(t, w.m, s), scan.TopK(maps.Values(w.rows), w.table, q); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", k.name, got, want)
		}
		return compared
	}
	for _, k := range kernels() {
		if k.groups == nil {
			continue
		}
		scanned := 0
		if compared := read(k, []uint32{7}, &scanned); compared != n/rare || scanned > 0 {
			t.Errorf("%s: %d rows were compared and %d slots scanned, want %d and none", k.name, compared, scanned, n/rare)
		}
		if read(k, nil, &scanned); scanned < n/2 {
			t.Errorf("%s: without a tag %d slots were scanned: the count is no proof", k.name, scanned)
		}
	}
}
