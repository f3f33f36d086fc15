package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/internal/must"
)

const gallery = 7

func row(n byte, k Kind) Record {
	return Record{
		Key: Key{n, 1}, Person: Person(n), Kind: k, Subject: id.UUID{n, 2}, Event: id.UUID{n, 3}, Quality: .5,
		Details: 1 << 63, File: 5, At: time.UnixMilli(1_900_000_000_123),
	}
}

func open(t *testing.T, name string) *State {
	t.Helper()
	s, err := Open(name, gallery)
	must.Do(t, err)
	return s
}

func TestStateKnowsRowsAndPersonsAfterRestart(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "state")
	s := open(t, name)
	for _, r := range []Record{row(1, Registered), row(2, Added), row(3, Began), row(4, Began), row(3, Ended)} {
		must.Do(t, s.Add(r))
	}
	if got, _, err := s.Find(Key{2, 1}); err != nil || got.Earlier {
		t.Errorf("%v: a record of this run is of an earlier one", err)
	}
	run := s.Run
	must.Do(t, s.Close())
	s = open(t, name)
	defer s.Close()
	if s.Run != run || s.New || run == [16]byte{} {
		t.Errorf("the run %x is %x after a restart", run, s.Run)
	}
	got, ok, err := s.Find(Key{2, 1})
	want := row(2, Added)
	want.Earlier, want.Number = true, 1
	if diff := cmp.Diff(want, got); !ok || err != nil || diff != "" {
		t.Errorf("%v, −want +got\n%s", err, diff)
	}
	if _, ok, _ := s.Find(Key{2, 2}); ok {
		t.Error("another key is found")
	}
	if subject, ok, err := s.Subject(1); !ok || err != nil || subject != (id.UUID{1, 2}) {
		t.Errorf("subject %v, %v, %v", subject, ok, err)
	}
	if diff := cmp.Diff([]Record{row(4, Began)}, s.Jobs()); diff != "" {
		t.Errorf("jobs: −want +got\n%s", diff)
	}
}

func TestDamagedRecordCountsAsMissing(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "state")
	s := open(t, name)
	for n := range byte(3) {
		must.Do(t, s.Add(row(n+1, Registered)))
	}
	must.Do(t, s.Close())
	text, err := os.ReadFile(name)
	must.Do(t, err)
	text[headerBytes+recordBytes+5] ^= 1                                   // the second record
	if err := os.WriteFile(name, text[:len(text)-20], 0o600); err != nil { // the third one is torn
		t.Fatal(err)
	}
	s = open(t, name)
	must.Do(t, s.Add(row(4, Registered)))
	for n, want := range []bool{true, false, false, true} {
		if _, ok, err := s.Find(Key{byte(n + 1), 1}); ok != want || err != nil {
			t.Errorf("row %d: found %v, %v, want %v", n+1, ok, err, want)
		}
	}
	must.Do(t, s.Close())
}

func TestStateIsForOneGalleryAndOneRun(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "state")
	s := open(t, name)
	refused := func(gallery uint64, want string) {
		t.Helper()
		if _, err := Open(name, gallery); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
	refused(gallery, "the same import is running")
	must.Do(t, s.Close())
	refused(gallery+1, "another gallery")
	must.Do(t, os.WriteFile(name, []byte(strings.Repeat("external_id,file\n", 10)), 0o600))
	refused(gallery, "is no state of an import")
	must.Do(t, os.WriteFile(name, []byte("facet import 1 0000000000000007\n"), 0o600))
	refused(gallery, "is of an earlier version of facet")
}

func FuzzState(f *testing.F) {
	f.Add(encode(row(1, Registered)))
	f.Add(append(encode(row(1, Began)), encode(row(1, Ended))...))
	f.Fuzz(func(t *testing.T, records []byte) {
		name := filepath.Join(t.TempDir(), "state")
		must.Do(t, os.WriteFile(name, append([]byte("facet import 2 0000000000000007 00112233445566778899aabbccddeeff\n"), records...), 0o600))
		s := open(t, name)
		if s.Len() != len(records)/recordBytes {
			t.Fatalf("%d records of %d bytes", s.Len(), len(records))
		}
		must.Do(t, s.Add(row(9, Registered)))
		if _, ok, err := s.Find(Key{9, 1}); !ok || err != nil {
			t.Fatalf("the added record is missing: %v", err)
		}
		must.Do(t, s.file.Close())
	})
}

// The record of a row is gone when another row has replaced its event, and each record knows what
// the run saw at its end.
func TestReplacedRowsAreNotIn(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "state")
	s, at := open(t, name), time.UnixMilli(1_900_000_000_000)
	second := row(1, Replaced)
	second.Key, second.Replaces = Key{2, 1}, 1
	for _, r := range []Record{row(1, Registered), second} {
		must.Do(t, s.Add(r))
		must.Do(t, s.Sees(at))
		must.Do(t, s.Sees(at.Add(time.Hour))) // nothing has come in
		at = at.Add(time.Minute)
	}
	must.Do(t, s.Close())
	s = open(t, name)
	defer s.Close()
	_, first, _ := s.Find(Key{1, 1})
	r, ok, err := s.Find(Key{2, 1})
	if first || !ok || err != nil || s.Last(Key{1, 1}) != 1 {
		t.Errorf("the replaced row is found: %v, the other one: %v, %v", first, ok, err)
	}
	if seen, ok := s.SeenAfter(r); !ok || !seen.Equal(time.UnixMilli(1_900_000_060_000)) {
		t.Errorf("seen at %v, %v", seen, ok)
	}
	if all, err := s.Former(1); err != nil || len(all) != 1 || all[0].Key != second.Key {
		t.Errorf("the person has %v, %v", all, err)
	}
}
