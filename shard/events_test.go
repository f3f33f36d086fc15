package shard

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/seal"
)

// further is the n-th event, of another's subject.
func further(key *seal.Key, of Event, n int, template engine.Template) Event {
	e := newEvent(key, n, template)
	e.Subject = of.Subject
	e.Sealed = SealFace(key, FaceRef{e.Gallery, e.Generation, e.Subject, e.Event, 0}, engine.Face{Template: template})
	return e
}

func add(t testing.TB, s *Shard, e Event) Event {
	t.Helper()
	if err := s.Add(e, FreeSlots); err != nil {
		t.Fatalf("add event %s: %v", e.Event, err)
	}
	return e
}

// replacement of an event, for the first time.
func replacement(key *seal.Key, of Event, time int64, template engine.Template) Replacement {
	ref := FaceRef{of.Gallery, of.Generation, of.Subject, of.Event, 1}
	return Replacement{
		Gallery: of.Gallery, Generation: of.Generation, Subject: of.Subject, Event: of.Event, Time: time,
		Revision: 1, Sealed: SealFace(key, ref, engine.Face{Template: template}),
	}
}

func update(t testing.TB, s *Shard, r Replacement) {
	t.Helper()
	if _, err := s.Update(r); err != nil {
		t.Fatalf("update event %s: %v", r.Event, err)
	}
}

func entriesOf(s *Shard) []Entry {
	return s.ListEvents(testGallery, 0, 1000, Ascending).Entries
}

// reloaded returns a shard from a snapshot of s.
func reloaded(t testing.TB, s *Shard) *Shard {
	t.Helper()
	l, err := loaded(records(t, s.Freeze()), nil)
	must.Do(t, err)
	out := New(s.table, s.arena)
	out.Replace(l)
	return out
}

// The deleted entry comes directly before the new one.
func TestUpdateLeavesDeletedEntry(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 10), testKey(t, 1)
	a := put(t, s, newEvent(key, 1, axis(1)))
	b := put(t, s, newEvent(key, 2, axis(2)))
	update(t, s, replacement(key, a, 7, axis(3)))
	want := []Entry{{b.Subject, b.Event, false, 2}, {a.Subject, a.Event, true, 7}, {a.Subject, a.Event, false, 7}}
	if diff := cmp.Diff(want, entriesOf(s)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	for probe, want := range map[int]int{1: 0, 3: 1} {
		if hits, err := search(s, key, axis(probe)); err != nil || len(hits) != want {
			t.Errorf("search for face %d: got %v, %v, want %d hits", probe, hits, err, want)
		}
	}
}

func TestUpdateNeedsNoSlot(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 2), testKey(t, 1)
	a := put(t, s, newEvent(key, 1, axis(1)))
	b := put(t, s, newEvent(key, 2, axis(2)))
	update(t, s, replacement(key, a, 3, axis(3))) // recycles the very entry that it makes
	want := []Entry{{b.Subject, b.Event, false, 2}, {a.Subject, a.Event, false, 3}}
	if diff := cmp.Diff(want, entriesOf(s)); diff != "" {
		t.Errorf("full (-want +got):\n%s", diff)
	}
	must.Do(t, s.Erase(Erasure{testGallery, 1, a.Subject, 4}))
	update(t, s, replacement(key, b, 5, axis(4))) // recycles the oldest deleted entry
	want = []Entry{{b.Subject, b.Event, true, 5}, {b.Subject, b.Event, false, 5}}
	if diff := cmp.Diff(want, entriesOf(s)); diff != "" {
		t.Errorf("full with a deleted entry (-want +got):\n%s", diff)
	}
}

// Neither updates nor snapshots change the order of a subject's events.
func TestOldestEventStaysOldest(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 20), testKey(t, 1)
	a := put(t, s, newEvent(key, 1, axis(1)))
	b := add(t, s, further(key, a, 2, axis(2)))
	c := add(t, s, further(key, a, 3, axis(3)))
	r := replacement(key, a, 4, axis(4))
	r.Oldest = true
	update(t, s, r)
	update(t, s, replacement(key, b, 5, axis(5)))
	for name, s := range map[string]*Shard{"now": s, "restored": reloaded(t, s)} {
		events, err := s.Events(testGallery, 1, a.Subject)
		want := []Active{{Event: a.Event, Revision: 1, Time: 4}, {Event: b.Event, Revision: 1, Time: 5}, {Event: c.Event, Time: 3}}
		if diff := cmp.Diff(want, events); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if events, err := s.Events(testGallery, 1, id.Subject{}); len(events) > 0 || err != nil {
			t.Errorf("%s: an unknown subject has events: %v, %v", name, events, err)
		}
		if _, err := s.Events(testGallery, 2, a.Subject); !errors.Is(err, ErrGeneration) {
			t.Errorf("%s: another generation: %v", name, err)
		}
	}
	r = replacement(key, b, 6, axis(6))
	r.Oldest, r.Revision = true, 2
	if now, err := s.Update(r); !errors.Is(err, ErrMoved) || now.Event != a.Event || now.Revision != 1 {
		t.Errorf("not the oldest: got %+v, %v", now, err)
	}
}

func TestTagsAreKeptOrReplaced(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 20), testKey(t, 1)
	e := newEvent(key, 1, axis(1))
	e.Tags = []uint32{7}
	put(t, s, e)
	f := func(revision uint32, keep bool, tags, want []uint32) {
		t.Helper()
		r := replacement(key, e, int64(revision), axis(1))
		r.Revision, r.KeepTags, r.Tags = revision, keep, tags
		update(t, s, r)
		if got, err := s.Events(testGallery, 1, e.Subject); err != nil || len(got) != 1 || !slices.Equal(got[0].Tags, want) {
			t.Errorf("revision %d: got %v, %v, want tags %v", revision, got, err, want)
		}
	}
	f(1, true, nil, []uint32{7})
	f(2, false, []uint32{8, 9}, []uint32{8, 9})
	f(3, false, nil, nil)
}

// A sealed face of an earlier revision does not open as a later one.
func TestEarlierFaceDoesNotReplaceLater(t *testing.T) {
	t.Parallel()
	key := testKey(t, 1)
	f := func(name string, sealed func(old Event, r Replacement) []byte) {
		t.Helper()
		s := newTestShard(t, 10)
		e := put(t, s, newEvent(key, 1, axis(1)))
		r := replacement(key, e, 2, axis(2))
		r.Sealed = sealed(e, r)
		update(t, s, r)
		if hits, err := search(s, key, axis(1)); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("%s: got %v, %v, want seal.ErrOpen", name, hits, err)
		}
	}
	f("of the registration", func(old Event, _ Replacement) []byte { return old.Sealed })
	f("of another revision", func(old Event, _ Replacement) []byte {
		ref := FaceRef{old.Gallery, old.Generation, old.Subject, old.Event, 2}
		return SealFace(key, ref, engine.Face{Template: axis(1)})
	})
}

func TestUpdateAndRemoveZeroTemplate(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 10), testKey(t, 1)
	planted := engine.Template{.125, -.25, .5, .0625, 15: .75}
	a := put(t, s, newEvent(key, 1, planted))
	b := add(t, s, further(key, a, 2, planted))
	if _, err := search(s, key, planted); err != nil {
		t.Fatal(err)
	}
	memory := [][]float32{inMemory(t, s, a), inMemory(t, s, b)}
	f := func(after string, want ...engine.Template) {
		t.Helper()
		for i, w := range want {
			if !slices.Equal(memory[i], w) {
				t.Errorf("after %s memory %d holds %v, want %v", after, i, memory[i], w)
			}
		}
	}
	f("search", planted, planted)
	update(t, s, replacement(key, a, 3, axis(5)))
	f("update", make(engine.Template, testDim), planted)
	must.Do(t, s.Remove(Removal{testGallery, 1, b.Subject, b.Event, 4, Heir{}}))
	f("remove", make(engine.Template, testDim), make(engine.Template, testDim))
}

func TestLastEventRemovesSubject(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 10), testKey(t, 1)
	a := put(t, s, newEvent(key, 1, axis(1)))
	b := add(t, s, further(key, a, 2, axis(2)))
	remove := func(e id.Event, time int64) error {
		return s.Remove(Removal{testGallery, 1, a.Subject, e, time, Heir{}})
	}
	if err := remove(id.Event{}, 3); !errors.Is(err, ErrEvent) {
		t.Errorf("an unknown event: %v", err)
	}
	for i, e := range []id.Event{a.Event, b.Event} {
		must.Do(t, remove(e, int64(4+i)))
	}
	for name, err := range map[string]error{
		"remove": remove(a.Event, 6), "add": s.Add(further(key, a, 3, axis(3)), FreeSlots),
		"erase": s.Erase(Erasure{testGallery, 1, a.Subject, 6}),
	} {
		if !errors.Is(err, ErrSubject) {
			t.Errorf("%s: got %v, want ErrSubject", name, err)
		}
	}
	if u := s.Usage(testGallery); u.Active != 0 || u.Deleted != 2 {
		t.Errorf("usage %+v", u)
	}
	put(t, s, newEvent(key, 1, axis(1))) // the subject is as free as any
}

func TestPendingEventNeedsItsOwnSearch(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 3), testKey(t, 1)
	active := put(t, s, newEvent(key, 1, axis(1)))
	e := newEvent(key, 2, axis(1))
	number, err := s.Hold(e, FreeSlots)
	must.Do(t, err)
	f := newEvent(key, 3, axis(2))
	f.Subject = active.Subject
	f.Sealed = SealFace(key, FaceRef{f.Gallery, 1, f.Subject, f.Event, 0}, engine.Face{Template: axis(2)})
	if _, err := s.HoldFurther(f, FreeSlots); err != nil {
		t.Fatal(err)
	}
	want := Usage{Granted: 3, Active: 1, Pending: 2}
	for name, s := range map[string]*Shard{"now": s, "restored": reloaded(t, s)} {
		if got := s.Usage(testGallery); got != want || got.Free() != 0 {
			t.Errorf("%s: usage %+v, want %+v", name, got, want)
		}
		if got := entriesOf(s); len(got) != 1 {
			t.Errorf("%s: listed %v", name, got)
		}
		hits, err := search(s, key, axis(1))
		if len(hits) != 1 || hits[0].Event != active.Event || err != nil {
			t.Errorf("%s: search: %v, %v", name, hits, err)
		}
		hits, err = s.SearchPending(context.Background(), testGallery, 1, key, Query{Probe: axis(1), Threshold: 9000, Limit: 10})
		if diff := cmp.Diff([]Hit{{Subject: e.Subject, Event: e.Event, Score: score.Max}}, hits); err != nil || diff != "" {
			t.Errorf("%s: search of what is pending: %v (-want +got):\n%s", name, err, diff)
		}
		if _, ok, err := s.Best(testGallery, key, e.Subject, Query{Probe: axis(1)}); ok || err != nil {
			t.Errorf("%s: compared with a pending subject: %v, %v", name, ok, err)
		}
		if _, err := s.SearchPending(context.Background(), testGallery, 1, testKey(t, 2), Query{Probe: axis(1), Limit: 1}); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("%s: with another key: %v", name, err)
		}
		if _, err := s.SearchPending(context.Background(), testGallery, 1, key, Query{Probe: axis(1)[:4], Limit: 1}); !errors.Is(err, ErrQuery) {
			t.Errorf("%s: a short probe: %v", name, err)
		}
	}
	if err := s.Put(newEvent(key, 4, axis(4)), OldestDeleted); !errors.Is(err, ErrNoSlot) {
		t.Errorf("a pending event does not hold its slot: %v", err)
	}
	_, err = s.Activate(PendingRef{Gallery: testGallery, Generation: 1, Subject: e.Subject, Event: e.Event, Number: number, Time: 9})
	if want := (Entry{e.Subject, e.Event, false, 9}); err != nil || entriesOf(s)[1] != want {
		t.Errorf("activated: %v, %v, want %v", entriesOf(s), err, want)
	}
	s.ExpirePending(3)
	if got := s.Usage(testGallery); got != (Usage{Granted: 3, Active: 2}) {
		t.Errorf("usage at the end %+v", got)
	}
}

func TestFenceZeroesTemplatesAndStopsReads(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 10), testKey(t, 1)
	e := put(t, s, newEvent(key, 1, axis(1)))
	if _, err := s.Hold(newEvent(key, 2, axis(2)), FreeSlots); err != nil {
		t.Fatal(err)
	}
	if _, err := search(s, key, axis(1)); err != nil {
		t.Fatal(err)
	}
	dropped := inMemory(t, s, e)
	if !slices.Contains(dropped, 1) {
		t.Fatal("the template is not in memory: the test can't see it")
	}
	if left := s.Fence(testGallery, 2); left != 1 {
		t.Errorf("%d entries are left, want 1", left)
	}
	if slices.Contains(dropped, 1) {
		t.Error("the template is still in memory")
	}
	_, searched := search(s, key, axis(1))
	_, pending := s.SearchPending(context.Background(), testGallery, 1, key, Query{Probe: axis(1), Limit: 1})
	_, events := s.Events(testGallery, 1, e.Subject)
	_, returned := s.Return(Return{Gallery: testGallery, Generation: 1, Granted: 5})
	for name, err := range map[string]error{
		"search": searched, "search of what is pending": pending, "events": events, "return": returned,
		"check": s.Check(testGallery, 1), "grant": s.Grant(Grant{testGallery, 1, 5}), "put": s.Put(e, FreeSlots),
		"epoch": s.CheckEpoch(testGallery, 1, 9), "withdraw": s.Withdraw(testGallery, 1, e.Subject, e.Event),
	} {
		if !errors.Is(err, ErrGeneration) {
			t.Errorf("%s: got %v, want ErrGeneration", name, err)
		}
	}
	if err := s.Grant(Grant{testGallery, 2, 5}); err != nil {
		t.Errorf("the next generation: %v", err)
	}
	if left := s.Fence(testGallery, 2); left != 1 || s.Check(testGallery, 2) != nil {
		t.Errorf("the same fence again: %d left, %v", left, s.Check(testGallery, 2))
	}
}

// Free slots are returned before those of deleted entries, and a repeated Return returns none.
func TestFreeSlotsAreReturnedOnce(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 6), testKey(t, 1)
	for n := range 4 {
		put(t, s, newEvent(key, n, axis(n)))
	}
	for n := range 2 {
		must.Do(t, s.Erase(Erasure{testGallery, 1, newEvent(key, n, axis(n)).Subject, int64(4 + n)}))
	}
	f := func(name string, r Return, want Usage) {
		t.Helper()
		r.Gallery, r.Generation = testGallery, 1
		if got, err := s.Return(r); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
	}
	f("keep all", Return{Granted: 6, Keep: 2}, Usage{Granted: 6, Active: 2, Deleted: 2})
	f("one free", Return{Granted: 6, Keep: 9, Least: 1}, Usage{Granted: 6, Returned: 1, Active: 2, Deleted: 2})
	f("the same, late", Return{Granted: 6, Keep: 0, Least: 9}, Usage{Granted: 6, Returned: 1, Active: 2, Deleted: 2})
	f("the other free one and a deleted one", Return{Granted: 6, Returned: 1, Least: 2}, Usage{Granted: 6, Returned: 3, Active: 2, Deleted: 1})
	f("a grant that was lost", Return{Granted: 8, Returned: 3, Keep: 1}, Usage{Granted: 8, Returned: 4, Active: 2, Deleted: 1})
	f("all that is not active", Return{Granted: 8, Returned: 4, Least: 99}, Usage{Granted: 8, Returned: 6, Active: 2})
	if got, err := s.Return(Return{Gallery: id.Gallery{}, Generation: 1, Least: 1}); err != nil || got != (Usage{}) {
		t.Errorf("no slice: got %+v, %v", got, err)
	}
}

// The oldest fence goes.
func TestFencesAreBounded(t *testing.T) {
	t.Parallel()
	s := newTestShard(t, 1)
	gallery := func(n int) id.Gallery { return id.Gallery{UUID: id.UUID{9, byte(n >> 16), byte(n >> 8), byte(n)}} }
	for n := range fencesMax {
		s.Fence(gallery(n), 2)
	}
	s.Fence(gallery(1), 3) // is young again
	s.Fence(gallery(fencesMax), 2)
	for n, fenced := range map[int]bool{0: false, 1: true, 2: true, fencesMax: true} {
		if err := s.Check(gallery(n), 1); errors.Is(err, ErrGeneration) != fenced {
			t.Errorf("gallery %d: %v", n, err)
		}
	}
	if got := reloaded(t, s).state.fences.order.Len(); got != fencesMax {
		t.Errorf("%d fences after a restart, want %d", got, fencesMax)
	}
}
