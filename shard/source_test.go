package shard

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/engine"
	"facet/internal/fair"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/kernel"
	"facet/shard/record"
	"facet/shard/seal"
	"facet/shard/segment"
)

// chilled releases exact rows until none is left to release, and returns how many are on disk only.
func chilled(t testing.TB, s *Shard) int {
	t.Helper()
	for n := 0; s.Chill() > 0; n++ {
		if n > 1000 {
			t.Fatal("rows are released again and again")
		}
	}
	return s.ColdRows()
}

// Searches of all kinds give what the definition gives, while exact rows leave the memory and come
// back, and faces go to segments.
func TestSearchesOfColdRowsEqualPlainScan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		w := newMeansTwin(t, seed, []int{7, 64, 192}[seed])
		w.ordinary = true
		w.Keep(openStore(t, 20_000))
		cold := 0
		for step := range 900 {
			w.write(t)
			switch w.rand.IntN(40) {
			case 0:
				w.agreeMeans(t, w.query())
			case 1:
				w.agree(t, w.query())
			case 2, 3:
				w.Chill()
			case 4:
				if _, err := w.Thaw(t.Context()); err != nil && !errors.Is(err, errNoKey) {
					t.Fatal(err)
				}
			case 5:
				if step%3 == 0 {
					frozenInto(t, w.Shard, segment.Share)
				}
			}
			cold = max(cold, w.ColdRows())
		}
		frozenInto(t, w.Shard, segment.Share)
		if cold = max(cold, chilled(t, w.Shard)); cold == 0 {
			t.Errorf("seed %d: no row left the memory", seed)
		}
		for range 15 {
			w.agree(t, w.query())
			w.agreeMeans(t, w.query())
		}
		for {
			taken, err := w.Thaw(t.Context())
			must.Do(t, err)
			if taken == 0 {
				break
			}
		}
		if n := w.ColdRows(); n != 0 {
			t.Errorf("seed %d: %d rows are not in memory", seed, n)
		}
		w.agree(t, w.query())
		w.Close()
	}
}

// randomTemplate returns a unit vector.
func randomTemplate(r *rand.Rand, dim int) engine.Template {
	v := make(engine.Template, dim)
	var square float64
	for i := range v {
		v[i] = float32(r.NormFloat64())
		square += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(square))
	}
	return v
}

// Persons are found all the time, while their faces are replaced, exact rows leave and come back, and
// faces go to segments.
func TestSearchBesideChillsFindsPersons(t *testing.T) {
	t.Parallel()
	const persons, others = 8, 1500
	s, key := newKeptShard(t, 8000), testKey(t, 1)
	s.arena = kernel.NewArena(0)
	r := rand.New(rand.NewPCG(4, 4))
	for n := range others {
		put(t, s, newEvent(key, 10_000+n, randomTemplate(r, testDim)))
	}
	var of [persons]Event
	for n := range of {
		of[n] = put(t, s, newEvent(key, 20_000+n, axis(3)))
	}
	var done atomic.Bool
	var searches atomic.Int64
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() {
			for !done.Load() {
				hits, err := s.Search(t.Context(), testGallery, 1, key, Query{Probe: axis(3), Threshold: s.table.Score(.999), Limit: persons + 5, BySubject: true})
				if err != nil || len(hits) != persons {
					t.Errorf("%d hits, %v, want %d", len(hits), err, persons)
					return
				}
				searches.Add(1)
			}
		})
	}
	work.Go(func() {
		for !done.Load() {
			chilled(t, s)
			if _, err := s.Thaw(t.Context()); err != nil && !errors.Is(err, errNoKey) {
				t.Error(err)
				return
			}
		}
	})
	cold := 0
	for round := 0; round < 400 || searches.Load() < 200 && round < 20_000; round++ {
		e := of[round%persons]
		now, err := s.Events(testGallery, 1, e.Subject)
		if err != nil || len(now) != 1 {
			t.Fatalf("%d events, %v", len(now), err)
		}
		next := now[0].Revision + 1
		ref := FaceRef{e.Gallery, e.Generation, e.Subject, e.Event, next}
		update(t, s, Replacement{
			Gallery: e.Gallery, Generation: e.Generation, Subject: e.Subject, Event: e.Event, Time: int64(30_000 + round),
			Revision: next, Sealed: SealFace(key, ref, engine.Face{Template: axis(3)}),
		})
		if round%40 == 0 {
			frozenInto(t, s, segment.Share)
		}
		cold = max(cold, s.ColdRows())
	}
	done.Store(true)
	work.Wait()
	if cold == 0 {
		t.Error("no row left the memory")
	}
	s.Close()
	if err := s.arena.Close(); err != nil {
		t.Error(err)
	}
}

// What can't be read fails a search. It is never left out.
func TestUnreadableColdRowFailsSearch(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 1000), testKey(t, 1)
	r := rand.New(rand.NewPCG(5, 5))
	for n := range 400 {
		put(t, s, newEvent(key, n, randomTemplate(r, testDim)))
	}
	q := Query{Probe: axis(1), Limit: 10}
	want, err := s.Search(t.Context(), testGallery, 1, key, q)
	if err != nil || len(want) != 10 || chilled(t, s) == 0 {
		t.Fatalf("%d hits, %v, %d rows on disk", len(want), err, s.ColdRows())
	}
	if hits, err := s.Search(t.Context(), testGallery, 1, testKey(t, 2), q); !errors.Is(err, seal.ErrOpen) {
		t.Errorf("with another key: %d hits, %v", len(hits), err)
	}
	got, err := s.Search(t.Context(), testGallery, 1, key, q)
	if err != nil || len(got) != 10 || got[9] != want[9] {
		t.Errorf("with the right key again: %v, %v, want %v", got, err, want)
	}
	for _, h := range got {
		must.Do(t, s.Erase(Erasure{testGallery, 1, h.Subject, 9000}))
	}
	again, err := s.Search(t.Context(), testGallery, 1, key, q)
	if err != nil || len(again) != 10 {
		t.Fatalf("%d hits, %v", len(again), err)
	}
	gone := map[id.Subject]bool{}
	for _, h := range got {
		gone[h.Subject] = true
	}
	for _, h := range again {
		if gone[h.Subject] {
			t.Errorf("the erased subject %s is found", h.Subject)
		}
	}
}

// A search that needs a damaged face fails, and the damage is reported for repair. A wrong key is no
// damage.
func TestDamagedColdRowIsReported(t *testing.T) {
	t.Parallel()
	var damage error
	dir := t.TempDir()
	store, err := segment.Open(dir, segment.Options{Damaged: func(err error) { damage = err }})
	must.Do(t, err)
	s, key := newTestShard(t, 1000), testKey(t, 1)
	s.Keep(store)
	r := rand.New(rand.NewPCG(5, 5))
	var sealed [][]byte
	for n := range 400 {
		e := put(t, s, newEvent(key, n, randomTemplate(r, testDim)))
		sealed = append(sealed, e.Sealed)
	}
	frozenInto(t, s, segment.Share)
	search := func(key *seal.Key) error {
		store.Forget()
		_, err := s.Search(t.Context(), testGallery, 1, key, Query{Probe: axis(1), Limit: 400})
		return err
	}
	if err := search(key); err != nil || chilled(t, s) == 0 {
		t.Fatalf("%v, %d rows on disk", err, s.ColdRows())
	}
	if err := search(testKey(t, 2)); !errors.Is(err, seal.ErrOpen) || damage != nil {
		t.Errorf("with another key: got %v, and %v was reported", err, damage)
	}
	file := s.sealed.set.Parts()[0].File
	name := filepath.Join(dir, file.Ref().Hash.String()+".seg")
	whole, err := os.ReadFile(name)
	must.Do(t, err)
	at := bytes.Index(whole, sealed[100])
	for _, byteAt := range []int{at - 12, at - 4, at, at + 1, at + 40, at + len(sealed[100]) - 1} {
		damage = nil
		flipByte(t, name, int64(byteAt))
		if err := search(key); !errors.Is(err, segment.ErrCorrupt) || !errors.Is(damage, segment.ErrCorrupt) {
			t.Errorf("byte %d of %d: got %v, and %v was reported", byteAt-at, len(sealed[100]), err, damage)
		}
		flipByte(t, name, int64(byteAt))
		if err := search(key); err != nil {
			t.Errorf("without damage: %v", err)
		}
	}
}

func flipByte(t *testing.T, name string, at int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	must.Do(t, err)
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	if b[0] ^= 1; err == nil {
		_, err = f.WriteAt(b[:], at)
	}
	must.Do(t, err)
}

// The gallery that was searched longest ago is the first whose rows go, and the one that was searched
// last the first whose rows come back.
func TestColdestGalleryLeavesFirst(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 1000), testKey(t, 1)
	other := id.Gallery{UUID: id.UUID{7}}
	must.Do(t, s.Grant(Grant{other, 1, 1000}))
	r := rand.New(rand.NewPCG(6, 6))
	for n := range 300 {
		template := randomTemplate(r, testDim)
		put(t, s, newEvent(key, n, template))
		e := newEvent(key, 5000+n, template)
		e.Gallery = other
		e.Sealed = SealFace(key, FaceRef{other, 1, e.Subject, e.Event, 0}, engine.Face{Template: template})
		put(t, s, e)
	}
	for _, g := range []id.Gallery{testGallery, other} {
		if _, err := s.Search(t.Context(), g, 1, key, Query{Probe: axis(1), Limit: 1}); err != nil {
			t.Fatal(err)
		}
	}
	s.state.slices[testGallery].searched.Store(1000)
	s.state.slices[other].searched.Store(2000)
	if at, ok := s.NextExact(false); !ok || at != 1000 {
		t.Errorf("the next was searched at %d, %v", at, ok)
	}
	if s.Chill() == 0 || s.state.slices[testGallery].templates.cold() == 0 || s.state.slices[other].templates.cold() != 0 {
		t.Error("the rows of the gallery that was searched last went first")
	}
	chilled(t, s)
	if _, ok := s.NextExact(false); ok {
		t.Error("there is more to release")
	}
	before := s.state.slices[testGallery].templates.cold()
	for s.state.slices[other].templates.cold() > 0 {
		if taken, err := s.Thaw(t.Context()); taken == 0 || err != nil || s.state.slices[testGallery].templates.cold() != before {
			t.Fatalf("the rows of the gallery that was searched last stay away: %d bytes came, %v", taken, err)
		}
	}
}

// A search finds an event that comes while it scans, and whose exact row goes to disk at once.
func TestColdEventDuringSearchIsFound(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 1000), testKey(t, 1)
	r := rand.New(rand.NewPCG(8, 8))
	for n := range 400 {
		put(t, s, newEvent(key, n, randomTemplate(r, testDim)))
	}
	if err := s.Warm(t.Context(), testGallery, 1, key); err != nil || chilled(t, s) == 0 {
		t.Fatalf("%v, %d rows on disk", err, s.ColdRows())
	}
	sl, done, err := s.enter(testGallery, 1)
	must.Do(t, err)
	defer done()
	parts := partsOf(s, sl, &Query{Probe: axis(3), Threshold: s.table.Score(.99), Limit: 5})
	defer parts.leave()
	must.Do(t, parts.open(t.Context(), key))
	defer parts.end()
	must.Do(t, parts.scan(t.Context()))
	before := s.ColdRows()
	same := put(t, s, newEvent(key, 500, axis(3)))
	put(t, s, newEvent(key, 501, axis(4)))
	must.Do(t, parts.open(t.Context(), key))
	if n := s.ColdRows(); n != before+2 {
		t.Fatalf("%d rows are on disk, %d before: the new ones are not among them", n, before)
	}
	ok, err := parts.settle(key)
	if err != nil || !ok {
		t.Fatalf("the search does not see the writes: %v", err)
	}
	if hits, err := parts.combine(key); err != nil || len(hits) != 1 || hits[0].Event != same.Event {
		t.Errorf("hits %v, %v, want the new event", hits, err)
	}
}

// A fetch waits until the disk has a place for its readers, as long as its search lasts.
func TestFetchWaitsForPlaceAtDisk(t *testing.T) {
	t.Parallel()
	s, key := newKeptShard(t, 10), testKey(t, 1)
	e := put(t, s, newEvent(key, 1, axis(1)))
	frozenInto(t, s, segment.Share)
	must.Do(t, s.Warm(t.Context(), testGallery, 1, key))
	sl, done, err := s.enter(testGallery, 1)
	must.Do(t, err)
	defer done()
	var got atomic.Int64
	fetch := func(ctx context.Context) error {
		return sl.source.Fetch(ctx, []record.Row{sl.First(e.Subject)}, func(int, []float32) { got.Add(1) })
	}
	var turns []*fair.Turn
	for range readsMax {
		turn, err := reads.Enter(t.Context(), id.Tenant{})
		must.Do(t, err)
		turns = append(turns, turn)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := fetch(ctx); !errors.Is(err, context.DeadlineExceeded) || got.Load() != 0 {
		t.Errorf("without a place: %d rows, %v", got.Load(), err)
	}
	for _, turn := range turns {
		turn.End()
	}
	if err := fetch(t.Context()); err != nil || got.Load() != 1 {
		t.Errorf("with a place: %d rows, %v", got.Load(), err)
	}
}

// A row that goes while it is fetched is left out. One that stays and can't be read is an error.
func TestFetchLeavesOutGoneRows(t *testing.T) {
	t.Parallel()
	s, key := newKeptShard(t, 10), testKey(t, 1)
	kept, gone := put(t, s, newEvent(key, 1, axis(1))), put(t, s, newEvent(key, 2, axis(2)))
	frozenInto(t, s, segment.Share)
	must.Do(t, s.Warm(t.Context(), testGallery, 1, key))
	sl, done, err := s.enter(testGallery, 1)
	must.Do(t, err)
	defer done()
	rows := []record.Row{sl.First(kept.Subject), sl.First(gone.Subject)}
	must.Do(t, s.Erase(Erasure{testGallery, 1, gone.Subject, 9}))
	frozenInto(t, s, segment.Erase)
	var got [2]atomic.Bool
	fetch := func() error {
		return sl.source.Fetch(t.Context(), rows, func(i int, template []float32) {
			got[i].Store(slices.Equal(template, axis(1)))
		})
	}
	if err := fetch(); err != nil || !got[0].Load() || got[1].Load() {
		t.Errorf("fetched %v and %v, %v, want the first row", got[0].Load(), got[1].Load(), err)
	}
	old := s.sealed.swap(nil, newFaces())
	if err := fetch(); !errors.Is(err, segment.ErrMissing) {
		t.Errorf("a row that is lost: %v, want ErrMissing", err)
	}
	s.sealed.swap(old, s.state.faces)
}
