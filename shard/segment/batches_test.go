package segment

import (
	"bytes"
	"errors"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/internal/must"
)

// notes are records in memory, and the files that have them.
type notes struct {
	t       testing.TB
	store   *Store
	last    uint64
	records map[uint64]Record
	files   []Batch
	held    *Batches
	written int64
}

func newNotes(t testing.TB, d disk, bytes int64) *notes {
	t.Helper()
	s, err := open(d, Options{Bytes: bytes, Damaged: func(err error) { t.Error(err) }})
	must.Do(t, err)
	return &notes{t: t, store: s, records: make(map[uint64]Record)}
}

func (n *notes) Last() uint64 { return n.last }

func (n *notes) among(first, last uint64) []uint64 {
	all := slices.Sorted(maps.Keys(n.records))
	return slices.DeleteFunc(all, func(s uint64) bool { return s < first || s > last })
}

func (n *notes) Count(first, last uint64) uint64 { return uint64(len(n.among(first, last))) }

func (n *notes) Records(first, last uint64) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for _, s := range n.among(first, last) {
			if !yield(n.records[s]) {
				return
			}
		}
	}
}

func (n *notes) add(count int) {
	for range count {
		n.last += 1 + rand.Uint64N(2)
		n.records[n.last] = plain(n.last, 0)
	}
}

// rebatch makes the next files and lets go of those before.
func (n *notes) rebatch(clean Clean) {
	n.t.Helper()
	b, err := n.store.Rebatch(n.files, n, clean)
	must.Do(n.t, err)
	n.held.Release()
	n.files, n.held = b.List(), b
	n.written += b.Written.Bytes
	must.Do(n.t, n.store.Collect())
}

// read returns the records of all files that a new store finds on the disk.
func read(t testing.TB, s *Store, files []Batch) map[uint64]Record {
	t.Helper()
	all, last := make(map[uint64]Record), uint64(0)
	for _, b := range files {
		f, err := s.File(b.Hash)
		must.Do(t, err)
		if f.Batch() != b || b.First <= last {
			t.Fatalf("file %+v after %d, want %+v", f.Batch(), last, b)
		}
		last = b.Last
		err = f.Scan(func(r Record) error {
			all[r.Sequence] = Record{r.Sequence, bytes.Clone(r.Clear), nil}
			return nil
		})
		must.Do(t, err)
		f.Release()
	}
	return all
}

// check compares files with the records that live; exact says that none may be dead.
func (n *notes) check(s *Store, files []Batch, exact bool) {
	n.t.Helper()
	got := read(n.t, s, files)
	for sequence, want := range n.records {
		r, ok := got[sequence]
		if !ok || !bytes.Equal(r.Clear, want.Clear) {
			n.t.Fatalf("record %d is %q, want %q", sequence, r.Clear, want.Clear)
		}
	}
	if exact && len(got) != len(n.records) {
		n.t.Fatalf("%d records are in files, %d live", len(got), len(n.records))
	}
}

func TestBatchesHoldLiveRecords(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := newMemoryDisk()
		n := newNotes(t, d, 4*(1+r.Int64N(2000)))
		for range 30 {
			n.add(r.IntN(60))
			switch all := n.among(0, n.last); r.IntN(4) {
			case 0: // the oldest
				for _, s := range all[:r.IntN(len(all)+1)] {
					delete(n.records, s)
				}
			case 1:
				for _, s := range all {
					if r.IntN(3) == 0 {
						delete(n.records, s)
					}
				}
			}
			clean := Clean(r.IntN(3))
			n.rebatch(clean)
			n.check(n.store, n.files, clean == Erase)
			again, err := open(d, Options{})
			must.Do(t, err)
			n.check(again, n.files, clean == Erase)
			if names, _ := d.list(); len(names) != len(n.files) {
				t.Fatalf("files %v, want %d", names, len(n.files))
			}
		}
		if n.held.Release(); len(n.store.files) > 0 {
			t.Fatalf("%d files are open", len(n.store.files))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestUnchangedBatchIsNotRewritten(t *testing.T) {
	t.Parallel()
	n := newNotes(t, newMemoryDisk(), 0)
	n.add(1000)
	n.rebatch(Share)
	before := n.files
	n.rebatch(Erase)
	n.add(1)
	n.rebatch(Share)
	if n.held.Written.Files != 1 || n.held.Written.Bytes > 300 || !slices.Equal(n.files[:1], before) {
		t.Errorf("%+v for one record; files %v, before %v", n.held.Written, n.files, before)
	}
}

// TestFilesStayFew notes more records than fit into a
// file, and forgets them in their order.
func TestFilesStayFew(t *testing.T) {
	t.Parallel()
	s, err := open(newMemoryDisk(), Options{})
	must.Do(t, err)
	const known, step = 3 << 15, 1 << 11
	line := &line{}
	var files []Batch
	var held *Batches
	var all, written int64
	for line.last < 2*known {
		line.last += step
		line.first = max(line.first, line.last-min(known, line.last)) + 1
		b, err := s.Rebatch(files, line, Leave)
		must.Do(t, err)
		held.Release()
		must.Do(t, s.Collect())
		held, files, written = b, b.List(), written+b.Written.Bytes
		all += step * (recordHeadBytes + sealedLenBytes + int64(len(lineClear)))
		var records uint64
		for _, b := range files {
			records += b.Records
		}
		if len(files) > known/batchRecords*2+6 || records > known+batchRecords {
			t.Fatalf("%d files have %d records, of which %d live", len(files), records, known)
		}
	}
	held.Release()
	if t.Logf("%d bytes were written of %d", written, all); written > 5*all {
		t.Errorf("%d bytes were written of %d", written, all)
	}
}

const lineClear = "as long as an operation: 100 bytes 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789"

// line is records without gaps, of which the oldest go first.
type line struct{ first, last uint64 }

func (l *line) Last() uint64 { return l.last }

func (l *line) Count(first, last uint64) uint64 {
	first, last = max(first, l.first), min(last, l.last)
	if first > last {
		return 0
	}
	return last - first + 1
}

func (l *line) Records(first, last uint64) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for s := max(first, l.first); s <= min(last, l.last) && yield(Record{Sequence: s, Clear: []byte(lineClear)}); s++ {
		}
	}
}

// rebatching is one Rebatch with everything in it: new records, files that are written
// anew, joined, dropped and kept.
func rebatching(t testing.TB, d *memoryDisk) *notes {
	t.Helper()
	n := newNotes(t, d, 8000)
	for range 4 {
		n.add(60)
		n.rebatch(Share)
	}
	for i, s := range n.among(0, n.last) {
		if i < 30 || i%3 == 0 {
			delete(n.records, s)
		}
	}
	n.add(50)
	return n
}

func TestPowerLossKeepsOldBatches(t *testing.T) {
	t.Parallel()
	for calls := 0; ; calls++ {
		d := newMemoryDisk()
		n := rebatching(t, d)
		before := read(t, n.store, n.files)
		d.left = calls
		next, err := n.store.Rebatch(n.files, n, Erase)
		if err != nil && !errors.Is(err, errDisk) {
			t.Fatalf("call %d: %v", calls, err)
		}
		for name, after := range map[string]*memoryDisk{"a restart": d, "a loss of power": d.restart()} {
			after.left = -1
			again, err := open(after, Options{})
			if err != nil {
				t.Fatalf("call %d, %s: %v", calls, name, err)
			}
			if got := read(t, again, n.files); !maps.EqualFunc(got, before, func(a, b Record) bool { return bytes.Equal(a.Clear, b.Clear) }) {
				t.Fatalf("call %d, %s: the old files have %d records, want %d", calls, name, len(got), len(before))
			}
			if next != nil {
				n.check(again, next.List(), true)
			}
		}
		if err == nil {
			if calls < 10 {
				t.Fatalf("only %d calls", calls)
			}
			return
		}
		// The next one works, and nothing stays open or lies about.
		d.left = -1
		n.rebatch(Erase)
		n.check(n.store, n.files, true)
		if names, _ := d.list(); len(names) != len(n.files) || len(n.store.files) != len(n.files) {
			t.Fatalf("call %d: files %v, %d open, want %d", calls, names, len(n.store.files), len(n.files))
		}
	}
}

func TestLostBatchIsRewrittenFromMemory(t *testing.T) {
	t.Parallel()
	for gone := range 3 {
		d := newMemoryDisk()
		n := newNotes(t, d, 4000)
		n.add(100)
		n.rebatch(Share)
		if len(n.files) < 3 {
			t.Fatalf("%d files", len(n.files))
		}
		n.held.Release()
		must.Do(t, d.remove(n.files[gone].Hash.String()+fileSuffix))
		n.held = nil
		n.rebatch(Share)
		n.check(n.store, n.files, true)
	}
}
