package shard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/segment"
)

func never(id.Gallery) (int64, bool) { return 0, true }

// kept returns a retention of ms for the test gallery.
func kept(ms int64) Retention {
	return func(id.Gallery) (int64, bool) { return ms, true }
}

// expireDue expires all that is due and returns how many events did.
func expireDue(t testing.TB, s *Shard, until int64, keep Retention) (n int) {
	t.Helper()
	for _, x := range s.Due(until, keep, 1000) {
		x.Now = until
		expired, err := s.Expire(x)
		if err != nil || expired != len(x.Events) {
			t.Fatalf("%d of %d due events expired: %v", expired, len(x.Events), err)
		}
		n += expired
	}
	return n
}

// timedEvent is the n-th event with a time of expiry.
func timedEvent(t testing.TB, s *Shard, n int, expires int64) Event {
	t.Helper()
	e := newEvent(testKey(t, 1), n, axis(n%8))
	e.Expires = expires
	return put(t, s, e)
}

func TestEventsExpireInOrderOfTheirTimes(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 100), testKey(t, 1)
	late, soon := timedEvent(t, s, 1, 9000), timedEvent(t, s, 2, 5000)
	put(t, s, newEvent(key, 3, axis(3)))
	for until, want := range map[int64]int{4999: 0, 5000: 1, 9000: 2} {
		if got := s.Due(until, never, 10); len(got) != min(want, 1) || want > 0 && len(got[0].Events) != want {
			t.Errorf("due at %d: %+v, want %d", until, got, want)
		}
	}
	if got := s.Due(9000, never, 1); len(got) != 1 || got[0].Events[0].Event != soon.Event {
		t.Errorf("the first due is %+v, want %v", got, soon.Event)
	}
	if got, want := s.ExpiryStats(never), (ExpiryStats{2, 5000}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
	if got := s.Due(9000, func(id.Gallery) (int64, bool) { return 1, false }, 10); len(got) != 0 {
		t.Errorf("due in an unknown gallery: %+v", got)
	}
	if n := expireDue(t, s, 5000, never); n != 1 {
		t.Fatalf("%d expired, want 1", n)
	}
	if hits, err := search(s, key, axis(2)); err != nil || len(hits) != 0 {
		t.Errorf("an expired event matches: %v, %v", hits, err)
	}
	if events, err := s.Events(testGallery, 1, soon.Subject); err != nil || len(events) != 0 {
		t.Errorf("its subject has %v, %v", events, err)
	}
	last := entriesOf(s)[2]
	if last.Event != soon.Event || !last.Deleted {
		t.Errorf("the last entry is %+v", last)
	}
	if events, _ := s.Events(testGallery, 1, late.Subject); len(events) != 1 {
		t.Errorf("an event that is not due is gone")
	}
}

func TestExpireSparesWhatIsNotDue(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 100), testKey(t, 1)
	a, b := timedEvent(t, s, 1, 5000), put(t, s, newEvent(key, 2, axis(2)))
	named := func(until, updated int64, revision uint32, e Event) Expiration {
		return Expiration{Gallery: testGallery, Generation: 1, Until: until, Updated: updated, Now: 9999, Events: []Expired{{Subject: e.Subject, Event: e.Event, Revision: revision}}}
	}
	for name, x := range map[string]Expiration{
		"before its time":                named(4999, 0, 0, a),
		"of another revision":            named(5000, 0, 1, a),
		"without a time":                 named(1<<50, 0, 0, b),
		"updated after the retention":    named(1<<50, 1, 0, b),
		"of an unknown subject":          {Gallery: testGallery, Generation: 1, Until: 1 << 50, Updated: 1 << 50, Events: []Expired{{Subject: id.Subject{UUID: id.UUID{9}}, Event: a.Event}}},
		"in a gallery that has no slice": {Gallery: id.Gallery{UUID: id.UUID{77}}, Generation: 1, Until: 1 << 50, Events: []Expired{{Subject: a.Subject, Event: a.Event}}},
	} {
		if n, err := s.Expire(x); n != 0 || err != nil {
			t.Errorf("an event %s: %d expired, %v", name, n, err)
		}
	}
	update(t, s, replacement(key, a, 3, axis(4))) // keeps the time
	if n, err := s.Expire(named(5000, 0, 0, a)); n != 0 || err != nil {
		t.Errorf("a replaced event: %d expired, %v", n, err)
	}
	if n, err := s.Expire(named(5000, 0, 1, a)); n != 1 || err != nil {
		t.Errorf("the replacement: %d expired, %v", n, err)
	}
	if n, err := s.Expire(named(0, 2, 0, b)); n != 1 || err != nil {
		t.Errorf("by the retention: %d expired, %v", n, err)
	}
}

func TestUpdateSetsKeepsAndRemovesExpiry(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 100), testKey(t, 1)
	for n, f := range []struct {
		change func(*Replacement)
		want   int64
	}{
		{func(*Replacement) {}, 5000},
		{func(r *Replacement) { r.Expires = 7000 }, 7000},
		{func(r *Replacement) { r.NoExpiry = true }, 0},
	} {
		a := timedEvent(t, s, n+1, 5000)
		r := replacement(key, a, 3, axis(4))
		f.change(&r)
		update(t, s, r)
		p := s.ListEvents(testGallery, 0, 1, Descending)
		got := int64(0)
		if len(p.Expires) > 0 {
			got = p.Expires[0]
		}
		if got != f.want {
			t.Errorf("case %d: expires %d, want %d", n, got, f.want)
		}
	}
}

// Times of expiry are the same after each way back from the disk.
func TestExpirySurvivesSnapshots(t *testing.T) {
	t.Parallel()
	s, key := newKeptShard(t, 100), testKey(t, 1)
	for n := 1; n < 60; n++ {
		timedEvent(t, s, n, int64(n%3)*1000)
	}
	p := newEvent(key, 70, axis(1))
	p.Expires = 2000
	if _, err := s.Hold(p, FreeSlots); err != nil {
		t.Fatal(err)
	}
	want := s.ListEvents(testGallery, 0, 1000, Ascending)
	check := func(name string, s *Shard) {
		t.Helper()
		if diff := cmp.Diff(want, s.ListEvents(testGallery, 0, 1000, Ascending)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := s.Due(1000, never, 100); len(got) != 1 || len(got[0].Events) != 20 {
			t.Errorf("%s: due are %+v", name, got)
		}
	}
	check("from records", reloaded(t, s))
	v := s.Freeze()
	defer v.Release()
	if n := expireDue(t, s, 1000, never); n != 20 { // the frozen state stays
		t.Fatalf("%d expired", n)
	}
	if _, err := v.Settle(segment.Share); err != nil {
		t.Fatal(err)
	}
	l, err := loaded(records(t, v), s.sealed.store)
	must.Do(t, err)
	back := New(s.table, s.arena)
	back.Keep(s.sealed.store)
	back.Replace(l)
	defer back.Close()
	check("from segments", back)
	if got := back.state.slices[testGallery].pending[p.Event].event.Expires; got != 2000 {
		t.Errorf("the pending event expires at %d", got)
	}
}

// The pages of what would go are compared with a plain list, with and without a retention.
func TestExpiringPagesMatchPlainList(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	s, key := newTestShard(t, 1000), testKey(t, 1)
	for n := 1; n <= 300; n++ {
		e := newEvent(key, n, axis(1))
		e.Time = int64(n / 3)
		if r.IntN(2) == 0 {
			e.Expires = 1 + int64(r.IntN(200))
		}
		put(t, s, e)
		if r.IntN(4) == 0 {
			must.Do(t, s.Erase(Erasure{testGallery, 1, e.Subject, e.Time}))
		}
	}
	for _, keep := range []int64{0, 5, 60, 150} {
		for _, before := range []int64{0, 40, 100, 1 << 40} {
			var want []deadline
			list := s.ListEvents(testGallery, 0, 1000, Ascending)
			for i, e := range list.Entries {
				at := list.Expires[i]
				if keep > 0 && (at == 0 || e.Time+keep < at) {
					at = e.Time + keep
				}
				if !e.Deleted && at > 0 && at < before {
					want = append(want, deadline{at, list.Sequences[i]})
				}
			}
			slices.SortFunc(want, func(a, b deadline) int {
				if a.before(b) {
					return -1
				}
				return 1
			})
			var got []deadline
			for after := (Position{}); ; {
				p := s.ListExpiring(testGallery, keep, before, after, 7)
				if p.Total != len(want) {
					t.Fatalf("keep %d, before %d: total %d, want %d", keep, before, p.Total, len(want))
				}
				for i := range p.Entries {
					got = append(got, deadline{p.Expires[i], p.Sequences[i]})
				}
				if len(p.Entries) == 0 {
					break
				}
				last := got[len(got)-1]
				after = Position{last.time, last.sequence}
			}
			if !slices.Equal(want, got) {
				t.Fatalf("keep %d, before %d:\ngot  %v\nwant %v", keep, before, got, want)
			}
		}
	}
}

// What is due is compared with a plain scan while events come, go and expire.
func TestDueMatchesPlainScan(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	s, key := newTestShard(t, 400), testKey(t, 1)
	for now := int64(1); now < 400; now++ {
		e := newEvent(key, int(now), axis(1))
		e.Time, e.Expires = now, int64(r.IntN(2))*(now+int64(r.IntN(100)))
		must.Do(t, s.Put(e, OldestDeleted))
		keep, want := int64(r.IntN(3)*50), 0
		list := s.ListEvents(testGallery, 0, 1000, Ascending)
		for i, e := range list.Entries {
			own := int64(0)
			if list.Expires != nil {
				own = list.Expires[i]
			}
			if !e.Deleted && (own > 0 && own <= now || keep > 0 && e.Time <= now-keep) {
				want++
			}
		}
		if got := expireDue(t, s, now, kept(keep)); got != want {
			t.Fatalf("at %d, retention %d: %d expired, want %d", now, keep, got, want)
		}
	}
}

// BenchmarkTimetable reports what a time of expiry takes in memory, and how long it takes to look
// for due events where none is, and to expire 1,000 of a million.
func BenchmarkTimetable(b *testing.B) {
	for b.Loop() {
		sl := newSlice(testGallery, 1, newState(testArena))
		before := heap()
		r := rand.New(rand.NewPCG(1, 1))
		for i := range million {
			sl.expires(uint64(i+1), 1+r.Int64N(1<<40))
		}
		b.ReportMetric((heap()-before)/million, "B/time")
		begin := time.Now()
		for range 1000 {
			sl.due(&Expiration{}, 1000)
		}
		b.ReportMetric(float64(time.Since(begin).Nanoseconds())/1000, "ns/look")
		begin = time.Now()
		for i := range 1000 {
			sl.times.remove(uint64(i + 1))
		}
		b.ReportMetric(float64(time.Since(begin).Nanoseconds())/1000, "ns/remove")
	}
}

// BenchmarkExpire reports how long the expiry of a batch takes among so many events.
func BenchmarkExpire(b *testing.B) {
	for _, n := range []int{50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := newTestShard(b, uint32(n))
				for i := range n {
					e := eventOf(testGallery, i)
					e.Expires = int64(1 + i%1000)
					put(b, s, e)
				}
				b.StartTimer()
				begin := time.Now()
				total := 0
				for total < n {
					total += expireDue(b, s, 1000, never)
				}
				b.ReportMetric(float64(time.Since(begin).Nanoseconds())/float64(total), "ns/event")
				b.StopTimer()
				s.Close()
				b.StartTimer()
			}
		})
	}
}
