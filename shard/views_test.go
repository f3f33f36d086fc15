package shard

import (
	"bytes"
	"testing"

	"facet/internal/must"
	"facet/shard/segment"
)

// overtaken freezes a shard with one event whose face is in memory, and lets two
// adoptions go by: the first takes the face out of the memory, the second erases it
// from the segments. So the shard knows the event no more, and the view has to.
func overtaken(t *testing.T, s *Shard, e Event) *View {
	t.Helper()
	v := s.Freeze()
	t.Cleanup(v.Release)
	frozenInto(t, s, segment.Share)
	if n := facesInMemory(s); n != 0 {
		t.Fatalf("%d faces are in memory still", n)
	}
	must.Do(t, s.Erase(Erasure{testGallery, 1, e.Subject, 9}))
	frozenInto(t, s, segment.Erase)
	must.Do(t, s.sealed.store.Collect())
	if _, err := s.sealed.set.Sealed(1); err == nil {
		t.Fatal("the face is in the present segments")
	}
	return v
}

func TestViewKeepsFacesDuringAdoption(t *testing.T) {
	t.Parallel()
	s, key := newKeptShard(t, 10), testKey(t, 1)
	e := put(t, s, newEvent(key, 1, axis(1)))
	before := s.Freeze()
	want := records(t, before)
	before.Release()
	if got := records(t, overtaken(t, s, e)); !bytes.Equal(got, want) {
		t.Errorf("the view writes %d bytes, at first %d", len(got), len(want))
	}
}

func TestOvertakenViewSettlesWholeFaces(t *testing.T) {
	t.Parallel()
	s, key := newKeptShard(t, 10), testKey(t, 1)
	e := put(t, s, newEvent(key, 1, axis(1)))
	v := overtaken(t, s, e)
	set, err := v.Settle(segment.Share)
	must.Do(t, err)
	if sealed, err := set.Sealed(1); err != nil || !bytes.Equal(sealed, e.Sealed) {
		t.Errorf("%d bytes were settled, %v; want %d", len(sealed), err, len(e.Sealed))
	}
}

func TestOvertakenAdoptDoesNothing(t *testing.T) {
	t.Parallel()
	s, key := newKeptShard(t, 10), testKey(t, 1)
	put(t, s, newEvent(key, 1, axis(1)))
	late := s.Freeze()
	defer late.Release()
	if _, err := late.Settle(segment.Share); err != nil {
		t.Fatal(err)
	}
	// What late has not is in segments when late would put its own in their place.
	e := put(t, s, newEvent(key, 2, axis(2)))
	frozenInto(t, s, segment.Share)
	now := s.sealed.set
	late.Adopt()
	if s.sealed.set != now {
		t.Error("an older set was adopted")
	}
	if sealed, ok := s.Sealed(testGallery, e.Subject, e.Event, 0); !ok || !bytes.Equal(sealed, e.Sealed) {
		t.Errorf("got %d bytes, %v", len(sealed), ok)
	}
}

func TestReleasedViewsHoldNoSegments(t *testing.T) {
	t.Parallel()
	s, key := newKeptShard(t, 10), testKey(t, 1)
	e := put(t, s, newEvent(key, 1, axis(1)))
	frozenInto(t, s, segment.Share)
	v := s.Freeze()
	first := s.sealed.set.Parts()[0].File.Ref().Hash
	must.Do(t, s.Erase(Erasure{testGallery, 1, e.Subject, 9}))
	frozenInto(t, s, segment.Erase)
	if err := s.sealed.store.Collect(); err != nil || !s.sealed.store.Has(first) {
		t.Fatalf("a segment that a view needs is gone: %v", err)
	}
	v.Release()
	if err := s.sealed.store.Collect(); err != nil || s.sealed.store.Has(first) {
		t.Errorf("a segment that no view needs stays: %v", err)
	}
}
