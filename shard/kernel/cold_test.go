package kernel

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/scan"
)

func TestColdSearchEqualsPlainScan(t *testing.T) {
	t.Parallel()
	for _, dim := range []int{2, 17, 192} {
		r := rand.New(rand.NewPCG(uint64(dim), 60))
		for name, w := range codedTwins(t, r, dim) {
			centres := centresOf(r, dim)
			for range max(2, 8-dim/32) {
				slots := w.mixed(t, r, centres, 200)
				w.chill(r, .6)
				for range 4 {
					w.agree(t, randomQuery(r, near(r, centres[r.IntN(len(centres))], .5+r.Float64()/2)))
				}
				w.agree(t, scan.Query{Probe: unit(r, dim), Limit: 50})
				w.agree(t, scan.Query{Probe: centres[0], Limit: 50, BySubject: true})
				w.agree(t, scan.Query{Probe: centres[1], Limit: 2 * len(slots)})
				if r.IntN(3) == 0 {
					w.thaw(t)
				}
			}
			if w.vault.fetched == 0 {
				t.Errorf("%s, dimension %d: no row was fetched", name, dim)
			}
			for range growChunks {
				w.thaw(t)
			}
			for slot, row := range w.rows {
				if got, ok := w.m.At(slot); !ok || !slices.Equal(got, row.Template) {
					t.Fatalf("%s, dimension %d, slot %d: got %v, want %v", name, dim, slot, got, row.Template)
				}
			}
		}
	}
}

func TestColdPassEqualsPlainScan(t *testing.T) {
	t.Parallel()
	const dim, n = 64, laneSlots + 700
	r := rand.New(rand.NewPCG(dim, 62))
	for _, w := range codedTwins(t, r, dim) {
		centres := centresOf(r, dim)
		w.mixed(t, r, centres, n)
		for _, share := range []float64{.5, 1} {
			w.chill(r, share)
			for _, count := range []int{5, batchMax} {
				qs := make([]request, count)
				for i := range qs {
					qs[i].query = randomQuery(r, near(r, centres[r.IntN(3)], .5+r.Float64()/2))
					if i%3 == 0 {
						qs[i].query = scan.Query{Probe: centres[i%len(centres)], Limit: 50}
					}
				}
				w.agreeAll(t, qs)
			}
		}
	}
}

func TestSearchesOfPassShareFetches(t *testing.T) {
	t.Parallel()
	const dim = 64
	r := rand.New(rand.NewPCG(dim, 63))
	w := newTwin(t, dim)
	centres := centresOf(r, dim)
	w.mixed(t, r, centres, 3000)
	w.chill(r, 1)
	var fetched map[uint32]int
	w.vault.before = func(_ context.Context, owners []uint32) error {
		for _, o := range owners {
			fetched[o]++
		}
		return nil
	}
	qs := make([]scan.Query, 2*laneCount)
	for i := range qs {
		qs[i] = scan.Query{Probe: near(r, centres[0], .9), Limit: 40}
	}
	fetched = map[uint32]int{}
	for _, q := range qs {
		if _, err := w.m.Search(w.table, q); err != nil {
			t.Fatal(err)
		}
	}
	alone := 0
	for _, n := range fetched {
		alone += n
	}
	fetched = map[uint32]int{}
	if _, err := w.m.SearchAll(w.table, qs); err != nil {
		t.Fatal(err)
	}
	again := 0
	for _, n := range fetched {
		again += n - 1
	}
	// A search may want a row only after another has fetched it.
	if together := len(fetched) + again; alone == 0 || together > alone/2 || again > together/20 {
		t.Errorf("%d rows were fetched by searches alone, %d by the same together, %d of them again", alone, together, again)
	}
}

// Rows that all tie need not be fetched: their ids decide.
func TestFewColdRowsAreFetched(t *testing.T) {
	t.Parallel()
	const dim, n = 128, 20_000
	r := rand.New(rand.NewPCG(dim, 64))
	w := newTwin(t, dim)
	probe := unit(r, dim)
	for i := range n {
		v := unit(r, dim)
		if i%100 == 0 {
			v = near(r, probe, .7)
		}
		w.add(t, eventOf(r, i), v)
	}
	w.chill(r, 1)
	for name, f := range map[string]struct {
		query scan.Query
		most  int
	}{
		"threshold":    {scan.Query{Probe: probe, Limit: 10, Threshold: 7000}, 150},
		"none":         {scan.Query{Probe: probe, Limit: 10}, 150},
		"other":        {scan.Query{Probe: unit(r, dim), Limit: 10}, 400},
		"many":         {scan.Query{Probe: unit(r, dim), Limit: 50}, 1200},
		"by subject":   {scan.Query{Probe: probe, Limit: 10, BySubject: true}, 150},
		"page":         {scan.Query{Probe: probe, Limit: 10, Threshold: 7000, After: &id.Subject{}}, 100},
		"all the same": {scan.Query{Probe: probe, Limit: 10, Threshold: score.Max}, 50},
	} {
		for _, k := range kernels() {
			w.vault.fetched = 0
			s := w.prepared(t, f.query, &k)
			got := run(t, w.m, s)
			if want := scan.TopK(maps.Values(w.rows), w.table, f.query); !slices.Equal(got, want) {
				t.Errorf("%s, %s:\ngot  %v\nwant %v", k.name, name, got, want)
			}
			if w.vault.fetched > f.most {
				t.Errorf("%s, %s: %d rows were fetched, want %d at most", k.name, name, w.vault.fetched, f.most)
			}
		}
	}
}

// Every row ties, so the list of wanted rows runs over.
func TestMoreWantedRowsThanFitAreFound(t *testing.T) {
	t.Parallel()
	const dim, n = 16, 3 * wantedMax
	r := rand.New(rand.NewPCG(dim, 65))
	w := newTwin(t, dim)
	probe := unit(r, dim)
	v := near(r, probe, .3)
	for i := range n {
		w.add(t, eventOf(r, i), v)
	}
	odd := near(r, probe, .1)
	odd[0]++ // without bounds
	for i := range n {
		w.add(t, eventOf(r, n+i), odd)
	}
	w.chill(r, 1)
	longest, noted := 0, 0
	var s *search
	w.vault.before = func(_ context.Context, owners []uint32) error {
		longest, noted = max(longest, len(owners)), max(noted, len(s.wanted)+len(owners))
		return nil
	}
	for _, q := range []scan.Query{
		{Probe: probe, Limit: 40},
		{Probe: probe, Limit: 3 * n},
		{Probe: probe, Limit: 40, BySubject: true},
		{Probe: probe, Limit: 40, After: &id.Subject{}},
		{Probe: make([]float32, dim), Limit: 10}, // without bounds
	} {
		want := scan.TopK(maps.Values(w.rows), w.table, q)
		for _, k := range kernels() {
			var err error
			if s, err = w.m.newSearch(w.table, &request{query: q}, &k); err != nil {
				t.Fatal(err)
			}
			if got := run(t, w.m, s); !slices.Equal(got, want) {
				t.Fatalf("%s, %+v:\ngot  %v\nwant %v", k.name, q, got, want)
			}
			w.wentOnce(t, s)
		}
	}
	if longest != waveMost || noted > wantedMax+codeRows {
		t.Errorf("%d rows were fetched at once, want %d; %d were noted", longest, waveMost, noted)
	}
}

func TestErasedColdRowLosesNoOther(t *testing.T) {
	t.Parallel()
	const dim = 32
	for _, bySubject := range []bool{false, true} {
		r := rand.New(rand.NewPCG(dim, 66))
		w := newTwin(t, dim)
		probe := unit(r, dim)
		for i := range 600 {
			w.add(t, eventOf(r, i), near(r, probe, -.5))
		}
		var best []int
		for i := range 5 {
			best = append(best, w.add(t, &event{Subject: id.Subject{UUID: id.UUID{200, byte(i)}}, Event: id.Event{UUID: id.UUID{200, byte(i)}}}, at(r, probe, .95)))
		}
		stays := w.add(t, eventOf(r, 900), at(r, probe, .6))
		w.chill(r, 1)
		w.vault.before = func(context.Context, []uint32) error { // the search has certified the best rows
			for _, slot := range best {
				w.erase(slot)
			}
			best = nil
			return nil
		}
		got, err := w.m.Search(w.table, scan.Query{Probe: probe, Limit: 3, Threshold: 1000, BySubject: bySubject})
		if err != nil || len(got) != 1 || got[0].Event != w.rows[stays].Event {
			t.Errorf("by subject %v: got %v, error %v; want %v, which was there all the time", bySubject, got, err, w.rows[stays].Event)
		}
	}
}

func TestColdRowReplacedDuringFetchIsNoHit(t *testing.T) {
	t.Parallel()
	const dim = 32
	r := rand.New(rand.NewPCG(dim, 67))
	w := newTwin(t, dim)
	probe := unit(r, dim)
	slot := 0
	for i := range 300 {
		slot = w.add(t, eventOf(r, i), unit(r, dim))
	}
	w.erase(slot)
	slot = w.add(t, &event{Event: id.Event{UUID: id.UUID{1}}}, probe)
	w.chill(r, 1)
	w.vault.before = func(context.Context, []uint32) error {
		w.vault.before = nil
		w.erase(slot)
		if again := w.add(t, &event{Event: id.Event{UUID: id.UUID{2}}}, near(r, probe, -.5)); again != slot {
			t.Errorf("slot %d after %d", again, slot)
		}
		return nil
	}
	hits, err := w.m.Search(w.table, scan.Query{Probe: probe, Limit: 1, Threshold: 9000})
	if err != nil || len(hits) != 0 {
		t.Errorf("got %v, error %v: a row that was erased, or the score of another event", hits, err)
	}
}

// The search has looked whether the chunk has rows without bounds, and then gets one.
func TestColdRowWithoutBoundsCertifiesNothing(t *testing.T) {
	t.Parallel()
	const dim = 64
	r := rand.New(rand.NewPCG(dim, 72))
	for range 20 {
		w := newTwin(t, dim)
		slot := 0
		for i := range 300 {
			slot = w.add(t, eventOf(r, i), unit(r, dim))
		}
		w.erase(slot)
		w.chill(r, 1)
		q := scan.Query{Probe: unit(r, dim), Limit: 290} // no limit before the last chunk
		want := scan.TopK(maps.Values(w.rows), w.table, q)
		for _, k := range kernels() {
			s := w.prepared(t, q, &k)
			asked := 0
			s.stop = func() error {
				if asked++; asked == flatChunks+2 {
					v := near(r, q.Probe, -.5)
					for i := range v {
						v[i] *= 2
					}
					w.add(t, &event{Subject: id.Subject{UUID: id.UUID{255}}}, v) // the last of those that tie
				}
				return nil
			}
			if got := run(t, w.m, s); !slices.Equal(got, want) || len(w.rows) != 300 {
				t.Errorf("%s:\ngot  %v\nwant %v", k.name, got, want)
			}
			w.erase(slot)
			(*w.m.chunks.Load())[flatChunks+1].odd.Store(false) // as if there had been none
		}
	}
}

func TestColdRowsGiveMemoryBack(t *testing.T) {
	t.Parallel()
	const dim, n = 64, 5000
	r := rand.New(rand.NewPCG(dim, 68))
	w := newTwin(t, dim)
	slots := w.fill(t, r, n)
	for _, slot := range slots[2000:2100] {
		w.erase(slot)
	}
	bytes, used, held, free := w.m.Bytes(), w.m.arena.Used(), w.m.arena.held, w.m.FreeBytes()
	exact := *(*w.m.chunks.Load())[flatChunks].exact.Load()
	freed, was := int64(0), int64(math.MaxInt64)
	for {
		some := w.m.Chill()
		if some == 0 {
			break
		}
		full := freed < 3968*dim*4 // slots of the chunks before the last
		if full && some < was && was != math.MaxInt64 || some%(dim*4) != 0 {
			t.Errorf("Chill freed %d bytes after %d", some, was)
		}
		freed, was = freed+some, some
	}
	if want := int64(n-128-100) * dim * 4; freed < want || w.m.Cold() != n-128-100 {
		t.Errorf("%d bytes were freed, want %d or more; %d rows are cold", freed, want, w.m.Cold())
	}
	if w.m.Bytes() != bytes-freed || w.m.arena.Used() != used-freed || w.m.arena.held != held-freed || w.m.FreeBytes() != free-100*dim*4 {
		t.Errorf("%d bytes, %d used, %d held, %d free after %d, %d, %d, %d, less %d",
			w.m.Bytes(), w.m.arena.Used(), w.m.arena.held, w.m.FreeBytes(), bytes, used, held, free, freed)
	}
	for i, b := range exact {
		if b != 0 {
			t.Fatalf("byte %d of released rows is %d", i, b)
		}
	}
	if _, ok := w.m.At(slots[4000]); ok {
		t.Error("a cold row is in memory")
	}
	for w.m.Cold() > 0 {
		w.thaw(t)
	}
	if w.m.Bytes() != bytes || w.m.arena.held != held {
		t.Errorf("%d bytes, %d held, want %d and %d", w.m.Bytes(), w.m.arena.held, bytes, held)
	}
}

func TestFailedFetchFailsSearch(t *testing.T) {
	t.Parallel()
	const dim = 32
	r := rand.New(rand.NewPCG(dim, 69))
	w := newTwin(t, dim)
	w.fill(t, r, 3000)
	w.chill(r, 1)
	why, rows := errors.New("no disk"), maps.Clone(w.vault.rows)
	q := scan.Query{Probe: unit(r, dim), Limit: 20}
	search := func(want error) {
		t.Helper()
		if hits, err := w.m.Search(w.table, q); !errors.Is(err, want) {
			t.Errorf("got %v, error %v, want %v", hits, err, want)
		}
		requests := make([]request, laneCount)
		for i := range requests {
			requests[i].query = q
		}
		searches, err := w.m.searchAll(w.table, requests, &active)
		must.Do(t, err)
		for _, s := range searches {
			if hits, err := s.result(); !errors.Is(err, want) {
				t.Errorf("together: got %v, error %v, want %v", hits, err, want)
			}
		}
	}
	w.vault.before = func(context.Context, []uint32) error { return why }
	search(why)
	w.vault.before = nil
	for o := range rows { // those of other rows
		w.vault.rows[o] = rows[o%uint32(len(rows))+1]
	}
	search(ErrSource)
	for o := range rows {
		w.vault.rows[o] = rows[o][1:]
	}
	search(ErrSource)
	maps.Copy(w.vault.rows, rows)
	search(nil)
	ctx, cancel := context.WithCancel(t.Context())
	w.vault.before = func(ctx context.Context, _ []uint32) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	if _, err := NewQueue(w.m, w.table, 1).Search(ctx, q); !errors.Is(err, context.Canceled) {
		t.Errorf("a fetch that is cancelled: error %v", err)
	}
}

func TestRowsThatSourceLacksAreLeftOut(t *testing.T) {
	t.Parallel()
	const dim = 32
	r := rand.New(rand.NewPCG(dim, 70))
	w := newTwin(t, dim)
	w.fill(t, r, 2000)
	w.chill(r, 1)
	w.lacks = true
	for slot := range w.rows {
		if c, at, _ := w.m.chunkOf(slot); !c.flat && r.IntN(3) == 0 {
			w.vault.drop(c.owners[at].Load())
			delete(w.rows, slot)
		}
	}
	for range 20 {
		w.agree(t, randomQuery(r, unit(r, dim)))
	}
}

func TestFetchedRowsAreCleared(t *testing.T) {
	t.Parallel()
	const dim = 48
	r := rand.New(rand.NewPCG(dim, 71))
	w := newTwin(t, dim)
	w.fill(t, r, 3000)
	w.chill(r, 1)
	q := request{query: scan.Query{Probe: unit(r, dim), Limit: 40}}
	for _, fails := range []bool{false, true} {
		if fails { // after it has given some rows
			w.m.Attach(halfSource{w.vault})
		}
		s, err := w.m.newSearch(w.table, &q, &active)
		must.Do(t, err)
		work := new(work)
		w.m.run(work, []*search{s}, nil)
		exact := work.wave.exact[:cap(work.wave.exact)]
		if len(exact) < 32*dim || w.vault.fetched == 0 || fails != (s.err != nil) {
			t.Fatalf("%d rows were fetched, room for %d numbers, error %v", w.vault.fetched, len(exact), s.err)
		}
		for i, x := range exact {
			if x != 0 {
				t.Fatalf("number %d of fetched rows is %v", i, x)
			}
		}
		if owners := work.wave.takers[:cap(work.wave.takers)]; owners[0].search != nil || len(work.wave.index) > 0 {
			t.Error("the searches of a wave are remembered")
		}
	}
}

// halfSource fails after it has given its rows.
type halfSource struct{ *vault }

func (h halfSource) Fetch(ctx context.Context, owners []uint32, to func(i int, template []float32)) error {
	return errors.Join(h.vault.Fetch(ctx, owners, to), errors.New("half a file"))
}
