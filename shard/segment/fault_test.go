package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"facet/internal/must"
)

// reopen opens the files of a set again, in another store.
func reopen(t testing.TB, s *Store, parts []Part) *Set {
	t.Helper()
	var again []Part
	for _, p := range parts {
		f, err := s.File(p.File.ref.Hash)
		must.Do(t, err)
		again = append(again, Part{f, p.Dead, p.DeadSealed})
	}
	set, err := NewSet(again)
	must.Do(t, err)
	return set
}

// change is one Build with everything in it: fresh records in several files, a merge,
// and files that are written anew.
func change(t testing.TB, d *memoryDisk) (s *Store, m *model) {
	t.Helper()
	s, err := open(d, Options{Bytes: 20_000})
	must.Do(t, err)
	m = &model{t: t, store: s, live: make(map[uint64]Record)}
	for range 3 {
		for i := range 12 {
			m.add(400 * (i % 3))
		}
		m.build(Share)
	}
	for _, sequence := range slices.Sorted(maps.Keys(m.live))[:7] {
		m.kill(sequence)
	}
	for range 40 {
		m.add(900)
	}
	return s, m
}

func TestPowerLossKeepsOldSet(t *testing.T) {
	t.Parallel()
	for n := 0; ; n++ {
		d := newMemoryDisk()
		s, m := change(t, d)
		before, died := contents(t, m.set), m.died
		parts := m.set.Parts()
		d.left = n
		next, _, err := s.Build(m.set, Change{Dead: died, Fresh: each(m.fresh), Clean: Erase})
		passed := err == nil
		if !passed && !errors.Is(err, errDisk) {
			t.Fatalf("call %d: %v", n, err)
		}
		var newParts []Part
		if passed {
			newParts = next.Parts()
		}
		for name, after := range map[string]*memoryDisk{"a restart": d, "a loss of power": d.restart()} {
			after.left = -1
			again, err := open(after, Options{})
			if err != nil {
				t.Fatalf("call %d, %s: %v", n, name, err)
			}
			old := reopen(t, again, parts)
			if got := contents(t, old); !same(got, before) {
				t.Fatalf("call %d, %s: the old set has %d records, want %d", n, name, len(got), len(before))
			}
			if passed {
				set := reopen(t, again, newParts)
				if got := contents(t, set); !same(got, m.want()) {
					t.Fatalf("call %d, %s: the new set has %d records, want %d", n, name, len(got), len(m.live))
				}
				set.Release()
			}
			must.Do(t, again.Collect())
			if names, _ := after.list(); len(names) != len(parts) {
				t.Fatalf("call %d, %s: files %v stay of %d", n, name, names, len(parts))
			}
			old.Release()
		}
		if passed {
			if n < 20 {
				t.Fatalf("only %d calls", n)
			}
			return
		}
	}
}

func TestFailedBuildChangesNothing(t *testing.T) {
	t.Parallel()
	for n := 0; ; n++ {
		d := newMemoryDisk()
		s, m := change(t, d)
		d.left = n
		set, _, err := s.Build(m.set, Change{Dead: m.died, Fresh: each(m.fresh)})
		d.left = -1
		if err == nil {
			set.Release()
			return
		}
		m.build(Share)
		if got := contents(t, m.set); !same(got, m.want()) {
			t.Fatalf("call %d: %d records, want %d", n, len(got), len(m.live))
		}
		must.Do(t, s.Collect())
		m.set.Release()
		if names, _ := d.list(); len(s.files) != 0 || len(names) == 0 {
			t.Fatalf("call %d: %d files are open, folder %v", n, len(s.files), names)
		}
	}
}

// sample returns the bytes of a file of two sealed blocks and a clear one, and its records.
func sample(t testing.TB) ([]byte, []Record) {
	t.Helper()
	s, err := open(newMemoryDisk(), Options{})
	must.Do(t, err)
	w, err := s.Create()
	must.Do(t, err)
	var list []Record
	for i := range uint64(40) {
		r := plain(10+3*i, int(i%4)*300)
		list = append(list, r)
		w.Add(r)
	}
	f, err := w.Close()
	must.Do(t, err)
	defer f.Release()
	if len(f.sealed) != 2 {
		t.Fatalf("%d sealed blocks, want 2", len(f.sealed))
	}
	b, err := io.ReadAll(f.Reader())
	must.Do(t, err)
	return b, list
}

// readAll opens b as a file and reads all of it, one way or the other.
func readAll(b []byte, damaged func(error)) ([]Record, error) {
	d := newMemoryDisk()
	d.now[Hash{}.String()+fileSuffix] = &memoryFile{bytes: b}
	s, err := open(d, Options{Damaged: damaged})
	if err != nil {
		return nil, err
	}
	f, err := s.File(Hash{})
	if err != nil {
		return nil, err
	}
	defer f.Release()
	var list []Record
	err = f.Scan(func(r Record) error {
		list = append(list, Record{r.Sequence, bytes.Clone(r.Clear), bytes.Clone(r.Sealed)})
		return nil
	})
	if err != nil {
		return list, err
	}
	for _, r := range list {
		if got, oneErr := f.Sealed(r.Sequence); len(r.Sealed) > 0 && (oneErr != nil || !bytes.Equal(got, r.Sealed)) {
			return list, fmt.Errorf("%w: record %d by itself: %w", ErrCorrupt, r.Sequence, oneErr)
		}
	}
	return list, nil
}

func TestFlippedBitsAndCutsAreFound(t *testing.T) {
	t.Parallel()
	good, want := sample(t)
	if got, err := readAll(good, nil); err != nil || !same(got, want) {
		t.Fatalf("sound: %d records, %v", len(got), err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		if _, err := readAll(bad, nil); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("bit %d of byte %d of %d: got %v, want ErrCorrupt", i%8, i, len(good), err)
		}
	}
	for n := range good {
		if _, err := readAll(good[:n], nil); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut to %d of %d bytes: got %v, want ErrCorrupt", n, len(good), err)
		}
	}
	if _, err := readAll(append(bytes.Clone(good), 0), nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte more: %v", err)
	}
}

func TestDamageOfOpenFileIsReported(t *testing.T) {
	t.Parallel()
	good, _ := sample(t)
	bad := bytes.Clone(good)
	bad[100] ^= 1
	var told []error
	if _, err := readAll(bad, func(err error) { told = append(told, err) }); err == nil || len(told) == 0 {
		t.Fatalf("%v; told %v", err, told)
	}
	if !errors.Is(told[0], ErrCorrupt) || !bytes.Contains([]byte(told[0].Error()), []byte(Hash{}.String())) {
		t.Errorf("told %v", told[0])
	}
}

func TestReceivedFileMatchesHash(t *testing.T) {
	t.Parallel()
	good, want := sample(t)
	d := newMemoryDisk()
	s, err := open(d, Options{})
	must.Do(t, err)
	var ref Ref
	w, _ := s.Create()
	for _, r := range want {
		w.Add(r)
	}
	f, err := w.Close()
	must.Do(t, err)
	ref = f.Ref()
	f.Release()
	must.Do(t, s.Collect())
	receive := func(b []byte) error {
		r, err := s.Receive(ref)
		must.Do(t, err)
		if _, err := r.Write(b); err != nil {
			return errors.Join(err, r.Cancel())
		}
		f, err := r.Close()
		if err == nil {
			f.Release()
		}
		return err
	}
	bad := bytes.Clone(good)
	bad[40] ^= 2
	for name, b := range map[string][]byte{"changed": bad, "cut": good[:50], "nothing": nil, "longer": append(bytes.Clone(good), 1)} {
		if err := receive(b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
		if names, _ := d.list(); len(names) != 0 {
			t.Errorf("%s: it leaves %v", name, names)
		}
	}
	if err := receive(good); err != nil || !s.Has(ref.Hash) {
		t.Errorf("sound: %v", err)
	}
}

func TestInvalidSetIsRefused(t *testing.T) {
	t.Parallel()
	s, err := open(newMemoryDisk(), Options{})
	must.Do(t, err)
	file := func(sequences ...uint64) *File {
		w, err := s.Create()
		must.Do(t, err)
		for _, n := range sequences {
			w.Add(plain(n, 10))
		}
		f, err := w.Close()
		must.Do(t, err)
		return f
	}
	f := func(name string, parts ...Part) {
		t.Helper()
		if _, err := NewSet(parts); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
		if len(s.files) != 0 {
			t.Errorf("%s: %d files are held still", name, len(s.files))
		}
	}
	f("files in the wrong order", Part{File: file(5, 6)}, Part{File: file(1, 2)})
	f("files that overlap", Part{File: file(1, 5)}, Part{File: file(5, 6)})
	f("the same file twice", Part{File: file(1)}, Part{File: file(1)})
	f("a dead record before the file", Part{File: file(5, 6), Dead: []uint64{4}})
	f("a dead record behind the file", Part{File: file(5, 6), Dead: []uint64{7}})
	f("dead records out of order", Part{File: file(5, 6), Dead: []uint64{6, 5}})
}

func FuzzReadFile(f *testing.F) {
	good, _ := sample(f)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte(headMagic + footMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, resum(b)} {
			list, err := readAll(b, nil)
			if err != nil {
				continue
			}
			for i := range list {
				if i > 0 && list[i].Sequence <= list[i-1].Sequence {
					t.Fatalf("record %d after %d", list[i].Sequence, list[i-1].Sequence)
				}
			}
		}
	})
}
