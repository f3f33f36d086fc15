package kernel

import (
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

// newTable makes a curve like a pack's, by which many similarities share a score.
func newTable(t testing.TB) *score.Table {
	t.Helper()
	table, err := score.NewTable([]score.Point{
		{Cosine: -1},
		{Cosine: 0},
		{Cosine: .25, Score: 4000},
		{Cosine: .482, Score: 7000},
		{Cosine: score.Same, Score: score.Max},
		{Cosine: 1, Score: score.Max},
	})
	must.Do(t, err)
	return table
}

func unit(r *rand.Rand, dim int) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return normalise(v)
}

func normalise(v []float32) []float32 {
	var norm float64
	for _, x := range v {
		norm += float64(x) * float64(x)
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(norm))
	}
	return v
}

// near returns a unit vector whose cosine with v is about cos.
func near(r *rand.Rand, v []float32, cos float64) []float32 {
	u := unit(r, len(v))
	for i := range u {
		u[i] = float32(cos*float64(v[i]) + math.Sqrt(1-cos*cos)*float64(u[i]))
	}
	return normalise(u)
}

// event is an event of a test.
type event struct {
	Subject id.Subject
	Event   id.Event
	Tags    []uint32
}

func eventOf(r *rand.Rand, i int) *event {
	o := &event{
		Subject: id.Subject{UUID: id.UUID{byte(r.IntN(100)), byte(r.IntN(3))}},
		Event:   id.Event{UUID: id.UUID{byte(i >> 16), byte(i >> 8), byte(i)}},
	}
	for range r.IntN(3) {
		if tag := uint32(r.IntN(70)); !slices.Contains(o.Tags, tag) {
			o.Tags = append(o.Tags, tag)
		}
	}
	return o
}

// twin is a matrix and the rows that should be in it.
type twin struct {
	table *score.Table
	m     *Matrix
	list  *OwnerList
	rows  map[int]scan.Row // by slot
	vault *vault
	lacks bool // vault doesn't have all rows
}

func newTwin(t testing.TB, dim int) *twin {
	t.Helper()
	return newSuitedTwin(t, dim, nil)
}

// newSuitedTwin is newTwin with a spectrum, if there is one.
func newSuitedTwin(t testing.TB, dim int, spectrum []float64) *twin {
	t.Helper()
	arena := NewArena(0)
	if spectrum != nil {
		must.Do(t, arena.Suit(spectrum))
	}
	return newTwinOf(t, arena, dim)
}

// newTwinOf is newTwin in an arena of its own.
func newTwinOf(t testing.TB, arena *Arena, dim int) *twin {
	t.Helper()
	list := new(OwnerList)
	m, err := New(arena, dim, list)
	must.Do(t, err)
	t.Cleanup(func() {
		m.Free()
		if n := arena.Used(); n != 0 {
			t.Errorf("%d bytes in use at the end", n)
		}
		if err := arena.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &twin{newTable(t), m, list, map[int]scan.Row{}, &vault{rows: map[uint32][]float32{}}, false}
	m.Attach(w.vault)
	return w
}

func (w *twin) add(t testing.TB, o *event, v []float32) int {
	t.Helper()
	number := w.own(o)
	w.vault.put(number, v)
	slot, err := w.m.Add(number, v)
	must.Do(t, err)
	if _, there := w.rows[slot]; there {
		t.Fatalf("slot %d was given twice", slot)
	}
	w.rows[slot] = scan.Row{Subject: o.Subject, Event: o.Event, Tags: o.Tags, Template: v}
	return slot
}

// own returns the number of an event as an owner.
func (w *twin) own(o *event) uint32 {
	return w.list.Add(&Owner{Subject: o.Subject, Event: o.Event}, o.Tags)
}

func (w *twin) erase(slot int) {
	w.m.Erase(slot)
	delete(w.rows, slot)
}

// fill adds n random rows.
func (w *twin) fill(t testing.TB, r *rand.Rand, n int) (slots []int) {
	t.Helper()
	for i := range n {
		slots = append(slots, w.add(t, eventOf(r, i), unit(r, w.m.Dim())))
	}
	return slots
}

// eraseOne erases one of some rows.
func (w *twin) eraseOne(r *rand.Rand, slots []int) []int {
	i := r.IntN(len(slots))
	w.erase(slots[i])
	return slices.Delete(slots, i, i+1)
}

// prepared returns a search of a kernel.
func (w *twin) prepared(t testing.TB, q scan.Query, k *kernel) *search {
	t.Helper()
	s, err := w.m.newSearch(w.table, &request{query: q}, k)
	must.Do(t, err)
	return s
}

// agreeAll demands that every kernel gives what the plain scan gives, for searches of one pass.
func (w *twin) agreeAll(t testing.TB, qs []request) {
	t.Helper()
	want := make([][]scan.Hit, len(qs))
	for i, q := range qs {
		want[i] = scan.TopK(maps.Values(w.rows), w.table, q.query)
	}
	for _, k := range kernels() {
		searches, err := w.m.searchAll(w.table, qs, &k)
		must.Do(t, err)
		for i, q := range qs {
			got, err := searches[i].result()
			if err != nil || !slices.Equal(got, want[i]) {
				t.Fatalf("%s, dimension %d, coding %+v, %d of %d, %+v:\ngot  %v, error %v\nwant %v", k.name, w.m.Dim(), w.m.coding, i, len(qs), q.query, got, err, want[i])
			}
			w.wentOnce(t, searches[i])
		}
	}
}

// run takes a search through all chunks.
func run(t testing.TB, m *Matrix, s *search) []scan.Hit {
	t.Helper()
	m.pass([]*search{s}, nil)
	hits, err := s.result()
	must.Do(t, err)
	return hits
}

// agree demands that every kernel gives what the plain scan gives.
func (w *twin) agree(t testing.TB, q scan.Query) {
	t.Helper()
	want := scan.TopK(maps.Values(w.rows), w.table, q)
	for _, k := range kernels() {
		s := w.prepared(t, q, &k)
		if got := run(t, w.m, s); !slices.Equal(got, want) {
			t.Fatalf("%s, %d rows of %d, threshold %d, limit %d, tags %v, by subject %v, after %v:\ngot  %v\nwant %v",
				k.name, len(w.rows), w.m.Dim(), q.Threshold, q.Limit, q.Tags, q.BySubject, q.After, got, want)
		}
		w.wentOnce(t, s)
	}
}

// wentOnce demands that the search did not count on more than it found.
func (w *twin) wentOnce(t testing.TB, s *search) {
	t.Helper()
	if s.top.sure && !w.lacks {
		t.Errorf("%+v: certified rows were not found", s.top.query)
	}
}

func randomQuery(r *rand.Rand, v []float32) scan.Query {
	q := scan.Query{Probe: v, Limit: 1 + r.IntN(12), BySubject: r.IntN(2) == 0}
	if r.IntN(3) == 0 {
		q.After = &id.Subject{UUID: id.UUID{byte(r.IntN(110)), byte(r.IntN(3))}}
	}
	if r.IntN(3) > 0 {
		q.Threshold = r.IntN(score.Max + 1)
	}
	if r.IntN(3) == 0 {
		for range 1 + r.IntN(2) {
			q.Tags = append(q.Tags, uint32(r.IntN(75)))
		}
	}
	return q
}

func TestSearchEqualsPlainScan(t *testing.T) {
	t.Parallel()
	for _, dim := range []int{1, 2, 8, 17, 63, 128, 257, 512} {
		r := rand.New(rand.NewPCG(uint64(dim), 1))
		w := newTwin(t, dim)
		centres := centresOf(r, dim)
		for range 30 {
			w.mixed(t, r, centres, 45)
			w.agree(t, randomQuery(r, near(r, centres[r.IntN(len(centres))], .5+r.Float64()/2)))
		}
		for slot, row := range w.rows {
			if got, ok := w.m.At(slot); !ok || !slices.Equal(got, row.Template) {
				t.Fatalf("dimension %d, slot %d: got %v, want %v", dim, slot, got, row.Template)
			}
		}
	}
}

// A row whose upper half excludes it costs half of the lines.
func TestLowerHalvesAreReadOfFewRows(t *testing.T) {
	t.Parallel()
	const dim, n = 128, 20_000
	r := rand.New(rand.NewPCG(dim, 4))
	w := newTwin(t, dim)
	w.fill(t, r, n)
	q := scan.Query{Probe: unit(r, dim), Limit: 10, Threshold: w.table.Score(.5)}
	for _, k := range kernels() {
		if k.groups == nil {
			continue
		}
		inner, upper, lower := k.rows, 0, 0
		k.rows = func(r *rows) {
			if len(r.rows)%r.stride == 0 {
				upper += len(r.list)
			} else {
				lower += len(r.list)
			}
			inner(r)
		}
		s := w.prepared(t, q, &k)
		run(t, w.m, s)
		if upper < n/50 || lower > upper/8 {
			t.Errorf("%s: %d upper halves were read, and %d lower ones", k.name, upper, lower)
		}
	}
}

func TestBatchedSearchesEqualLoneOnes(t *testing.T) {
	t.Parallel()
	for _, dim := range []int{16, 100, 192} {
		r := rand.New(rand.NewPCG(uint64(dim), 2))
		w := newTwin(t, dim)
		const n = 5000
		centre := unit(r, dim)
		var slots []int
		for i := range n {
			v := unit(r, dim)
			if r.IntN(50) == 0 {
				v = near(r, centre, r.Float64())
			}
			if r.IntN(500) == 0 {
				v[0] *= 3 // not of unit norm
			}
			slots = append(slots, w.add(t, eventOf(r, i), v))
		}
		for range 200 {
			slots = w.eraseOne(r, slots)
		}
		for _, count := range []int{5, 19} {
			qs := make([]request, count)
			for i := range qs {
				qs[i].query = randomQuery(r, near(r, centre, r.Float64()))
			}
			w.agreeAll(t, qs)
		}
	}
}
