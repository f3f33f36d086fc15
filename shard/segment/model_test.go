package segment

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"facet/internal/must"
)

// plain is a record that owns its parts.
func plain(sequence uint64, sealedBytes int) Record {
	r := Record{Sequence: sequence, Clear: fmt.Appendf(nil, "clear %d", sequence)}
	if sealedBytes > 0 {
		r.Sealed = bytes.Repeat(fmt.Appendf(nil, "sealed %d|", sequence), 1+sealedBytes/8)[:sealedBytes]
	}
	return r
}

func each(list []Record) iter.Seq[Record] { return slices.Values(list) }

// contents reads the live records of a set in order.
func contents(t testing.TB, s *Set) []Record {
	t.Helper()
	var all []Record
	for _, p := range s.Parts() {
		err := p.File.Scan(func(r Record) error {
			if _, dead := slices.BinarySearch(p.Dead, r.Sequence); !dead {
				all = append(all, Record{r.Sequence, bytes.Clone(r.Clear), bytes.Clone(r.Sealed)})
			}
			return nil
		})
		must.Do(t, err)
	}
	return all
}

func same(a, b []Record) bool {
	return slices.EqualFunc(a, b, func(a, b Record) bool {
		return a.Sequence == b.Sequence && bytes.Equal(a.Clear, b.Clear) && bytes.Equal(a.Sealed, b.Sealed)
	})
}

// model is a store and the state that its set must hold.
type model struct {
	t     testing.TB
	store *Store
	set   *Set
	live  map[uint64]Record
	last  uint64
	died  []uint64
	fresh []Record
}

func (m *model) add(sealedBytes int) {
	m.last += 1 + rand.Uint64N(3)
	r := plain(m.last, sealedBytes)
	m.live[m.last] = r
	m.fresh = append(m.fresh, r)
}

func (m *model) kill(sequence uint64) {
	delete(m.live, sequence)
	if i, ok := slices.BinarySearchFunc(m.fresh, sequence, func(r Record, s uint64) int { return int(int64(r.Sequence) - int64(s)) }); ok {
		m.fresh = slices.Delete(m.fresh, i, i+1)
	}
	m.died = append(m.died, sequence)
}

func (m *model) want() []Record {
	var all []Record
	for _, s := range slices.Sorted(maps.Keys(m.live)) {
		all = append(all, m.live[s])
	}
	return all
}

func (m *model) build(clean Clean) Built {
	m.t.Helper()
	next, built, err := m.store.Build(m.set, Change{Dead: m.died, Fresh: each(m.fresh), Clean: clean})
	must.Do(m.t, err)
	m.set.Release()
	m.set, m.died, m.fresh = next, nil, nil
	return built
}

func TestSetHoldsLiveRecords(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 1))
		d := newMemoryDisk()
		store, err := open(d, Options{Bytes: 40_000, Damaged: func(err error) { t.Error(err) }})
		must.Do(t, err)
		m := &model{t: t, store: store, live: make(map[uint64]Record)}
		for range 30 {
			for range random.IntN(60) {
				m.add(random.IntN(4) * random.IntN(700))
			}
			keys := slices.Sorted(maps.Keys(m.live))
			for range random.IntN(1 + len(keys)/(1+random.IntN(8))) {
				if i := random.IntN(len(keys)); keys[i] != 0 {
					m.kill(keys[i])
					keys[i] = 0
				}
			}
			clean := Clean(random.IntN(2))
			m.build(clean)
			if got := contents(t, m.set); !same(got, m.want()) {
				t.Fatalf("seed %d: %d records, want %d", seed, len(got), len(m.live))
			}
			for s, r := range m.live {
				got, err := m.set.Sealed(s)
				if len(r.Sealed) == 0 && !errors.Is(err, ErrMissing) || len(r.Sealed) > 0 && !bytes.Equal(got, r.Sealed) {
					t.Fatalf("seed %d: sealed part of %d: %d bytes, %v", seed, s, len(got), err)
				}
			}
			for _, p := range m.set.Parts() {
				if clean == Erase && p.DeadSealed > 0 {
					t.Fatalf("seed %d: %d sealed parts of dead records stay", seed, p.DeadSealed)
				}
			}
			must.Do(t, store.Collect())
			if names, _ := d.list(); len(names) != len(m.set.Parts()) {
				t.Fatalf("seed %d: %d files in the folder, %d in the set", seed, len(names), len(m.set.Parts()))
			}
		}
		m.set.Release()
		if len(store.files) != 0 {
			t.Fatalf("seed %d: %d files are held by nobody and open", seed, len(store.files))
		}
	}
}

func TestSmallFilesAreMerged(t *testing.T) {
	t.Parallel()
	store, err := open(newMemoryDisk(), Options{Bytes: 1 << 20})
	must.Do(t, err)
	m := &model{t: t, store: store, live: make(map[uint64]Record)}
	defer func() { m.set.Release() }()
	var written int64
	for range 200 {
		for range 20 {
			m.add(800)
		}
		written += m.build(Share).Bytes
	}
	if ratio := float64(written) / float64(m.set.Bytes()); ratio > mergeLevels+1 {
		t.Errorf("each byte was written %.1f times", ratio)
	}
	if n, least := len(m.set.Parts()), int(m.set.Bytes()>>20); n > mergeFiles*(least+mergeLevels) {
		t.Errorf("%d files for %d MiB", n, least)
	}
}

func TestFolderKeepsFinishedFilesOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "segments")
	store, err := Open(dir, Options{})
	must.Do(t, err)
	m := &model{t: t, store: store, live: make(map[uint64]Record)}
	for range 50 {
		m.add(500)
	}
	m.build(Share)
	must.Do(t, os.WriteFile(filepath.Join(dir, "3.tmp"), []byte("half"), 0o600))
	parts := m.set.Parts()
	again, err := Open(dir, Options{})
	must.Do(t, err)
	set := reopen(t, again, parts)
	if got := contents(t, set); !same(got, m.want()) {
		t.Errorf("%d records, want %d", len(got), len(m.live))
	}
	if names, err := osDisk(dir).list(); err != nil || len(names) != 1 {
		t.Errorf("files %v, %v, want one", names, err)
	}
	set.Release()
	m.set.Release()
	must.Do(t, again.Collect())
	if names, err := osDisk(dir).list(); err != nil || len(names) != 0 {
		t.Errorf("files %v, %v stay", names, err)
	}
}
