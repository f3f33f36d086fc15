package segment

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"facet/internal/must"
)

func TestCursorEqualsSealedInAnyOrder(t *testing.T) {
	t.Parallel()
	store, err := open(newMemoryDisk(), Options{Bytes: 60_000, Damaged: func(err error) { t.Error(err) }})
	must.Do(t, err)
	var list []Record
	for i := range uint64(400) { // every third sequence is missing, every seventh record has no sealed part
		if i%3 != 2 {
			list = append(list, plain(i+1, min(int(i%7), 1)*600))
		}
	}
	set, _, err := store.Build(nil, Change{Fresh: each(list)})
	must.Do(t, err)
	defer set.Release()
	if n := len(set.Parts()); n < 3 {
		t.Fatalf("%d files are too few", n)
	}
	f := func(c *Cursor, sequence uint64) {
		t.Helper()
		want, wantErr := set.Sealed(sequence)
		got, err := set.SealedBy(c, sequence)
		if errors.Is(err, ErrMissing) != errors.Is(wantErr, ErrMissing) || !bytes.Equal(got, want) {
			t.Fatalf("record %d: %d bytes, %v; want %d, %v", sequence, len(got), err, len(want), wantErr)
		}
	}
	var up, down, anyhow Cursor
	for i := range uint64(410) {
		f(&up, i)
		f(&down, 410-i)
		f(&anyhow, rand.Uint64N(410))
		f(&anyhow, i/2)
	}
	var none *Set
	if _, err := none.SealedBy(&up, 1); !errors.Is(err, ErrMissing) {
		t.Errorf("no set: %v", err)
	}
}

func TestCursorReadsBlockOnce(t *testing.T) {
	t.Parallel()
	var damage error
	d, set, list := setOf(t, 200, 800, &damage)
	file := set.Parts()[0].File
	var c Cursor
	blocks := make(map[*byte]bool)
	for i := range uint64(200) {
		if _, err := set.SealedBy(&c, i+1); err != nil {
			t.Fatal(err)
		}
		blocks[&c.block[0]] = true
	}
	// Blocks differ by the size of a sequence's digits, so the memory may grow a few times.
	if n := len(blocks); n > len(file.sealed)/2 {
		t.Errorf("%d blocks of %d were read into memory of their own", n, len(file.sealed))
	}
	for name := range d.now {
		d.now[name].bytes[file.sealed[3].offset+5] ^= 1
	}
	if _, err := set.SealedBy(&c, file.sealed[3].last); !errors.Is(err, ErrCorrupt) || !errors.Is(damage, ErrCorrupt) {
		t.Errorf("got %v, and %v was reported", err, damage)
	}
	if part, err := set.SealedBy(&c, 200); err != nil || !bytes.Equal(part, list[199].Sealed) {
		t.Errorf("behind the damage: %d bytes, %v", len(part), err)
	}
}
