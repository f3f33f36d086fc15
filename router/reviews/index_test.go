package reviews

import (
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/shard/job"
	"facet/shard/seal"
)

// shelf is a book with the cases of galleries, and an index of each.
type shelf struct {
	t    *testing.T
	r    *CaseRequests
	book *job.Book
	key  *seal.Key
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeyBytes))
	must.Do(t, err)
	r := &CaseRequests{work: newCaseWork()}
	return &shelf{t, r, job.New(), key}
}

// of returns the cases of the n-th gallery, which belongs to a tenant.
func (s *shelf) of(n, tenant byte) *caseBook {
	name := shardfsm.JobName{Gallery: id.Gallery{UUID: id.UUID{n}}, Generation: 1, Batch: id.Batch{UUID: id.UUID{9, n}}}
	return &caseBook{r: s.r, jobs: s.book, name: name, key: s.key, tenant: id.Tenant{UUID: id.UUID{tenant}}}
}

// put replaces the item of a gallery by a case, or frees it.
func (s *shelf) put(b *caseBook, index int, old []byte, c *job.Case) (sealed []byte) {
	s.t.Helper()
	if c != nil {
		sealed = job.SealCase(s.key, b.name.Gallery, b.name.Generation, c)
	}
	_, err := s.book.Put(job.Put{Name: job.Name(b.name), Kind: job.Cases, Index: uint32(index), Old: old, New: sealed, Time: 1})
	must.Do(s.t, err)
	return sealed
}

// look calls f with the index of a gallery.
func (s *shelf) look(b *caseBook, f func(*caseIndex)) {
	s.t.Helper()
	must.Do(s.t, b.look(s.t.Context(), f))
}

// TestIndexEqualsItsRecords changes cases as leaders, rounds of erasure and snapshots do, and compares the index with
// a plain list.
func TestIndexEqualsItsRecords(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	b := s.of(1, 1)
	random := rand.New(rand.NewPCG(3, 1))
	var plain []caseItem
	var ever []job.Case
	for step := range 3000 {
		index := random.IntN(min(len(plain)+1, 60))
		if index == len(plain) {
			plain = append(plain, caseItem{})
		}
		old := plain[index]
		next := &job.Case{
			ID: id.UUID{1, byte(step >> 8), byte(step)}, Application: id.Application{UUID: id.UUID{byte(random.IntN(2))}},
			Subject: id.Subject{UUID: id.UUID{byte(1 + random.IntN(3))}}, Created: int64(random.IntN(90_000)), Expires: 50_000 + int64(random.IntN(90_000)),
			Probe: [16]byte{byte(random.IntN(20))}, Reference: []string{"", "a", "b"}[random.IntN(3)], Needed: 1,
		}
		switch random.IntN(6) {
		case 0:
			next = nil
		case 1, 2:
			if len(old.sealed) > 0 {
				*next = old.Decided(job.Verdict{Time: old.Created})
			}
		case 3:
			if len(old.sealed) > 0 {
				*next = old.Erased(90_000)
			}
		}
		if next != nil && next.ID != old.ID && slices.ContainsFunc(plain, func(i caseItem) bool { // it is the same case
			return len(i.sealed) > 0 && i.State == job.CaseOpen && sharesName(&i.Case, next)
		}) {
			next.Probe, next.Reference = [16]byte{}, ""
		}
		plain[index] = caseItem{sealed: s.put(b, index, old.sealed, next)}
		if next != nil {
			plain[index].Case = *next
			ever = append(ever, *next)
		}
		if random.IntN(3) == 0 {
			continue // several changes before a look
		}
		s.look(b, func(x *caseIndex) { compareIndex(t, x, plain, ever, 80_000) })
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
	}
}

// compareIndex compares an index with a list of items at a time. ever are all cases that there were.
func compareIndex(t *testing.T, x *caseIndex, plain []caseItem, ever []job.Case, now int64) {
	t.Helper()
	var all, open []job.Case
	recent := map[id.Application]int{}
	for _, i := range plain {
		if len(i.sealed) == 0 {
			continue
		}
		c := i.At(now)
		if all = append(all, c); c.State == job.CaseOpen {
			open = append(open, c)
		}
		if c.Created > now-60_000 {
			recent[c.Application]++
		}
		if got := x.page(listCasesQuery{Only: c.ID}, now); len(got.Cases) != 1 || got.Cases[0].ID != c.ID || got.Cases[0].State != c.State {
			t.Errorf("case %v: %+v, want %+v", c.ID, got, c)
		}
	}
	for _, list := range [][]job.Case{all, open} {
		slices.SortFunc(list, func(a, b job.Case) int {
			return cmp.Or(cmp.Compare(a.Created, b.Created), bytes.Compare(a.ID[:], b.ID[:]))
		})
	}
	ids := func(list []job.Case) (ids []id.UUID) {
		for _, c := range list {
			ids = append(ids, c.ID)
		}
		return ids
	}
	for filter, want := range map[router.CaseFilter][]job.Case{router.AnyCase: all, router.OpenCases: open} {
		got := x.page(listCasesQuery{Filter: filter, Length: 1000}, now)
		if !slices.Equal(ids(got.Cases), ids(want)) || got.Total != len(want) || got.More {
			t.Errorf("filter %d: %v of %d, want %v", filter, ids(got.Cases), got.Total, ids(want))
		}
	}
	if o := x.figures(now); o.number != len(open) || len(open) > 0 && o.oldest != open[0].Created {
		t.Errorf("%d are open, the oldest from %d; want %v", o.number, o.oldest, ids(open))
	}
	for n := range byte(2) {
		if app := (id.Application{UUID: id.UUID{n}}); x.mayOpen(app, now) != (recent[app] < casesPerMinute) {
			t.Errorf("application %d may open another case: %v, of %d", n, x.mayOpen(app, now), recent[app])
		}
	}
	for _, c := range ever[max(0, len(ever)-200):] {
		c.ID = id.UUID{255} // another request
		got, ok := x.known(&c, now)
		same := slices.ContainsFunc(open, func(o job.Case) bool { return (!ok || o.ID == got) && sharesName(&o, &c) })
		if ok != same {
			t.Errorf("a doubt like %+v belongs to %v, %v", c, got, ok)
		}
	}
}

// sharesName reports whether a doubt of one case belongs to the other.
func sharesName(a, b *job.Case) bool {
	return slices.ContainsFunc(sames(a), func(s caseSame) bool { return slices.Contains(sames(b), s) })
}

// TestIndexFollowsMovedCases looks after several changes at once, which the index takes over in the order of items.
func TestIndexFollowsMovedCases(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	b := s.of(1, 1)
	moved := &job.Case{ID: id.UUID{7}, Expires: 90}
	at0 := s.put(b, 0, nil, &job.Case{ID: id.UUID{1}, Expires: 90})
	at1 := s.put(b, 1, nil, moved)
	s.look(b, func(*caseIndex) {})
	s.put(b, 1, at1, nil)
	s.put(b, 0, at0, nil)
	s.put(b, 0, nil, moved)
	s.look(b, func(x *caseIndex) {
		if got := x.page(listCasesQuery{Only: moved.ID}, 1); len(got.Cases) != 1 {
			t.Error("a case that moved to an earlier item is not found by its id")
		}
	})
	s.put(b, 2, nil, &job.Case{ID: id.UUID{2}, Created: 20, Expires: 90, Reference: "r"})
	s.put(b, 3, nil, &job.Case{ID: id.UUID{3}, Expires: 10, Reference: "r"})
	s.look(b, func(x *caseIndex) {
		if got, _ := x.known(&job.Case{ID: id.UUID{4}, Reference: "r"}, 30); got != (id.UUID{2}) {
			t.Errorf("the open case is %v; an expired one at a later item hides it", got)
		}
	})
}

// TestUnknownCaseOpensNoOther asks with a key that opens nothing, so that an answer is proof.
func TestUnknownCaseOpensNoOther(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	b := s.of(1, 1)
	for i := range 100 {
		s.put(b, i, nil, &job.Case{ID: id.UUID{byte(1 + i)}, Expires: 9})
	}
	s.look(b, func(*caseIndex) {})
	var err error
	if b.key, err = seal.NewKey(make([]byte, seal.KeyBytes)); err != nil {
		t.Fatal(err)
	}
	s.look(b, func(x *caseIndex) {
		if got := x.page(listCasesQuery{Only: id.UUID{200}}, 1); len(got.Cases) != 0 {
			t.Errorf("an unknown case: %+v", got)
		}
		if got := x.page(listCasesQuery{Only: id.UUID{7}}, 1); len(got.Cases) != 1 {
			t.Errorf("a known case: %+v", got)
		}
	})
	s.put(b, 100, nil, &job.Case{ID: id.UUID{101}})
	if err := b.look(t.Context(), func(*caseIndex) {}); !errors.Is(err, seal.ErrOpen) {
		t.Errorf("a new case is opened with the key: %v", err)
	}
}

// TestLargestTenantGivesWay reads the cases of many galleries.
func TestLargestTenantGivesWay(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const quiet, flood, galleries = 1, 2, indexedCasesMax/router.CasesMax + 3
	s.put(s.of(200, quiet), 0, nil, &job.Case{ID: id.UUID{1}})
	s.look(s.of(200, quiet), func(*caseIndex) {})
	held := func(n byte) int { return len(s.r.work.of(s.of(n, 0).name.Batch).index.items) }
	for n := range byte(galleries) {
		b := s.of(n, flood)
		s.put(b, 0, nil, &job.Case{ID: id.UUID{1}})
		s.look(b, func(x *caseIndex) {
			x.items = append(x.items, make([]caseItem, router.CasesMax-1)...) // as if there were so many
		})
		s.put(b, 1, nil, &job.Case{ID: id.UUID{2}})
		s.look(b, func(*caseIndex) {})
		all := 0
		for i := range n + 1 {
			all += held(i)
		}
		if all > indexedCasesMax || held(200) != 1 {
			t.Fatalf("after %d galleries: %d cases are kept, of the quiet tenant %d", n+1, all, held(200))
		}
	}
	if held(0) != 0 || held(galleries-1) == 0 {
		t.Errorf("the first gallery has %d cases, the last %d", held(0), held(galleries-1))
	}
}
