package kernel

import (
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"facet/internal/must"
	"facet/shard/scan"
)

// slices of one gallery, each with subjects of its own.
func newTwins(t *testing.T, r *rand.Rand, dim, n, rows int) []*twin {
	t.Helper()
	centres := centresOf(r, dim)
	twins := make([]*twin, n)
	for at := range twins {
		w := newTwin(t, dim)
		for i := range rows {
			v := unit(r, dim)
			switch r.IntN(8) {
			case 0, 1:
				v = near(r, centres[r.IntN(3)], r.Float64())
			case 2:
				v = slices.Clone(centres[r.IntN(3)])
			case 3:
				v = near(r, centres[0], .8)
			}
			o := eventOf(r, i)
			o.Subject.UUID[2], o.Event.UUID[3] = byte(at), byte(at)
			w.add(t, o, v)
		}
		w.chill(r, .7)
		twins[at] = w
	}
	return twins
}

func rowsOf(twins []*twin) iter.Seq[scan.Row] {
	return func(yield func(scan.Row) bool) {
		for _, w := range twins {
			for row := range maps.Values(w.rows) {
				if !yield(row) {
					return
				}
			}
		}
	}
}

// joined returns the first hits of all lists.
func joined(lists [][]scan.Hit, q *scan.Query) []scan.Hit {
	all := slices.Concat(lists...)
	slices.SortFunc(all, q.Compare)
	return all[:min(len(all), q.Limit)]
}

// Searches that share a floor find together what the definition finds in all rows, one after the other
// and at once.
func TestSharedFloorEqualsPlainScan(t *testing.T) {
	t.Parallel()
	for _, dim := range []int{7, 64, 192} {
		r := rand.New(rand.NewPCG(uint64(dim), 90))
		twins := newTwins(t, r, dim, 4, 700)
		raised := 0
		for n := range 30 {
			q := randomQuery(r, near(r, twins[0].rows[r.IntN(100)].Template, .5+r.Float64()/2))
			if n%3 == 0 {
				q.Threshold = 0
			}
			want := scan.TopK(rowsOf(twins), twins[0].table, q)
			for _, k := range kernels() {
				q.Floor = scan.NewFloor(q.Limit)
				lists, searches := make([][]scan.Hit, len(twins)), make([]*search, len(twins))
				var work sync.WaitGroup
				for i, at := range r.Perm(len(twins)) {
					s, err := twins[at].m.newSearch(twins[at].table, &request{query: q}, &k)
					must.Do(t, err)
					searches[i] = s
					if work.Go(func() { lists[i] = run(t, twins[at].m, s) }); n%2 == 0 {
						work.Wait()
					}
				}
				work.Wait()
				if got := joined(lists, &q); !slices.Equal(got, want) {
					t.Fatalf("%s, %d numbers, query %d %+v, least %d:\ngot  %v\nwant %v", k.name, dim, n, q, q.Floor.Least(), got, want)
				}
				for i, s := range searches {
					twins[i].wentOnce(t, s)
				}
				if least := q.Floor.Least(); least > 0 {
					raised++
					if want[q.Limit-1].Score < least {
						t.Fatalf("%s: the floor is %d, the last hit %v", k.name, least, want[q.Limit-1])
					}
				}
			}
		}
		if raised == 0 {
			t.Error("no floor rose")
		}
	}
}

func TestSharedFloorSparesFetches(t *testing.T) {
	t.Parallel()
	const dim, count = 128, 16
	r := rand.New(rand.NewPCG(dim, 91))
	twins := newTwins(t, r, dim, count, 1200)
	fetched := func(q scan.Query) (n int) {
		for _, w := range twins {
			w.vault.fetched = 0
			if _, err := w.m.Search(w.table, q); err != nil {
				t.Fatal(err)
			}
			n += w.vault.fetched
		}
		return n
	}
	q := scan.Query{Probe: unit(r, dim), Limit: 10}
	alone := fetched(q)
	q.Floor = scan.NewFloor(q.Limit)
	if shared := fetched(q); shared > alone/3 {
		t.Errorf("%d rows were fetched with a shared floor, %d without", shared, alone)
	}
}

func TestPassWithSharedFloorsEqualsPlainScan(t *testing.T) {
	t.Parallel()
	const dim, count = 64, batchMax
	r := rand.New(rand.NewPCG(dim, 92))
	twins := newTwins(t, r, dim, 3, laneSlots+900)
	for _, k := range kernels() {
		qs := make([]request, count)
		for i := range qs {
			q := scan.Query{Probe: near(r, twins[0].rows[i].Template, .7), Limit: 1 + r.IntN(40), BySubject: i%2 == 0, Threshold: 3000 * (i % 3)}
			q.Floor = scan.NewFloor(q.Limit)
			qs[i].query = q
		}
		lists := make([][][]scan.Hit, count)
		for _, w := range twins {
			searches, err := w.m.searchAll(w.table, qs, &k)
			must.Do(t, err)
			for i, s := range searches {
				hits, err := s.result()
				must.Do(t, err)
				lists[i] = append(lists[i], hits)
				w.wentOnce(t, s)
			}
		}
		for i := range qs {
			q := &qs[i].query
			want := scan.TopK(rowsOf(twins), twins[0].table, *q)
			if got := joined(lists[i], q); !slices.Equal(got, want) {
				t.Fatalf("%s, query %d %+v:\ngot  %v\nwant %v", k.name, i, q, got, want)
			}
		}
	}
}
