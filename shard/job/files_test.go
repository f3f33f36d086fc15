package job

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/segment"
)

// disk is the store of a book's files.
type disk struct {
	*segment.Store
	dir string
}

func openDisk(t testing.TB) disk {
	t.Helper()
	d := disk{dir: t.TempDir()}
	var err error
	if d.Store, err = segment.Open(d.dir, segment.Options{Bytes: 8000}); err != nil {
		t.Fatal(err)
	}
	return d
}

// store makes a snapshot of k that refers to files, and adopts it.
func (d disk) store(t testing.TB, k *Book, clean segment.Clean) []byte {
	t.Helper()
	v := k.Freeze()
	defer v.Release()
	must.Do(t, v.Settle(d.Store, clean))
	var b bytes.Buffer
	w := codec.NewWriter(&b, magic, 1)
	v.Write(w)
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	v.Adopt()
	if err := d.Collect(); err != nil { // the files of v are held still
		t.Fatal(err)
	}
	return b.Bytes()
}

// files returns what lies in the folder.
func (d disk) files(t testing.TB) (all []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(d.dir, "*"))
	must.Do(t, err)
	for _, name := range names {
		b, err := os.ReadFile(name)
		must.Do(t, err)
		all = append(all, b...)
	}
	return all
}

func readWith(b []byte, store *segment.Store) (*Book, error) {
	in, err := codec.NewReader(bytes.NewReader(b), magic)
	if err != nil {
		return nil, err
	}
	l := NewLoader()
	l.Keep(store)
	for {
		m, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			_, err = l.Load(m)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := l.Check(); err != nil {
		return nil, err
	}
	k := New()
	k.Replace(l)
	return k, nil
}

// step does something to both books, which are equal.
func step(t *testing.T, r *rand.Rand, now int64, books ...*Book) {
	t.Helper()
	n, what, total := byte(r.IntN(12)), r.IntN(9), uint32(1+r.IntN(30))
	first, count := uint32(r.IntN(10)), 1+r.IntN(20)
	text := make([]byte, 40)
	for i := range text {
		text[i] = byte(r.Uint32())
	}
	for _, k := range books {
		b := beginning(n, total)
		b.Time = now
		if owner := n % 3; owner > 0 { // the others count for no tenant
			b.Share = Share{id.Tenant{UUID: id.UUID{owner}}, 4, 60}
		}
		switch what {
		case 0, 1, 2:
			_, _ = k.Begin(b)
		case 3, 4:
			var items [][]byte
			for i := range count {
				items = append(items, append([]byte{n, byte(i)}, text...))
			}
			_, _ = k.Add(name(n), first, items, now)
		case 5:
			_, _ = k.Open(name(n), now)
		case 6, 7:
			var results []Result
			for i := range count {
				results = append(results, Result{Index: first + uint32(i), Attempts: uint32(count), Sealed: text, Event: id.Event{UUID: id.UUID{n}}})
			}
			_, _ = k.Finish(name(n), results, now)
		case 8:
			if n == 0 {
				k.Fence(name(byte(count%12)).Gallery, 2)
			}
			k.Expire(now)
		}
	}
}

// TestBookIsRestoredFromFiles compares a book that goes on from snapshots
// with files with one that never left the process.
func TestBookIsRestoredFromFiles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		d, steady, other := openDisk(t), New(), New()
		now, kept := int64(1000), 0
		for range 25 {
			for range r.IntN(60) {
				now += r.Int64N(60_000)
				step(t, r, now, steady, other)
			}
			if r.IntN(6) == 0 {
				now += keptMillis
			}
			kept += steady.state.items
			switch r.IntN(5) {
			case 0: // a snapshot that fails behind its files
				v := other.Freeze()
				must.Do(t, v.Settle(d.Store, segment.Share))
				v.Release()
			case 1: // one of an earlier level
				v := other.Freeze()
				v.Adopt()
				v.Release()
			case 2:
				d.store(t, other, segment.Clean(r.IntN(2)))
			default: // a restart, or another member
				loaded, err := readWith(d.store(t, other, segment.Clean(r.IntN(2))), d.Store)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				other = loaded
			}
			if !bytes.Equal(write(t, steady), write(t, other)) || steady.Left(Registrations) != other.Left(Registrations) || !maps.Equal(steady.Owned(), other.Owned()) {
				t.Fatalf("seed %d: the books differ", seed)
			}
		}
		if kept < 100 {
			t.Errorf("seed %d: %d items in all snapshots", seed, kept)
		}
	}
}

func TestSnapshotOfJobsCostsChangesOnly(t *testing.T) {
	t.Parallel()
	d, k := openDisk(t), New()
	filled(t, k, 1, 2000)
	var results []Result
	for i := range uint32(2000) {
		results = append(results, Result{Index: i, Sealed: make([]byte, 100)})
	}
	if _, err := k.Finish(name(1), results[:1000], 2000); err != nil {
		t.Fatal(err)
	}
	d.store(t, k, segment.Share)
	all := len(d.files(t))
	if state := d.store(t, k, segment.Share); len(d.files(t)) != all || len(state) > all/20 {
		t.Errorf("%d bytes in the state and %d in files, before %d", len(state), len(d.files(t)), all)
	}
	before := d.files(t)
	if _, err := k.Finish(name(1), results[1000:1010], 2000); err != nil {
		t.Fatal(err)
	}
	d.store(t, k, segment.Share)
	if more := len(d.files(t)) - len(before); more < 1000 || more > all/50 {
		t.Errorf("%d bytes for ten results, after %d", more, all)
	}
	k.Expire(2000 + 10*keptMillis)
	if len(k.Work(Registrations)) != 1 {
		t.Fatal("a batch that is not finished is gone")
	}
	k.Fence(name(1).Gallery, 2)
	if b := d.store(t, k, segment.Share); len(d.files(t)) > 0 || len(b) > 200 {
		t.Errorf("%d bytes in files of a book without batches, and a state of %d", len(d.files(t)), len(b))
	}
}

func TestDroppedItemsLeaveDisk(t *testing.T) {
	t.Parallel()
	d, k := openDisk(t), New()
	filled(t, k, 1, 1)
	filled(t, k, 2, 10)
	secret := []byte("the sealed name of a photograph!")
	if _, err := k.Finish(name(1), []Result{{Index: 0, Sealed: secret}}, 2000); err != nil {
		t.Fatal(err)
	}
	if d.store(t, k, segment.Share); !bytes.Contains(d.files(t), secret) {
		t.Fatal("the item is in no file")
	}
	k.Fence(name(1).Gallery, 2)
	if d.store(t, k, segment.Share); !bytes.Contains(d.files(t), secret) {
		t.Error("a file was written anew for two of twelve records")
	}
	b := d.store(t, k, segment.Erase)
	if bytes.Contains(d.files(t), secret) {
		t.Error("it is there after an erasure")
	}
	if loaded, err := readWith(b, d.Store); err != nil || !bytes.Equal(write(t, loaded), write(t, k)) {
		t.Errorf("what is left is not the book: %v", err)
	}
}

// TestReusedBatchNameGetsNoOldItems begins a batch anew that was dropped
// while its items are in a file.
func TestReusedBatchNameGetsNoOldItems(t *testing.T) {
	t.Parallel()
	d, k := openDisk(t), New()
	filled(t, k, 2, 9)
	if _, err := k.Begin(beginning(1, 3)); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Add(name(1), 0, [][]byte{{1}, {2}}, 1000); err != nil {
		t.Fatal(err)
	}
	d.store(t, k, segment.Share)
	k.Expire(1001 + unfinishedMillis)
	for _, items := range [][][]byte{nil, {{7}}, {{8}, {9}}} {
		if _, err := k.Begin(beginning(1, 3)); err != nil {
			t.Fatal(err)
		}
		p, err := k.Find(name(1))
		must.Do(t, err)
		if _, err := k.Add(name(1), p.Items, items, 1000); err != nil {
			t.Fatal(err)
		}
		loaded, err := readWith(d.store(t, k, segment.Share), d.Store)
		if err != nil || !bytes.Equal(write(t, loaded), write(t, k)) {
			t.Errorf("with %d items: %v", int(p.Items)+len(items), err)
		}
	}
}

func TestDamagedItemFileIsRefused(t *testing.T) {
	t.Parallel()
	f := func(what string, want error, harm func(name string, b []byte) error) {
		t.Helper()
		d, k := openDisk(t), New()
		filled(t, k, 1, 3)
		b := d.store(t, k, segment.Share)
		names, err := filepath.Glob(filepath.Join(d.dir, "*.seg"))
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		raw, err := os.ReadFile(names[0])
		if err == nil {
			err = harm(names[0], raw)
		}
		must.Do(t, err)
		if _, err := readWith(b, d.Store); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
	f("missing", segment.ErrMissing, func(name string, _ []byte) error { return os.Remove(name) })
	f("torn", segment.ErrCorrupt, func(name string, b []byte) error { return os.WriteFile(name, b[:len(b)-9], 0o600) })
	f("a bit", segment.ErrCorrupt, func(name string, b []byte) error {
		b[40] ^= 1
		return os.WriteFile(name, b, 0o600)
	})
}

func TestMixedItemFilesAreRefused(t *testing.T) {
	t.Parallel()
	d := openDisk(t)
	file := func(first uint64, batch byte, list ...Record) fileRecord {
		t.Helper()
		w, err := d.Create()
		must.Do(t, err)
		for i, r := range list {
			b := name(batch).Batch
			w.Add(segment.Record{Sequence: first + uint64(i), Clear: append(b.UUID[:], codec.Encode(headRecord, r)...)})
		}
		f, err := w.Close()
		must.Do(t, err)
		defer f.Release()
		return fileRecord{f.Ref().Hash}
	}
	batch := func(n byte, records, done uint32, open bool, since uint64) storedRecord {
		return storedRecord{batchRecord{Batch: name(n).Batch, Gallery: name(n).Gallery, Total: 2, Records: records, Open: open}, since, done}
	}
	f := func(what string, want error, records ...any) {
		t.Helper()
		var b bytes.Buffer
		w := codec.NewWriter(&b, magic, 1)
		for _, r := range records {
			switch r := r.(type) {
			case storedRecord:
				w.Record(headStored, r)
			case fileRecord:
				w.Record(headFile, r)
			case batchRecord:
				w.Record(headBatch, r)
			}
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := readWith(b.Bytes(), d.Store); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
	zero, one := Record{Index: 0, Sealed: []byte{1}}, Record{Index: 1, Sealed: []byte{2}}
	done := Record{Index: 0, Sealed: []byte{1}, Result: &Result{}}
	f("nothing", nil)
	f("a whole batch", nil, batch(1, 2, 1, true, 0), file(1, 1, zero, one, done))
	f("an item of another batch", nil, batch(1, 1, 0, false, 0), file(1, 1, zero), file(2, 2, zero))
	f("an item from before", nil, batch(1, 1, 0, false, 2), file(1, 1, zero, one, zero))
	f("no file", ErrSnapshot, batch(1, 1, 0, false, 0))
	f("too few items", ErrSnapshot, batch(1, 2, 0, true, 0), file(1, 1, zero))
	f("a gap", ErrSnapshot, batch(1, 1, 0, false, 0), file(1, 1, one))
	f("too few results", ErrSnapshot, batch(1, 2, 1, true, 0), file(1, 1, zero, one))
	f("a result too early", ErrSnapshot, batch(1, 1, 1, false, 0), file(1, 1, done))
	f("an item behind the last", ErrSnapshot, batch(1, 1, 0, false, 0), file(1, 1, Record{Index: 2}))
	f("files out of order", ErrSnapshot, batch(1, 2, 0, true, 0), file(2, 1, one), file(1, 1, zero))
	f("a file before the batches", ErrSnapshot, file(1, 1, zero), batch(1, 1, 0, false, 0))
	f("a batch behind the files", ErrSnapshot, batch(1, 1, 0, false, 0), file(1, 1, zero), batch(2, 0, 0, false, 0))
	f("both forms", ErrSnapshot, batch(1, 0, 0, false, 0), batch(2, 0, 0, false, 0).Batch)
	f("both forms, the other way", ErrSnapshot, batch(1, 0, 0, false, 0).Batch, batch(2, 0, 0, false, 0))
}
