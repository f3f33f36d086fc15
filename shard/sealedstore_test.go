package shard

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/record"
	"facet/shard/segment"
)

// openStore opens a store of segments of about so many bytes, which must not be damaged.
func openStore(t testing.TB, bytes int64) *segment.Store {
	t.Helper()
	store, err := segment.Open(t.TempDir(), segment.Options{Bytes: bytes, Damaged: func(err error) { t.Error(err) }})
	must.Do(t, err)
	return store
}

// newKeptShard is newTestShard with a store of small segments.
func newKeptShard(t testing.TB, slots uint32) *Shard {
	t.Helper()
	s := newTestShard(t, slots)
	s.Keep(openStore(t, 20_000))
	return s
}

// frozenInto freezes s, settles the view, gives its records, and adopts it.
func frozenInto(t testing.TB, s *Shard, clean segment.Clean) []byte {
	t.Helper()
	v := s.Freeze()
	defer v.Release()
	if _, err := v.Settle(clean); err != nil {
		t.Fatal(err)
	}
	b := records(t, v)
	v.Adopt()
	return b
}

func records(t testing.TB, v *View) []byte {
	t.Helper()
	var b bytes.Buffer
	w := codec.NewWriter(&b, codec.Magic{}, 1)
	must.Do(t, v.Write(w))
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// newLoader returns an empty loader.
func newLoader(store *segment.Store) *Loader {
	s := New(nil, testArena)
	s.Keep(store)
	return NewLoader(s)
}

// loaded reads records into a loader.
func loaded(b []byte, store *segment.Store) (*Loader, error) {
	r, err := codec.NewReader(bytes.NewReader(b), codec.Magic{})
	if err != nil {
		return nil, err
	}
	l := newLoader(store)
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			err = l.Check()
			if err == nil {
				return l, nil
			}
		}
		if err == nil {
			_, err = l.Load(m)
		}
		if err != nil {
			l.Close()
			return nil, err
		}
	}
}

// facesInMemory counts the faces that are in memory.
func facesInMemory(s *Shard) (n int) { return s.state.faces.of.Len() }

// A face that no segment has yet leaves the memory with its event, whatever takes the event.
func TestFacesOfGoneEventsLeaveMemory(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 10), testKey(t, 1)
	var events []Event
	for n := range 4 {
		events = append(events, put(t, s, newEvent(key, n, axis(n))))
	}
	check := func(want int, after string) {
		t.Helper()
		if n := facesInMemory(s); n != want {
			t.Errorf("%d faces are in memory after %s, want %d", n, after, want)
		}
	}
	check(4, "four events")
	must.Do(t, s.Erase(Erasure{testGallery, 1, events[0].Subject, 9}))
	check(3, "an erasure")
	update(t, s, replacement(key, events[1], 10, axis(5)))
	check(3, "an update")
	must.Do(t, s.Remove(Removal{Gallery: testGallery, Generation: 1, Subject: events[2].Subject, Event: events[2].Event, Time: 11}))
	check(2, "a removal")
	s.Fence(testGallery, 2)
	if _, err := s.Purge(testGallery, 2, 100); err != nil {
		t.Fatal(err)
	}
	check(0, "a purge")
}

// Afterwards they are read from segments.
func TestAdoptedFacesLeaveMemory(t *testing.T) {
	t.Parallel()
	s, key := newKeptShard(t, 100), testKey(t, 1)
	var events []Event
	for n := range 40 {
		events = append(events, put(t, s, newEvent(key, n, axis(n))))
	}
	frozenInto(t, s, segment.Share)
	if n := facesInMemory(s); n != 0 {
		t.Errorf("%d faces are in memory still", n)
	}
	events = append(events, put(t, s, newEvent(key, 40, axis(40))))
	for _, e := range events {
		if sealed, ok := s.Sealed(testGallery, e.Subject, e.Event, 0); !ok || !bytes.Equal(sealed, e.Sealed) {
			t.Fatalf("event %s: %d bytes, %v", e.Event, len(sealed), ok)
		}
	}
	if hits, err := search(s, key, axis(7)); err != nil || len(hits) == 0 || hits[0].Event != events[7].Event {
		t.Errorf("search: %v, %v", hits, err)
	}
}

func TestSettledShardSurvivesLoad(t *testing.T) {
	t.Parallel()
	s, key := newKeptShard(t, 60), testKey(t, 1)
	for n := range 50 {
		put(t, s, newEvent(key, n, axis(n)))
	}
	frozenInto(t, s, segment.Share)
	for n := range 9 {
		must.Do(t, s.Erase(Erasure{testGallery, 1, newEvent(key, 3*n, axis(1)).Subject, int64(60 + n)}))
	}
	b := frozenInto(t, s, segment.Share)
	want := s.Freeze()
	defer want.Release()
	l, err := loaded(b, s.sealed.store)
	must.Do(t, err)
	again := newTestShard(t, 0)
	again.Keep(s.sealed.store)
	again.Replace(l)
	got := again.Freeze()
	defer got.Release()
	if !bytes.Equal(records(t, want), records(t, got)) {
		t.Error("the loaded shard differs")
	}
	if n := facesInMemory(again); n != 0 {
		t.Errorf("%d faces were loaded into memory", n)
	}
	again.Replace(newLoader(nil)) // lets go of the segments
}

func TestContradictingRecordsAreRefused(t *testing.T) {
	t.Parallel()
	s, key := newKeptShard(t, 60), testKey(t, 1)
	for n := range 20 {
		put(t, s, newEvent(key, n, axis(n)))
	}
	v := s.Freeze()
	defer v.Release()
	set, err := v.Settle(segment.Share)
	must.Do(t, err)
	hash := set.Parts()[0].File.Ref().Hash
	head := storedRecord{Sequence: 20, Slices: 1, Segments: 1}
	slice := sliceRecord{Gallery: testGallery, Generation: 1, Granted: 60, Entries: 20}
	whole := segmentRecord{Hash: hash}
	f := func(name string, want error, list ...any) {
		t.Helper()
		var b bytes.Buffer
		w := codec.NewWriter(&b, codec.Magic{}, 1)
		for _, r := range list {
			switch r := r.(type) {
			case storedRecord:
				w.Record(headStored, r)
			case sliceRecord:
				w.Record(headSlice, r)
			case fenceRecord:
				w.Record(headFence, r)
			case segmentRecord:
				w.Record(headSegment, r)
			}
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		l, err := loaded(b.Bytes(), s.sealed.store)
		if l != nil {
			l.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	few, other, early, dead, absent, cut := slice, slice, head, whole, whole, whole
	few.Entries, other.Generation, early.Sequence = 19, 2, 19
	dead.Dead, absent.Dead, cut.Dead = appendSequences(nil, []uint64{4}), appendSequences(nil, []uint64{21}), []byte{0x80}
	f("sound", nil, head, slice, whole)
	f("an entry too many", ErrSnapshot, head, few, whole)
	f("an entry that is dead, and counted", ErrSnapshot, head, slice, dead)
	f("a dead entry that is not there", ErrSnapshot, head, slice, absent)
	f("half a number", ErrSnapshot, head, slice, cut)
	f("entries of no slice", ErrSnapshot, head, other, whole)
	f("entries behind a fence that lets them in", ErrSnapshot, storedRecord{Sequence: 20, Fences: 1, Segments: 1}, fenceRecord{testGallery, 1, 5, 20}, whole)
	f("entries behind a fence", nil, storedRecord{Sequence: 20, Fences: 1, Segments: 1}, fenceRecord{testGallery, 2, 5, 20}, whole)
	f("entries of the future", ErrSnapshot, early, slice, whole)
	f("no segment", ErrSnapshot, head, slice)
	f("a segment twice", ErrSnapshot, storedRecord{Sequence: 20, Slices: 1, Segments: 2}, slice, whole, whole)
	f("a segment before its slice", ErrSnapshot, head, whole, slice)
	f("a segment that is nowhere", segment.ErrMissing, head, slice, segmentRecord{Hash: segment.Hash{1}})
}

func TestAdoptAfterReplaceDoesNothing(t *testing.T) {
	t.Parallel()
	s, key := newKeptShard(t, 60), testKey(t, 1)
	first := put(t, s, newEvent(key, 1, axis(1)))
	b := frozenInto(t, s, segment.Share)
	put(t, s, newEvent(key, 2, axis(2)))
	late := s.Freeze()
	if _, err := late.Settle(segment.Share); err != nil {
		t.Fatal(err)
	}
	l, err := loaded(b, s.sealed.store)
	must.Do(t, err)
	s.Replace(l)
	before := s.sealed.set
	late.Adopt()
	late.Release()
	if s.sealed.set != before {
		t.Error("the set of a state that is gone was adopted")
	}
	if sealed, ok := s.Sealed(testGallery, first.Subject, first.Event, 0); !ok || !bytes.Equal(sealed, first.Sealed) {
		t.Errorf("got %d bytes, %v", len(sealed), ok)
	}
}

// Reads go on while segments are adopted, rewritten and collected.
func TestReadersKeepFacesOfOldSegments(t *testing.T) {
	t.Parallel()
	s, key := newKeptShard(t, 400), testKey(t, 1)
	steady := put(t, s, newEvent(key, 1000, axis(3)))
	stop, work := make(chan struct{}), sync.WaitGroup{}
	beside := func(f func(r *rand.Rand)) {
		work.Go(func() {
			for r := rand.New(rand.NewPCG(rand.Uint64(), 1)); ; {
				select {
				case <-stop:
					return
				default:
					f(r)
				}
			}
		})
	}
	beside(func(*rand.Rand) {
		if sealed, ok := s.Sealed(testGallery, steady.Subject, steady.Event, 0); !ok || !bytes.Equal(sealed, steady.Sealed) {
			t.Errorf("got %d bytes, %v", len(sealed), ok)
		}
	})
	beside(func(*rand.Rand) {
		if hits, err := search(s, key, axis(3)); err != nil || len(hits) == 0 {
			t.Errorf("search: %v, %v", hits, err)
		}
	})
	beside(func(*rand.Rand) { // a second view, as for a digest
		v := s.Freeze()
		defer v.Release()
		records(t, v)
	})
	beside(func(r *rand.Rand) {
		frozenInto(t, s, segment.Clean(r.IntN(2)))
		if err := s.sealed.store.Collect(); err != nil {
			t.Error(err)
		}
	})
	r := rand.New(rand.NewPCG(2, 2))
	for begin, n := time.Now(), 2000; time.Since(begin) < time.Second; n++ {
		e := newEvent(key, r.IntN(300), axis(n))
		e.Time = int64(n)
		if err := s.Put(e, OldestDeleted); errors.Is(err, ErrExists) {
			err = s.Erase(Erasure{testGallery, 1, e.Subject, int64(n)})
			if err != nil {
				t.Error(err)
			}
		}
	}
	close(stop)
	work.Wait()
}

func FuzzDecodeRow(f *testing.F) {
	encode := func(from origin, d draft, sealed []byte) []byte {
		table := record.NewTable(testArena)
		defer table.Close()
		return appendRow(nil, fresh{from, table.At(table.Add(&d.Fields)), d.Tags, d.expires}, sealed)
	}
	d := draft{Fields: record.Fields{
		Subject: id.Subject{UUID: id.UUID{1}}, Event: id.Event{UUID: id.UUID{2}}, Tags: []uint32{1, 1 << 31},
		Sequence: 900, First: 7, Time: -4, Revision: 2, Deleted: true,
	}}
	f.Add(encode(origin{testGallery, 3}, d, nil), uint64(900))
	d.expires = 1 << 40
	f.Add(encode(origin{testGallery, 3}, d, []byte{2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), uint64(900))
	f.Fuzz(func(t *testing.T, b []byte, sequence uint64) {
		from, d, head, err := decodeRow(b, sequence)
		if err != nil || sequence > record.SequenceMax || d.Time != min(max(d.Time, -record.TimeMax-1), record.TimeMax) {
			return
		}
		again, e, sameHead, err := decodeRow(encode(from, d, head), sequence)
		if diff := cmp.Diff(d, e, cmp.AllowUnexported(draft{})); err != nil || again != from || diff != "" || len(head) <= 1+modelBytes && !bytes.Equal(head, sameHead) {
			t.Fatalf("%x is encoded as another row: %v\n%s", b, err, diff)
		}
	})
}

func TestClosedShardReleasesSegments(t *testing.T) {
	t.Parallel()
	s, key := newKeptShard(t, 10), testKey(t, 1)
	put(t, s, newEvent(key, 1, axis(1)))
	v := s.Freeze()
	set, err := v.Settle(segment.Share)
	must.Do(t, err)
	hash := set.Parts()[0].File.Ref().Hash
	v.Adopt()
	v.Release()
	if err := s.sealed.store.Collect(); err != nil || !s.sealed.store.Has(hash) {
		t.Fatalf("the shard's segment is gone: %v", err)
	}
	s.Close()
	if err := s.sealed.store.Collect(); err != nil || s.sealed.store.Has(hash) {
		t.Errorf("the segment of a closed shard stays: %v", err)
	}
}
