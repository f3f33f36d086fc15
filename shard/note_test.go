package shard

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"

	"facet/engine"
	"facet/internal/codec"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/seal"
	"facet/shard/segment"
)

// noted returns event n with a note.
func noted(key *seal.Key, n int, note Note) Event {
	e := newEvent(key, n, axis(n))
	e.Note = SealNote(key, FaceRef{e.Gallery, e.Generation, e.Subject, e.Event, 0}, note)
	return e
}

// noteOf returns the note of a subject, as a router reads it.
func noteOf(t testing.TB, s *Shard, key *seal.Key, subject id.Subject) Note {
	t.Helper()
	list, err := s.NotesOf(testGallery, 1, []id.Subject{subject})
	must.Do(t, err)
	if len(list) == 0 {
		return Note{}
	}
	n, err := OpenNote(key, FaceRef{testGallery, 1, subject, list[0].Event, list[0].Revision}, list[0].Note)
	must.Do(t, err)
	return n
}

func TestNoteTakesNoMemoryInEntry(t *testing.T) {
	t.Parallel()
	if n := unsafe.Sizeof(entry{}); n > 128 {
		t.Errorf("an entry takes %d bytes, more than the allocator's 128", n)
	}
}

func TestNoteOpensOnlyAtItsPlace(t *testing.T) {
	t.Parallel()
	key := testKey(t, 1)
	ref := FaceRef{testGallery, 1, id.Subject{UUID: id.UUID{2}}, id.Event{UUID: id.UUID{3}}, 4}
	want := Note{ExternalID: "Müller/7", UserData: []byte(`{"a":1}`)}
	sealed := SealNote(key, ref, want)
	if got, err := OpenNote(key, ref, sealed); err != nil || got.ExternalID != want.ExternalID || !bytes.Equal(got.UserData, want.UserData) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got := ExternalOf(sealed); got != NameExternal(key, testGallery, 1, "Müller/7") || got.IsZero() {
		t.Errorf("name %x", got)
	}
	if bytes.Contains(sealed, []byte("ller/7")) || bytes.Contains(sealed, []byte(`"a"`)) {
		t.Error("a sealed note has clear text")
	}
	for name, at := range map[string]FaceRef{
		"gallery":    {id.Gallery{UUID: id.UUID{9}}, 1, ref.Subject, ref.Event, 4},
		"generation": {testGallery, 2, ref.Subject, ref.Event, 4},
		"subject":    {testGallery, 1, id.Subject{UUID: id.UUID{9}}, ref.Event, 4},
		"event":      {testGallery, 1, ref.Subject, id.Event{UUID: id.UUID{9}}, 4},
		"revision":   {testGallery, 1, ref.Subject, ref.Event, 5},
	} {
		if _, err := OpenNote(key, at, sealed); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if _, err := OpenNote(testKey(t, 2), ref, sealed); !errors.Is(err, seal.ErrOpen) {
		t.Errorf("another key: %v", err)
	}
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		if _, err := OpenNote(key, ref, bad); !errors.Is(err, seal.ErrOpen) && !errors.Is(err, ErrNote) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	if SealNote(key, ref, Note{}) != nil {
		t.Error("an empty note takes room")
	}
	if a, b := NameExternal(key, testGallery, 1, "a"), NameExternal(key, testGallery, 2, "a"); a == b {
		t.Error("two generations have the same names")
	}
}

// The largest note fits into the form.
func TestLargestNoteFits(t *testing.T) {
	t.Parallel()
	n := Note{ExternalID: string(bytes.Repeat([]byte("x"), ExternalIDMax)), UserData: bytes.Repeat([]byte("y"), UserDataMax)}
	if got := len(SealNote(testKey(t, 1), FaceRef{}, n)); got > NoteMax {
		t.Errorf("%d bytes, more than %d", got, NoteMax)
	}
}

// TestNoteLivesWithItsSubject follows notes through updates, the removal of the event that carries
// one, segments, snapshots and backups.
func TestNoteLivesWithItsSubject(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{false, true} {
		key, s := testKey(t, 1), newKeptShard(t, 20)
		settle := func() {
			if stored {
				frozenInto(t, s, segment.Erase)
			}
		}
		first := Note{ExternalID: "first", UserData: []byte(`{"n":1}`)}
		e := put(t, s, noted(key, 1, first))
		settle()
		f := func(step string, want Note) {
			t.Helper()
			settle()
			if got := noteOf(t, s, key, e.Subject); got.ExternalID != want.ExternalID || !bytes.Equal(got.UserData, want.UserData) {
				t.Errorf("%s: got %+v, want %+v", step, got, want)
			}
			if hits, err := search(s, key, axis(1)); err != nil || len(hits) == 0 || hits[0].Subject != e.Subject {
				t.Errorf("%s: the face beside the note: %v, %v", step, hits, err)
			}
		}
		f("put", first)
		update := func(event id.Event, revision uint32, noted bool, n Note) error {
			ref := FaceRef{testGallery, 1, e.Subject, event, revision}
			_, err := s.Update(Replacement{
				Gallery: testGallery, Generation: 1, Subject: e.Subject, Event: event, Time: 10, Revision: revision, Noted: noted,
				Sealed: SealFace(key, ref, engine.Face{Template: axis(1)}), Note: SealNote(key, ref, n),
			})
			return err
		}
		if err := update(e.Event, 1, false, Note{}); !errors.Is(err, ErrMoved) {
			t.Fatalf("an update that does not know of the note: %v", err)
		}
		second := Note{ExternalID: "second"}
		must.Do(t, update(e.Event, 1, true, second))
		f("update", second)
		further := newEvent(key, 2, axis(1))
		further.Subject = e.Subject
		further.Sealed = SealFace(key, FaceRef{testGallery, 1, e.Subject, further.Event, 0}, engine.Face{Template: axis(1)})
		further.Time = 11
		must.Do(t, s.Add(further, FreeSlots))
		if err := update(further.Event, 1, false, second); !errors.Is(err, ErrMoved) {
			t.Fatalf("a note for an event that is not the first: %v", err)
		}
		settle()
		gone := Removal{Gallery: testGallery, Generation: 1, Subject: e.Subject, Event: e.Event, Time: 12}
		if err := s.Remove(gone); !errors.Is(err, ErrMoved) {
			t.Fatalf("a removal that forgets the note: %v", err)
		}
		gone.Heir = Heir{further.Event, 0, further.Sealed, SealNote(key, FaceRef{testGallery, 1, e.Subject, further.Event, 0}, second), 0}
		must.Do(t, s.Remove(gone))
		f("removal", second)
		if entries := entriesOf(s); len(entries) != 3 || entries[2].Event != further.Event {
			t.Errorf("list %v", entries)
		}
		again := throughSnapshot(t, s)
		if got := noteOf(t, again, key, e.Subject); got.ExternalID != "second" {
			t.Errorf("after a snapshot: %+v", got)
		}
		must.Do(t, s.Remove(Removal{Gallery: testGallery, Generation: 1, Subject: e.Subject, Event: further.Event, Time: 13}))
		settle()
		if got := noteOf(t, s, key, e.Subject); !got.IsZero() {
			t.Errorf("after the last event: %+v", got)
		}
	}
}

// throughSnapshot returns a shard with the state of s, from a snapshot without segments.
func throughSnapshot(t *testing.T, s *Shard) *Shard {
	t.Helper()
	v := s.Freeze()
	defer v.Release()
	l, err := loaded(records(t, v), nil)
	must.Do(t, err)
	defer l.Close()
	again := newTestShard(t, 0)
	again.Replace(l)
	w := again.Freeze()
	defer w.Release()
	if !bytes.Equal(records(t, v), records(t, w)) {
		t.Error("the state differs after a snapshot")
	}
	return again
}

func TestNoteBeyondItsFaceIsRefused(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := codec.NewWriter(&b, codec.Magic{}, 1)
	w.Record(headShard, shardRecord{Sequence: 1, Slices: 1})
	w.Record(headSlice, sliceRecord{Gallery: testGallery, Generation: 1, Granted: 1, Entries: 1})
	w.Record(headEntry, entryRecord{Sequence: 1, Deleted: true, Note: []byte{1}})
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := loaded(b.Bytes(), nil); !errors.Is(err, ErrSnapshot) {
		t.Errorf("a deleted entry with a note: %v", err)
	}
}

func FuzzOpenNote(f *testing.F) {
	key := testKey(f, 1)
	ref := FaceRef{Gallery: testGallery, Generation: 1}
	f.Add(SealNote(key, ref, Note{ExternalID: "a", UserData: []byte(`{}`)}))
	f.Add([]byte{noteVersion})
	f.Fuzz(func(t *testing.T, sealed []byte) {
		n, err := OpenNote(key, ref, sealed)
		if err == nil && len(sealed) > 0 && n.IsZero() {
			t.Errorf("%x opens as nothing", sealed)
		}
		ExternalOf(sealed)
	})
}
