package shard

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/internal/must"
	"facet/shard/kernel"
	"facet/shard/segment"
)

// saveAll saves codes until all segments have theirs, and returns how many rows these have.
func saveAll(t testing.TB, s *Shard) (rows int) {
	t.Helper()
	for range 200 {
		saved, err := s.SaveCodes(t.Context(), kernel.BlockRows)
		must.Do(t, err)
		if saved.Files == 0 {
			return rows
		}
		rows += saved.Rows
	}
	t.Fatal("codes are saved again and again")
	return 0
}

// restarted replaces the state by that of a snapshot, as a start does.
func restarted(t testing.TB, s *Shard) {
	t.Helper()
	b := frozenInto(t, s, segment.Share)
	l, err := loaded(b, s.Store())
	must.Do(t, err)
	s.Replace(l)
	l.Close()
}

// After each restart, searches of all kinds give what the definition gives, with events that came,
// changed and went before and after.
func TestSearchesAfterRestartEqualPlainScan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		w := newMeansTwin(t, seed, []int{7, 192}[seed])
		w.ordinary = true
		store := openStore(t, 200_000)
		w.Keep(store)
		cold := 0
		for step := range 1500 {
			w.write(t)
			switch w.rand.IntN(60) {
			case 0:
				w.agreeMeans(t, w.query())
			case 1, 2:
				w.agree(t, w.query())
			case 3:
				if _, err := w.Thaw(t.Context()); err != nil && !errors.Is(err, errNoKey) {
					t.Fatal(err)
				}
			}
			if step%250 == 249 {
				w.agree(t, w.query()) // opens all
				frozenInto(t, w.Shard, segment.Share)
				saveAll(t, w.Shard)
				for range w.rand.IntN(60) {
					w.write(t)
				}
				restarted(t, w.Shard)
				must.Do(t, store.Collect())
				for range w.rand.IntN(60) {
					w.write(t)
				}
				w.agree(t, w.query())
				cold = max(cold, w.ColdRows())
			}
		}
		if cold < 2*kernel.BlockRows {
			t.Errorf("seed %d: %d rows came by their codes", seed, cold)
		}
		for range 10 {
			w.agree(t, w.query())
			w.agreeMeans(t, w.query())
		}
		if n := w.RefusedCodes(); n != 0 {
			t.Errorf("seed %d: %d pieces were refused", seed, n)
		}
		w.Close()
	}
}

// codedShard has n events in segments with codes, in the folder.
func codedShard(t *testing.T, dir string, n int) *Shard {
	t.Helper()
	store, err := segment.Open(dir, segment.Options{Bytes: 40_000})
	must.Do(t, err)
	s, key := newTestShard(t, 5000), testKey(t, 1)
	s.arena = kernel.NewArena(0)
	s.state.arena = s.arena
	s.Keep(store)
	r := rand.New(rand.NewPCG(9, 9))
	for i := range n {
		put(t, s, newEvent(key, i, randomTemplate(r, testDim)))
	}
	frozenInto(t, s, segment.Share)
	must.Do(t, s.Warm(t.Context(), testGallery, 1, key))
	if rows := saveAll(t, s); rows < n/2 {
		t.Fatalf("%d of %d rows have codes", rows, n)
	}
	return s
}

func companions(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.codes.seg"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%v, %v", names, err)
	}
	return names
}

// Whatever lies in the place of the codes, all events are found.
func TestForeignCodesAreEncodedAgain(t *testing.T) {
	t.Parallel()
	const events = 600
	for name, change := range map[string]func(b []byte, others [][]byte) []byte{
		"nothing":         func([]byte, [][]byte) []byte { return nil },
		"magic only":      func(b []byte, _ [][]byte) []byte { return b[:8] },
		"cut":             func(b []byte, _ [][]byte) []byte { return b[:len(b)-100] },
		"sealed changed":  func(b []byte, _ [][]byte) []byte { b[200] ^= 1; return b },
		"coding changed":  func(b []byte, _ [][]byte) []byte { b[8+30] ^= 1; return b },
		"rows changed":    func(b []byte, _ [][]byte) []byte { b[8+54] ^= 64; return b },
		"another gallery": func(b []byte, _ [][]byte) []byte { b[8] ^= 1; return b },
		"another segment": func(_ []byte, others [][]byte) []byte { return others[0] },
		"dimension":       func(b []byte, _ [][]byte) []byte { b[8+52] ^= 3; return b },
	} {
		dir := t.TempDir()
		s := codedShard(t, dir, events)
		names := companions(t, dir)
		var texts [][]byte
		for _, name := range names {
			b, err := os.ReadFile(name)
			must.Do(t, err)
			texts = append(texts, b)
		}
		for i, path := range names {
			must.Do(t, os.WriteFile(path, change(bytes.Clone(texts[i]), slices.Concat(texts[i+1:], texts[:i])), 0o600))
		}
		restarted(t, s)
		foundAll(t, s, name, events)
		if n := s.ColdRows(); n > 0 {
			t.Errorf("%s: %d rows came by codes", name, n)
		}
		if name != "another gallery" { // these are of no slice here
			for _, path := range names {
				if _, err := os.Stat(path); err == nil {
					t.Errorf("%s: the codes stay", name)
				}
			}
		}
		s.Close()
	}
}

// foundAll demands that each event is found by its template.
func foundAll(t testing.TB, s *Shard, name string, events int) {
	t.Helper()
	r, key := rand.New(rand.NewPCG(9, 9)), testKey(t, 1)
	for i := range events {
		hits, err := search(s, key, randomTemplate(r, testDim))
		if err != nil || len(hits) == 0 || hits[0].Event != newEvent(key, i, axis(0)).Event {
			t.Fatalf("%s: event %d: %v, %v", name, i, hits, err)
		}
	}
}

func TestRestartByCodesEncodesFewTemplates(t *testing.T) {
	t.Parallel()
	s := codedShard(t, t.TempDir(), 600)
	defer s.Close()
	before := s.Memory()
	restarted(t, s)
	waiting := s.Memory()
	foundAll(t, s, "restart", 600)
	if n := s.ColdRows(); n < 400 {
		t.Errorf("%d of 600 rows came by their codes", n)
	}
	if waiting >= before {
		t.Errorf("%d bytes are estimated before they are open, %d with all rows in memory", waiting, before)
	}
}

// A round of erasure leaves neither the segment of an erased face nor its codes.
func TestErasureRemovesCodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := codedShard(t, dir, 600)
	defer s.Close()
	before := companions(t, dir)
	key := testKey(t, 1)
	victim := newEvent(key, 5, axis(0))
	must.Do(t, s.Erase(Erasure{testGallery, 1, victim.Subject, 10_000}))
	frozenInto(t, s, segment.Erase)
	must.Do(t, s.Store().Collect())
	after, err := filepath.Glob(filepath.Join(dir, "*.codes.seg"))
	if err != nil || len(after) != len(before)-1 {
		t.Fatalf("%d files of codes, %d after the erasure of one face, %v", len(before), len(after), err)
	}
	if rows := saveAll(t, s); rows == 0 {
		t.Error("the new segment gets no codes")
	}
}

// Codes are saved beside writes, searches, erasures and snapshots.
func TestCodesAreSavedBesideWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, key := codedShard(t, dir, 600), testKey(t, 1)
	defer s.Close()
	var written, done atomic.Bool
	var saver, searcher sync.WaitGroup
	saved := 0
	saver.Go(func() {
		// On a busy machine none may end before the writes do, or before the search has opened the rows.
		for last := 0; !written.Load() || saved == 0 && last < 1000; {
			if written.Load() {
				last++
				time.Sleep(time.Millisecond)
			}
			got, err := s.SaveCodes(t.Context(), kernel.BlockRows)
			if err != nil {
				t.Error(err)
				return
			}
			saved += got.Rows
		}
	})
	searcher.Go(func() {
		for !done.Load() {
			if _, err := search(s, key, axis(3)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 25 {
		for n := range 100 {
			put(t, s, newEvent(key, 1000+100*i+n, randomTemplate(r, testDim)))
		}
		gone := newEvent(key, 1000+100*i+3, axis(0))
		must.Do(t, s.Erase(Erasure{testGallery, 1, gone.Subject, int64(1000 + 100*i + 99)}))
		frozenInto(t, s, []segment.Clean{segment.Share, segment.Erase}[i%2])
		must.Do(t, s.Store().Collect())
	}
	written.Store(true)
	saver.Wait()
	done.Store(true)
	searcher.Wait()
	if saved == 0 {
		t.Error("nothing was saved")
	}
	saveAll(t, s)
	restarted(t, s)
	foundAll(t, s, "beside writes", 600)
	if n := s.RefusedCodes(); n != 0 {
		t.Errorf("%d pieces were refused", n)
	}
}

func TestShortMemoryLeavesOpenedRowsOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := codedShard(t, dir, 600)
	defer s.Close()
	for _, name := range companions(t, dir) {
		must.Do(t, os.Remove(name))
	}
	s.MemoryShort(true)
	restarted(t, s)
	foundAll(t, s, "short", 600)
	if n := s.ColdRows(); n < 400 {
		t.Errorf("%d of 600 rows are cold", n)
	}
}
