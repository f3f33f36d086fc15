package segment

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"facet/internal/must"
)

// counter counts the bytes that are read.
type counter struct {
	readable
	n *int
}

func (c counter) ReadAt(b []byte, offset int64) (int, error) {
	*c.n += len(b)
	return c.readable.ReadAt(b, offset)
}

func TestSealedAloneEqualsSealed(t *testing.T) {
	t.Parallel()
	const length, most = 600, 500
	// f builds a set of those sequences that there leaves, of parts as long as size says, reads all of
	// them, and returns the mean of the bytes read for each.
	f := func(there func(i uint64) bool, size func(i uint64) int) float64 {
		t.Helper()
		store, err := open(newMemoryDisk(), Options{Bytes: 60_000, Damaged: func(err error) { t.Error(err) }})
		must.Do(t, err)
		var list []Record
		for i := range uint64(most) {
			if there(i) {
				list = append(list, plain(i+1, size(i)))
			}
		}
		set, _, err := store.Build(nil, Change{Fresh: each(list)})
		must.Do(t, err)
		defer set.Release()
		var r Single
		read := 0
		for _, p := range set.Parts() {
			p.File.at = counter{p.File.at, &read}
		}
		for _, want := range list {
			if len(want.Sealed) == 0 {
				continue
			}
			if got, err := set.SealedAlone(&r, want.Sequence, len(want.Sealed)); err != nil || !bytes.Equal(got, want.Sealed) {
				t.Fatalf("record %d: %d bytes, %v", want.Sequence, len(got), err)
			}
		}
		mean := float64(read) / float64(len(list))
		for i := range uint64(most + 10) {
			want, wantErr := set.Sealed(i)
			got, err := set.SealedAlone(&r, i, length)
			if errors.Is(err, ErrMissing) != errors.Is(wantErr, ErrMissing) || !bytes.Equal(got, want) {
				t.Fatalf("record %d: %d bytes, %v; want %d, %v", i, len(got), err, len(want), wantErr)
			}
		}
		return mean
	}
	random := rand.New(rand.NewPCG(1, 1))
	all, same := func(uint64) bool { return true }, func(uint64) int { return length }
	if n := f(all, same); n != length+recordHeadBytes {
		t.Errorf("%v bytes were read for a record of %d", n, length+recordHeadBytes)
	}
	if n := f(func(uint64) bool { return random.IntN(6) > 0 }, same); n > 6*length {
		t.Errorf("%v bytes were read where every sixth record is missing", n)
	}
	f(func(i uint64) bool { return i%100 < 10 }, same)
	f(all, func(i uint64) int { return length * int(min(i%5, 1)) })
	f(all, func(uint64) int { return 1 + random.IntN(2*length) })
	f(all, func(i uint64) int { return length - 100 + 200*int(i%2) }) // 600 in the mean
	var none *Set
	if _, err := none.SealedAlone(new(Single), 1, length); !errors.Is(err, ErrMissing) {
		t.Errorf("no set: %v", err)
	}
}

// Damage of a head is found. That of a part is left to the caller.
func TestSealedAloneReportsDamagedHead(t *testing.T) {
	t.Parallel()
	var damage error
	d, set, list := setOf(t, 30, 600, &damage)
	file := set.Parts()[0].File
	flip := func(at int64) {
		for name := range d.now {
			d.now[name].bytes[file.sealed[0].offset+at] ^= 1
		}
	}
	var r Single
	for at := range int64(recordHeadBytes) {
		damage = nil
		flip(3*(600+recordHeadBytes) + at)
		if _, err := set.SealedAlone(&r, 4, 600); !errors.Is(err, ErrCorrupt) || !errors.Is(damage, ErrCorrupt) {
			t.Errorf("byte %d: got %v, and %v was reported", at, err, damage)
		}
		damage = nil
		if got, err := set.SealedAlone(&r, 5, 600); err != nil || damage != nil || !bytes.Equal(got, list[4].Sealed) {
			t.Errorf("byte %d: the record behind it: %d bytes, %v", at, len(got), err)
		}
		flip(3*(600+recordHeadBytes) + at)
	}
}
