package segment

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"facet/internal/must"
)

// oneFile makes a store of one file of some records.
func oneFile(t testing.TB, d *memoryDisk) (*Store, *File) {
	t.Helper()
	s, err := open(d, Options{})
	must.Do(t, err)
	w, err := s.Create()
	must.Do(t, err)
	for i := range uint64(20) {
		w.Add(plain(i+1, 300))
	}
	f, err := w.Close()
	if err == nil {
		err = s.Sync()
	}
	must.Do(t, err)
	return s, f
}

// accompany writes a companion of some pieces.
func accompany(s *Store, h Hash, text string) error {
	w, err := s.Accompany(h)
	if err != nil {
		return err
	}
	for piece := range slices.Chunk([]byte(text), 3) {
		if _, err := w.Write(piece); err != nil {
			return errors.Join(err, w.Cancel())
		}
	}
	return w.Close()
}

// companionOf returns the text of a companion, or "" without one.
func companionOf(t testing.TB, s *Store, h Hash) string {
	t.Helper()
	c, err := s.Companion(h)
	if s.Accompanied(h) != (err == nil) {
		t.Fatalf("accompanied %v, %v", s.Accompanied(h), err)
	}
	if errors.Is(err, ErrMissing) {
		return ""
	}
	must.Do(t, err)
	defer c.Close()
	b, err := io.ReadAll(io.NewSectionReader(c, 0, c.Size()))
	must.Do(t, err)
	return string(b)
}

func TestCompanionSurvivesPowerLossWholeOrNot(t *testing.T) {
	t.Parallel()
	const old, text = "", "what was derived from the records"
	for n := 0; ; n++ {
		d := newMemoryDisk()
		s, f := oneFile(t, d)
		h := f.Ref().Hash
		d.left = n
		err := accompany(s, h, text)
		if err != nil && !errors.Is(err, errDisk) {
			t.Fatalf("call %d: %v", n, err)
		}
		for name, after := range map[string]*memoryDisk{"a restart": d, "a loss of power": d.restart()} {
			after.left = -1
			again, failure := open(after, Options{})
			if failure != nil {
				t.Fatalf("call %d, %s: %v", n, name, failure)
			}
			if got := companionOf(t, again, h); got != text && (got != old || err == nil) {
				t.Errorf("call %d, %s: got %q", n, name, got)
			}
			if names, _ := after.list(); slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, temporarySuffix) }) {
				t.Errorf("call %d, %s: files %v", n, name, names)
			}
		}
		if err == nil {
			if n < 10 {
				t.Fatalf("only %d calls", n)
			}
			return
		}
	}
}

func TestCompanionGoesWithItsFile(t *testing.T) {
	t.Parallel()
	d := newMemoryDisk()
	s, f := oneFile(t, d)
	h := f.Ref().Hash
	must.Do(t, accompany(s, h, "codes"))
	if err := s.Collect(); err != nil || companionOf(t, s, h) != "codes" {
		t.Fatalf("the companion of a file in use: %q, %v", companionOf(t, s, h), err)
	}
	f.Release()
	must.Do(t, s.Collect())
	if names, _ := d.list(); len(names) != 0 || companionOf(t, s, h) != "" {
		t.Errorf("files %v stay", names)
	}
	if _, err := s.Accompany(h); !errors.Is(err, ErrMissing) {
		t.Errorf("a companion of a file that is gone: %v", err)
	}
}

// What is being written when its file goes is removed at once: a round of erasure may end before the
// writer does.
func TestUnfinishedCompanionGoesWithItsFile(t *testing.T) {
	t.Parallel()
	d := newMemoryDisk()
	s, f := oneFile(t, d)
	w, err := s.Accompany(f.Ref().Hash)
	must.Do(t, err)
	if _, err := w.Write([]byte("of an erased face")); err != nil {
		t.Fatal(err)
	}
	f.Release()
	must.Do(t, s.Collect())
	if names, _ := d.list(); len(names) != 0 {
		t.Errorf("files %v stay", names)
	}
	if err := w.Close(); !errors.Is(err, ErrMissing) {
		t.Errorf("the end of the writer: %v", err)
	}
	if names, _ := d.list(); len(names) != 0 {
		t.Errorf("files %v came", names)
	}
}

func TestUnaccompanyRemovesCompanion(t *testing.T) {
	t.Parallel()
	s, f := oneFile(t, newMemoryDisk())
	h := f.Ref().Hash
	if err := errors.Join(accompany(s, h, "old"), accompany(s, h, "new")); err != nil || companionOf(t, s, h) != "new" {
		t.Fatalf("got %q, %v", companionOf(t, s, h), err)
	}
	if err := errors.Join(s.Unaccompany(h), s.Unaccompany(h)); err != nil || companionOf(t, s, h) != "" {
		t.Errorf("got %q, %v", companionOf(t, s, h), err)
	}
	f.Release()
}
