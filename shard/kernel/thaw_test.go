package kernel

import (
	"context"
	"errors"
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

// A pass that has begun to read exact rows goes on with them.
func TestChillSparesPassUnderWay(t *testing.T) {
	t.Parallel()
	const dim = 32
	r := rand.New(rand.NewPCG(dim, 80))
	for _, inner := range slices.Repeat(kernels(), 4) {
		w := newTwin(t, dim)
		probe := unit(r, dim)
		for i := range 1500 {
			v := near(r, probe, r.Float64())
			if i%50 == 0 {
				v[0] *= 1.1 // without bounds
			}
			w.add(t, eventOf(r, i), v)
		}
		used, chilled := w.m.arena.Used(), int64(0)
		k := inner
		k.dots = func(d *dots) {
			for len(d.rows) > 8*dim && chilled == 0 && &d.rows[0] == &w.m.chunk(t, d).vectors()[0] {
				chilled = w.m.chill(w.m.chunk(t, d))
				another, err := w.m.arena.alloc(exactPool, int(chilled)) // must not be the same memory
				must.Do(t, err)
				for i := range another {
					another[i] = 0x3f // numbers of some .7
				}
				w.m.arena.release(exactPool, another)
				if now := w.m.arena.Used(); now != used {
					t.Errorf("%s: %d of %d bytes are in use during the pass", k.name, now, used)
				}
			}
			inner.dots(d)
		}
		q := scan.Query{Probe: probe, Limit: 2000, Threshold: 7000}
		s := w.prepared(t, q, &k)
		if got, want := run(t, w.m, s), scan.TopK(maps.Values(w.rows), w.table, q); !slices.Equal(got, want) {
			t.Errorf("%s: %d hits, want %d; or others", k.name, len(got), len(want))
		}
		if now := w.m.arena.Used(); chilled == 0 || now != used-chilled {
			t.Errorf("%s: %d of %d bytes are in use after the pass, %d were freed", k.name, now, used, chilled)
		}
		w.agree(t, q)
	}
}

// The pass still has the memory that the chunk had, where the slot has the erased row.
func TestRowAddedAfterChillHasOwnScore(t *testing.T) {
	t.Parallel()
	const dim = 32
	r := rand.New(rand.NewPCG(dim, 85))
	for _, k := range kernels() {
		w := newTwin(t, dim)
		probe := unit(r, dim)
		slot := 0
		for i := range 200 {
			slot = w.add(t, eventOf(r, i), near(r, probe, r.Float64()/2))
		}
		w.erase(slot)
		slot = w.add(t, eventOf(r, 201), probe)
		q := scan.Query{Probe: probe, Limit: 300}
		s := w.prepared(t, q, &k)
		asked := 0
		s.stop = func() error {
			if asked++; asked == flatChunks+1 {
				w.chill(r, 1)
				w.erase(slot)
				w.add(t, eventOf(r, 202), near(r, probe, .3))
			}
			return nil
		}
		if got, want := run(t, w.m, s), scan.TopK(maps.Values(w.rows), w.table, q); !slices.Equal(got, want) || w.m.Cold() == 0 {
			t.Errorf("%s: got %v first, want %v; %d rows are cold", k.name, got[0], want[0], w.m.Cold())
		}
	}
}

// chunk returns the chunk whose exact rows are compared.
func (m *Matrix) chunk(t *testing.T, d *dots) *chunk {
	t.Helper()
	for _, c := range *m.chunks.Load() {
		if v := c.vectors(); v != nil && &v[0] == &d.rows[0] && !c.flat {
			return c
		}
	}
	return (*m.chunks.Load())[0]
}

// Rows are put off while their chunk is warm, and looked at when it is cold.
func TestDeferredRowsOfChilledChunkAreFound(t *testing.T) {
	t.Parallel()
	const dim, many = 32, 50_000
	r := rand.New(rand.NewPCG(dim, 81))
	w := newTwin(t, dim)
	probe := unit(r, dim)
	for i := range many {
		cos := .84
		switch {
		case i < 200:
			cos = .9
		case i%1000 == 0:
			cos = .9 + r.Float64()/20
		case i%3 == 0:
			cos = .5 + r.Float64()*.4
		}
		w.add(t, eventOf(r, i), at(r, probe, cos))
	}
	q := scan.Query{Probe: probe, Limit: 60}
	want := scan.TopK(maps.Values(w.rows), w.table, q)
	for _, k := range kernels() {
		s := w.prepared(t, q, &k)
		asked, deferred := 0, 0
		s.stop = func() error {
			if asked++; asked == 1 {
				w.vault.fetched = 0
			}
			if asked == 14 && s.put != nil { // amid the chunks
				deferred = s.put[lateList].n + s.put[lastList].n
				w.chill(r, 1)
			}
			return nil
		}
		if got := run(t, w.m, s); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %v\nwant %v", k.name, got, want)
		}
		if k.groups != nil && (deferred == 0 || w.m.Cold() == 0) {
			t.Errorf("%s: %d rows were put off, %d became cold", k.name, deferred, w.m.Cold())
		}
		if w.vault.fetched > many/20 {
			t.Errorf("%s: %d rows were fetched", k.name, w.vault.fetched)
		}
		for w.m.Cold() > 0 {
			w.thaw(t)
		}
	}
}

// Rows come and go beside searches, and chunks become cold and warm.
func TestSearchesBesideChillSeeWholeRows(t *testing.T) {
	t.Parallel()
	const dim, fixed, passes = 64, 3000, 25
	const stays, comes, never = 1, 2, 3 // kinds of events
	r := rand.New(rand.NewPCG(9, 82))
	w := newTwin(t, dim)
	probe := unit(r, dim)
	good, bad := near(r, probe, .9), near(r, probe, -.9)
	eventOf := func(kind byte, i int) *event {
		return &event{Subject: id.Subject{UUID: id.UUID{kind, byte(i >> 16), byte(i >> 8), byte(i)}}, Event: id.Event{UUID: id.UUID{kind, byte(i >> 16), byte(i >> 8), byte(i)}}}
	}
	for i := range fixed {
		w.add(t, eventOf(stays, i), good)
	}
	worth := w.table.Score(score.Dot(probe, good))
	judge := func(hits []scan.Hit, limit int) {
		staying := 0
		for _, h := range hits {
			if h.Event.UUID[0] == stays {
				staying++
			}
			if h.Score != worth || h.Event.UUID[0] == never {
				t.Errorf("hit %v, all rows worth finding are worth %d", h, worth)
			}
		}
		if staying != min(limit, fixed) { // their ids come first
			t.Errorf("%d hits of rows that stay among %d, want %d", staying, len(hits), min(limit, fixed))
		}
	}
	var done atomic.Int64
	var wg sync.WaitGroup
	queue := NewQueue(w.m, w.table, 2)
	for i := range 3 {
		wg.Go(func() {
			defer done.Add(passes) // also after an error
			for n := 0; n < passes && !t.Failed(); n++ {
				limit := []int{5, 4000, 100}[(i+n)%3]
				q := scan.Query{Probe: probe, Threshold: 100, Limit: limit, BySubject: n%4 == 0}
				if limit < fixed {
					q.Threshold = 100 * (n % 2)
				}
				hits, err := queue.Search(t.Context(), q)
				if err != nil {
					t.Error(err)
				}
				judge(hits, limit)
				if n%10 > 0 {
					continue
				}
				all, err := w.m.SearchAll(w.table, slices.Repeat([]scan.Query{q}, lanesLeast))
				if err != nil {
					t.Error(err)
				}
				for _, hits := range all {
					judge(hits, limit)
				}
			}
		})
	}
	var writing sync.Mutex
	turn := func(write func()) { writing.Lock(); defer writing.Unlock(); write() }
	wg.Go(func() {
		for done.Load() < 3*passes {
			if _, err := w.m.Thaw(t.Context(), turn); err != nil && !errors.Is(err, ErrSource) {
				t.Error(err)
				return
			}
		}
	})
	var slots []int
	for i := 0; done.Load() < 3*passes; i++ {
		turn(func() {
			if len(slots) > 50 {
				w.erase(slots[0])
				slots = slots[1:]
			}
			kind, v := byte(comes), good
			if r.IntN(2) == 0 {
				kind, v = never, bad
			}
			slots = append(slots, w.add(t, eventOf(kind, i), v))
			if i%7 == 0 {
				w.chill(r, .5)
			}
		})
	}
	wg.Wait()
	if w.vault.fetched == 0 || len(w.m.passes.running)+len(w.m.passes.retired) > 0 {
		t.Errorf("%d rows were fetched; %d passes and %d released rows are left", w.vault.fetched, len(w.m.passes.running), len(w.m.passes.retired))
	}
}

func TestThawSeesWritesDuringFetch(t *testing.T) {
	t.Parallel()
	const dim = 32
	r := rand.New(rand.NewPCG(dim, 83))
	w := newTwin(t, dim)
	w.fill(t, r, 250)
	w.chill(r, 1)
	const leaves = 140
	rounds := 0
	w.vault.before = func(context.Context, []uint32) error {
		if rounds++; rounds > 2 { // the source lacks a row that will be erased
			c, at, _ := w.m.chunkOf(leaves)
			w.vault.drop(c.owners[at].Load())
			return nil
		}
		for slot := 130; slot < 150; slot++ {
			w.erase(slot)
		}
		for i := range 10 {
			w.add(t, eventOf(r, 1000*rounds+i), unit(r, dim))
		}
		for i := range 10 {
			w.add(t, eventOf(r, 2000*rounds+i), unit(r, dim))
		}
		w.erase(160 + rounds)
		return nil
	}
	before := w.m.arena.Used()
	taken, err := w.m.Thaw(t.Context(), func(write func()) {
		if rounds > 2 {
			w.erase(leaves)
		}
		write()
	})
	if err != nil || taken != 128*dim*4 || w.m.arena.Used() != before+taken || rounds != 3 {
		t.Errorf("Thaw took %d bytes in %d rounds, error %v; %d are in use after %d", taken, rounds, err, w.m.arena.Used(), before)
	}
	for slot, row := range w.rows {
		if got, ok := w.m.At(slot); !ok || !slices.Equal(got, row.Template) {
			t.Fatalf("slot %d: got %v, want %v", slot, got, row.Template)
		}
	}
	for _, slot := range w.m.free {
		if got, _ := w.m.At(slot); slices.ContainsFunc(got, func(x float32) bool { return x != 0 }) {
			t.Errorf("an erased slot has %v", got)
		}
	}
}

func TestFailedThawTakesNoMemory(t *testing.T) {
	t.Parallel()
	const dim = 32
	r := rand.New(rand.NewPCG(dim, 84))
	w := newTwin(t, dim)
	w.fill(t, r, 250)
	w.chill(r, 1)
	used, rows, why := w.m.arena.Used(), maps.Clone(w.vault.rows), errors.New("no disk")
	thaw := func(want error) {
		t.Helper()
		taken, err := w.m.Thaw(t.Context(), func(write func()) { write() })
		if !errors.Is(err, want) || taken != 0 || w.m.arena.Used() != used {
			t.Errorf("Thaw took %d bytes, error %v; %d are in use after %d", taken, err, w.m.arena.Used(), used)
		}
	}
	w.vault.before = func(context.Context, []uint32) error { return why }
	thaw(why)
	w.vault.before = nil
	w.vault.put(201, rows[202])
	thaw(ErrSource)
	w.vault.put(201, rows[201][1:])
	thaw(ErrSource)
	w.vault.drop(201)
	thaw(ErrSource)
	w.vault.put(201, rows[201])
	used = 0
	w.vault.before = func(context.Context, []uint32) error { w.m.Free(); return nil }
	thaw(nil)
	w.vault.before, w.rows = nil, map[int]scan.Row{}
	w.agree(t, scan.Query{Probe: unit(r, dim), Limit: 3})
}

func TestPassesReleaseRowsInOrder(t *testing.T) {
	t.Parallel()
	var p passes
	exact := [][]byte{{0}, {1}, {2}}
	first := p.begin()
	if got := p.retire(exact[0]); got != nil {
		t.Errorf("got %v during the first pass", got)
	}
	second := p.begin()
	if got := p.retire(exact[1]); got != nil {
		t.Errorf("got %v during both", got)
	}
	third := p.begin()
	if got := p.end(second); got != nil {
		t.Errorf("got %v during the first and the third", got)
	}
	if got := p.end(first); !slices.EqualFunc(got, exact[:2], slices.Equal) {
		t.Errorf("got %v during the third, want the first two", got)
	}
	if got := p.end(third); got != nil {
		t.Errorf("got %v at the end", got)
	}
	if got := p.retire(exact[2]); !slices.EqualFunc(got, exact[2:], slices.Equal) {
		t.Errorf("got %v without a pass", got)
	}
}
