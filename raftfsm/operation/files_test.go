package operation_test

import (
	"bytes"
	"encoding/binary"
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
	"facet/raftfsm/operation"
	"facet/shard/segment"
)

// disk is the store of a memory's files.
type disk struct {
	*segment.Store
	dir string
}

func openDisk(t testing.TB) disk {
	t.Helper()
	d := disk{dir: t.TempDir()}
	var err error
	if d.Store, err = segment.Open(d.dir, segment.Options{Bytes: 40_000}); err != nil {
		t.Fatal(err)
	}
	return d
}

// store returns a snapshot of m that refers to files, and makes m adopt it.
func (d disk) store(t testing.TB, m *operation.Memory, clean segment.Clean) []byte {
	t.Helper()
	v := m.Freeze()
	defer v.Release()
	must.Do(t, v.Settle(d.Store, clean))
	b := encode(t, v)
	m.Adopt(v)
	if err := d.Collect(); err != nil { // the files of v are held still
		t.Fatal(err)
	}
	return b
}

// bytes returns the size of the files in the folder.
func (d disk) bytes(t testing.TB) (n int64) {
	t.Helper()
	list, err := os.ReadDir(d.dir)
	must.Do(t, err)
	for _, e := range list {
		info, err := e.Info()
		must.Do(t, err)
		n += info.Size()
	}
	return n
}

func encode(t testing.TB, v *operation.View) []byte {
	t.Helper()
	var b bytes.Buffer
	w := codec.NewWriter(&b, magic, 1)
	v.Write(w)
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// whole returns the snapshot of m without files, which holds all of it.
func whole(t testing.TB, m *operation.Memory) []byte {
	t.Helper()
	v := m.Freeze()
	defer v.Release()
	return encode(t, v)
}

func readWith(b []byte, limits operation.Limits, store *segment.Store) (*operation.Memory, error) {
	r, err := codec.NewReader(bytes.NewReader(b), magic)
	if err != nil {
		return nil, err
	}
	l := operation.NewLoader(limits)
	l.Keep(store)
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return l.Memory()
		}
		if err != nil {
			return nil, err
		}
		if mine, err := l.Load(record); err != nil || !mine {
			return nil, errors.Join(err, errors.New("a record was not taken"))
		}
	}
}

func numbered(n uint64, keyed bool) operation.Outcome {
	o := outcome(byte(n), keyed)
	binary.BigEndian.PutUint64(o.Name.Op[8:], n)
	return o
}

// TestMemoryLoadsFromFiles compares memories restored from snapshots with files with a memory
// that was never restored.
func TestMemoryLoadsFromFiles(t *testing.T) {
	t.Parallel()
	limits := operation.Limits{Plain: 200, Keyed: 300}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 3))
		d, steady := openDisk(t), operation.New(limits)
		other := operation.New(limits)
		var next uint64
		for range 25 {
			advance := r.Int64N(3 * minute)
			if r.IntN(12) == 0 {
				advance = 23 * hour
			}
			to := steady.Clock() + advance
			for _, m := range []*operation.Memory{steady, other} {
				m.Advance(to)
			}
			for range r.IntN(80) {
				next++
				o := numbered(next, r.IntN(2) == 0)
				o.Owner = id.Tenant{UUID: id.UUID{byte(r.IntN(3))}}
				if steady.Full(o.Name) != other.Full(o.Name) {
					t.Fatalf("seed %d: full %v, or not", seed, steady.Full(o.Name))
				}
				if !steady.Full(o.Name) {
					steady.Remember(o)
					other.Remember(o)
				}
			}
			switch r.IntN(5) {
			case 0: // a snapshot that fails behind its files
				v := other.Freeze()
				must.Do(t, v.Settle(d.Store, segment.Share))
				v.Release()
			case 1: // one of an earlier level
				v := other.Freeze()
				other.Adopt(v)
				v.Release()
			case 2:
				d.store(t, other, segment.Clean(r.IntN(2)))
			default: // a restart, or another member
				b := d.store(t, other, segment.Clean(r.IntN(2)))
				loaded, err := readWith(b, limits, d.Store)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				other = loaded
			}
			if !bytes.Equal(whole(t, steady), whole(t, other)) || !maps.Equal(steady.Owners(), other.Owners()) {
				t.Fatalf("seed %d: the memories differ", seed)
			}
		}
	}
}

func TestSnapshotWritesNewOutcomesOnly(t *testing.T) {
	t.Parallel()
	d, m := openDisk(t), operation.New(operation.Limits{Plain: 1000, Keyed: 1000})
	for n := range uint64(1000) {
		m.Advance(int64(n))
		m.Remember(numbered(n, n%2 == 0))
	}
	d.store(t, m, segment.Share)
	all := d.bytes(t)
	if again := d.store(t, m, segment.Erase); d.bytes(t) != all || int64(len(again)) > all/20 {
		t.Errorf("%d bytes in the state and %d in files, before %d", len(again), d.bytes(t), all)
	}
	m.Remember(numbered(5000, true))
	d.store(t, m, segment.Share)
	if more := d.bytes(t) - all; more < 50 || more > all/50 {
		t.Errorf("%d bytes for one more, after %d", more, all)
	}
	m.Advance(m.Clock() + 11*minute)
	d.store(t, m, segment.Share)
	if left := d.bytes(t); left > all*6/10 {
		t.Errorf("%d bytes of %d are left of half of the operations", left, all)
	}
}

// TestErasureDropsForgottenOperations looks for a forgotten operation that shares its file
// with a remembered one.
func TestErasureDropsForgottenOperations(t *testing.T) {
	t.Parallel()
	d, m := openDisk(t), operation.New(limits)
	old := numbered(1, false)
	copy(old.IDs[0][:], "somebody of old!")
	m.Remember(old)
	m.Advance(10 * minute)
	m.Remember(numbered(2, false))
	there := func() bool {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(d.dir, "*"))
		must.Do(t, err)
		for _, name := range names {
			b, err := os.ReadFile(name)
			must.Do(t, err)
			if bytes.Contains(b, old.IDs[0][:]) {
				return true
			}
		}
		return false
	}
	if d.store(t, m, segment.Share); !there() {
		t.Fatal("the operation is not in a file")
	}
	m.Advance(11 * minute)
	if d.store(t, m, segment.Share); !there() {
		t.Error("a file was written for a forgotten operation")
	}
	b := d.store(t, m, segment.Erase)
	if there() {
		t.Error("it is there after an erasure")
	}
	if loaded, err := readWith(b, limits, d.Store); err != nil || !bytes.Equal(whole(t, loaded), whole(t, m)) {
		t.Errorf("what is left is not the memory: %v", err)
	}
}

func TestDamagedOperationFileIsRefused(t *testing.T) {
	t.Parallel()
	f := func(what string, want error, harm func(name string, b []byte) error) {
		t.Helper()
		d, m := openDisk(t), operation.New(limits)
		m.Remember(numbered(1, false))
		m.Remember(numbered(2, false))
		b := d.store(t, m, segment.Share)
		names, err := filepath.Glob(filepath.Join(d.dir, "*.seg"))
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		raw, err := os.ReadFile(names[0])
		if err == nil {
			err = harm(names[0], raw)
		}
		must.Do(t, err)
		if _, err := readWith(b, limits, d.Store); !errors.Is(err, want) {
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

func TestMismatchedFilesAreRefused(t *testing.T) {
	t.Parallel()
	type queue struct {
		Outcomes uint64 `cbor:"1,keyasint,omitempty"`
		First    uint64 `cbor:"2,keyasint,omitempty"`
		Files    uint64 `cbor:"3,keyasint,omitempty"`
	}
	type head struct {
		Clock int64 `cbor:"1,keyasint"`
		Plain queue `cbor:"2,keyasint"`
		Keyed queue `cbor:"3,keyasint"`
	}
	type file struct {
		Hash segment.Hash `cbor:"1,keyasint"`
	}
	d := openDisk(t)
	make := func(first uint64, list ...operation.Outcome) file {
		t.Helper()
		w, err := d.Create()
		must.Do(t, err)
		for i, o := range list {
			w.Add(segment.Record{Sequence: first + uint64(i), Clear: codec.Encode(codec.Head{Code: 17, Version: 1}, o)})
		}
		f, err := w.Close()
		must.Do(t, err)
		defer f.Release()
		return file{f.Ref().Hash}
	}
	f := func(what string, want error, h head, files ...file) {
		t.Helper()
		var b bytes.Buffer
		w := codec.NewWriter(&b, magic, 1)
		w.Record(codec.Head{Code: 18, Version: 1}, h)
		for _, x := range files {
			w.Record(codec.Head{Code: 19, Version: 1}, x)
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := readWith(b.Bytes(), limits, d.Store); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
		if _, err := readWith(b.Bytes(), limits, nil); len(files) > 0 && !errors.Is(err, operation.ErrSnapshot) {
			t.Errorf("%s, without a store: got %v", what, err)
		}
	}
	one, two, keyed := make(1, numbered(1, false)), make(2, numbered(2, false), numbered(3, false)), make(1, numbered(4, true))
	f("nothing", nil, head{})
	f("one of each", nil, head{0, queue{1, 1, 1}, queue{1, 1, 1}}, one, keyed)
	f("two files", nil, head{0, queue{3, 1, 2}, queue{}}, one, two)
	f("the first is forgotten in part", nil, head{0, queue{1, 3, 1}, queue{}}, two)
	f("too few files", operation.ErrSnapshot, head{0, queue{1, 1, 1}, queue{1, 1, 1}}, one)
	f("too many files", operation.ErrSnapshot, head{0, queue{1, 1, 1}, queue{}}, one, keyed)
	f("a gap before", operation.ErrSnapshot, head{0, queue{2, 1, 1}, queue{}}, two)
	f("a gap between", operation.ErrSnapshot, head{0, queue{2, 1, 2}, queue{}}, one, make(3, numbered(3, false)))
	f("out of order", operation.ErrSnapshot, head{0, queue{3, 1, 2}, queue{}}, two, one)
	f("another number of operations", operation.ErrSnapshot, head{0, queue{2, 1, 1}, queue{}}, one)
	f("of the other kind", operation.ErrSnapshot, head{0, queue{1, 1, 1}, queue{}}, keyed)
	f("twice", operation.ErrSnapshot, head{0, queue{2, 1, 2}, queue{}}, one, make(2, numbered(1, false)))
	f("files of no operations", operation.ErrSnapshot, head{0, queue{0, 0, 1}, queue{}}, one)
	f("operations without a first", operation.ErrSnapshot, head{0, queue{1, 0, 1}, queue{}}, one)
	f("of the future", operation.ErrSnapshot, head{0, queue{1, 1, 1}, queue{}}, make(1, func() operation.Outcome {
		o := numbered(9, false)
		o.Time = 5
		return o
	}()))
}
