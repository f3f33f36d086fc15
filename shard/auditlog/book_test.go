package auditlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/segment"
)

var magic = codec.Magic([]byte("auditlog"))

// reference is the simplest log: all contents, and the hashes as tlog keeps them.
type reference struct {
	contents [][]byte
	hashes   []tlog.Hash
	bare     int
}

func (r *reference) add(t *testing.T, content []byte) tlog.Hash {
	t.Helper()
	n := int64(len(r.contents))
	more, err := tlog.StoredHashes(n, content, tlog.HashReaderFunc(r.read))
	must.Do(t, err)
	r.contents, r.hashes = append(r.contents, content), append(r.hashes, more...)
	return tlog.RecordHash(content)
}

func (r *reference) read(indexes []int64) (list []tlog.Hash, _ error) {
	for _, i := range indexes {
		list = append(list, r.hashes[i])
	}
	return list, nil
}

func (r *reference) root(t *testing.T) tlog.Hash {
	t.Helper()
	h, err := tlog.TreeHash(int64(len(r.contents)), tlog.HashReaderFunc(r.read))
	must.Do(t, err)
	return h
}

// rig is a book, its files and its reference.
type rig struct {
	*testing.T
	book    *Book
	store   *segment.Store
	dir     string
	logs    map[id.Tenant]*reference
	numbers map[id.Tenant]uint64
	before  map[id.Tenant]Batch // the last one
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, book: NewBook(), dir: t.TempDir(), logs: make(map[id.Tenant]*reference), numbers: make(map[id.Tenant]uint64), before: make(map[id.Tenant]Batch)}
	var err error
	if r.store, err = segment.Open(r.dir, segment.Options{Bytes: 32 << 10}); err != nil {
		t.Fatal(err)
	}
	return r
}

func tenant(n byte) id.Tenant { return id.Tenant{UUID: id.UUID{15: n}} }

// content is what no other entry has.
func content(n int) []byte { return fmt.Appendf(nil, "the content of entry %d.", n) }

// batch makes the next batch of a log.
func (r *rig) batch(of id.Tenant, n int) Batch {
	r.Helper()
	ref := r.logs[of]
	if ref == nil {
		ref = &reference{}
		r.logs[of] = ref
		must.Do(r, r.book.Begin(of, []byte("former "+of.String())))
	}
	b := Batch{Tenant: of, Writer: Writer{1}, Number: r.numbers[of] + 1}
	r.numbers[of] += uint64(n)
	for range n {
		c := content(len(ref.contents))
		b.Entries = append(b.Entries, New{Entry: Entry{ref.add(r.T, c), c}})
	}
	return b
}

func (r *rig) append(of id.Tenant, n int) {
	r.Helper()
	b := r.batch(of, n)
	next := b
	if before := r.before[of]; len(before.Entries)+n <= EntriesMax && n%2 == 0 { // some entries come again
		b.Entries = append(slices.Clone(before.Entries), b.Entries...)
		b.Number -= uint64(len(before.Entries))
	}
	r.before[of] = next
	at, err := r.book.Append(b)
	if want := uint64(len(r.logs[of].contents) - n); err != nil || at.First != want || at.Replayed {
		r.Fatalf("batch %d: %+v, %v, want entry %d", b.Number, at, err, want)
	}
	if again, err := r.book.Append(b); err != nil || !again.Replayed || again.First != at.First {
		r.Fatalf("batch %d again: %+v, %v", b.Number, again, err)
	}
}

// check compares the book with the reference.
func (r *rig) check(k *Book) {
	r.Helper()
	for of, ref := range r.logs {
		head, err := k.Head(of)
		if err != nil || head.Size != uint64(len(ref.contents)) || head.Root != ref.root(r.T) || head.Bare != uint64(ref.bare) || string(head.Former) != "former "+of.String() {
			r.Fatalf("%s has %+v, %v, want %d entries, %v", of, head, err, len(ref.contents), ref.root(r.T))
		}
		first := rand.IntN(len(ref.contents) + 1)
		list, err := k.Read(of, uint64(first), 300)
		if err != nil || len(list) != min(300, len(ref.contents)-first) {
			r.Fatalf("%s has %d entries from %d on of %d: %v", of, len(list), first, len(ref.contents), err)
		}
		for i, e := range list {
			want := ref.contents[first+i]
			if e.Leaf != tlog.RecordHash(want) || (first+i < ref.bare) != (e.Sealed == nil) || e.Sealed != nil && !bytes.Equal(e.Sealed, want) {
				r.Fatalf("entry %d: %q, want %q, %d are bare", first+i, e.Sealed, want, ref.bare)
			}
		}
		for level := range 3 {
			width := 1 << (level * TileHeight)
			hashes, err := k.Hashes(of, level, 0, 1000)
			if err != nil || len(hashes) != min(1000, len(ref.contents)/width) {
				r.Fatalf("%d hashes of level %d, %v", len(hashes), level, err)
			}
			for i, h := range hashes {
				if h != ref.hashes[tlog.StoredHashIndex(level*TileHeight, int64(i))] {
					r.Fatalf("hash %d of level %d differs", i, level)
				}
			}
		}
	}
}

// snapshot writes and adopts a snapshot that refers to files.
func (r *rig) snapshot(clean segment.Clean, between func()) []byte {
	r.Helper()
	v := r.book.Freeze()
	defer v.Release()
	between()
	must.Do(r, v.Settle(r.store, clean))
	b := r.write(v)
	v.Adopt()
	must.Do(r, r.store.Collect())
	return b
}

func (r *rig) write(v *View) []byte {
	r.Helper()
	var b bytes.Buffer
	w := codec.NewWriter(&b, magic, 1)
	must.Do(r, v.Write(w))
	if _, err := w.Close(); err != nil {
		r.Fatal(err)
	}
	return b.Bytes()
}

// whole returns the state without files.
func (r *rig) whole(k *Book) []byte {
	r.Helper()
	v := k.Freeze()
	defer v.Release()
	return r.write(v)
}

func load(b []byte, store *segment.Store) (*Book, error) {
	l := NewLoader(store)
	defer l.Close()
	_, err := codec.ReadAll(bytes.NewReader(b), magic, func(m codec.Message) error {
		mine, err := l.Load(m)
		if err == nil && !mine {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		return nil, err
	}
	k := NewBook()
	k.Replace(l)
	return k, nil
}

func (r *rig) restore(b []byte, store *segment.Store) *Book {
	r.Helper()
	k, err := load(b, store)
	must.Do(r, err)
	return k
}

// A log equals the reference whatever batches, snapshots, expiries and restorations come in whatever
// order, and every form of it restores the same state.
func TestLogEqualsReference(t *testing.T) {
	t.Parallel()
	for round := range 2 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for step := range 80 {
				of := tenant(byte(1 + rand.IntN(3)))
				switch n := rand.IntN(10); {
				case n < 5 || r.logs[of] == nil:
					r.append(of, 1+rand.IntN(400))
				case n < 6:
					ref := r.logs[of]
					ref.bare = max(ref.bare, rand.IntN(len(ref.contents)+1))
					must.Do(t, r.book.Expire(of, uint64(ref.bare)))
				case n < 8:
					r.snapshot(segment.Clean(rand.IntN(2)), func() { r.append(of, 100) })
				default:
					b := r.snapshot(segment.Share, func() {})
					k := r.restore(b, r.store)
					if whole := r.whole(k); !bytes.Equal(whole, r.whole(r.book)) || !bytes.Equal(r.whole(r.restore(whole, nil)), whole) {
						t.Fatalf("step %d: a restored state differs", step)
					}
					r.book = k
				}
				r.check(r.book)
			}
		})
	}
}

func TestEraseLeavesNoExpiredContent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	of := tenant(1)
	r.append(of, 1000)
	r.snapshot(segment.Share, func() {})
	r.append(of, 10)
	r.logs[of].bare = 700
	must.Do(t, r.book.Expire(of, 700))
	r.snapshot(segment.Erase, func() {})
	must.Do(t, r.store.Collect())
	r.check(r.book)
	names, err := filepath.Glob(filepath.Join(r.dir, "*"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	var disk []byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		must.Do(t, err)
		disk = append(disk, b...)
	}
	for n := range 1010 {
		if bytes.Contains(disk, content(n)) != (n >= 700) {
			t.Fatalf("the content of entry %d on the disk: %t", n, n < 700)
		}
	}
	if r.book.TailBytes() != 0 {
		t.Errorf("%d bytes in memory", r.book.TailBytes())
	}
}

func TestBatchesOfWritersFollowOneAnother(t *testing.T) {
	t.Parallel()
	k, of := NewBook(), tenant(1)
	entries := []New{{Entry: Entry{tlog.RecordHash(nil), []byte{0}}}}
	try := func(w uint32, number uint64) error {
		b := Batch{Tenant: of, Number: number, Entries: entries}
		binary.BigEndian.PutUint32(b.Writer[:], w)
		_, err := k.Append(b)
		return err
	}
	if err := try(1, 1); !errors.Is(err, ErrUnknown) {
		t.Errorf("a batch for no log: %v", err)
	}
	must.Do(t, k.Begin(of, nil))
	for i, want := range []struct {
		number uint64
		err    error
		size   uint64
	}{{2, ErrWriter, 0}, {1, nil, 1}, {1, nil, 1}, {3, ErrWriter, 1}, {2, nil, 2}, {1, nil, 2}} {
		err := try(1, want.number)
		if head, _ := k.Head(of); !errors.Is(err, want.err) || head.Size != want.size {
			t.Errorf("step %d: %v, %d entries", i, err, head.Size)
		}
	}
	for w := range uint32(writersMax) {
		must.Do(t, try(w+2, 1))
	}
	if err := try(1, 3); !errors.Is(err, ErrWriter) {
		t.Errorf("a batch of a forgotten writer: %v", err)
	}
	entries = slices.Repeat(entries, EntriesMax+1)
	if err := try(2, 2); !errors.Is(err, ErrMalformed) {
		t.Errorf("a batch of %d entries: %v", len(entries), err)
	}
}

func TestIntentsStayOpenUntilOutcome(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	of := tenant(1)
	add := func(change func(i int, n *New)) {
		b := r.batch(of, 3)
		for i := range b.Entries {
			change(i, &b.Entries[i])
		}
		if _, err := r.book.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	add(func(i int, n *New) { n.Opens = Request{byte(i + 1)} })
	add(func(i int, n *New) {
		if i == 2 {
			n.Closes = Request{2}
		}
	})
	r.book = r.restore(r.snapshot(segment.Share, func() {}), r.store)
	want := []Intent{{Request{1}, 0}, {Request{3}, 2}}
	if got := r.book.Intents(of, 9); !slices.Equal(got, want) {
		t.Errorf("open are %v, want %v", got, want)
	}
	if got := r.book.Intents(of, 1); !slices.Equal(got, want[:1]) {
		t.Errorf("open before 2 are %v, want %v", got, want[:1])
	}
	before, err := r.book.Head(of)
	must.Do(t, err)
	add(func(i int, n *New) { n.Closes, n.IfOpen = Request{byte(i + 1)}, true }) // request 2 has its outcome
	after, err := r.book.Head(of)
	if err != nil || after.Size != before.Size+2 || len(r.book.Intents(of, 9)) != 0 {
		t.Errorf("the outcomes of two open intents and of a closed one make %d entries of %d, %v; open are %v", after.Size, before.Size, err, r.book.Intents(of, 9))
	}
}

func TestDamagedSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.append(tenant(1), 600)
	r.append(tenant(2), 5)
	whole, stored := r.whole(r.book), r.snapshot(segment.Share, func() {})
	for name, b := range map[string][]byte{"whole": whole, "stored": stored} {
		records := 0
		if _, err := codec.ReadAll(bytes.NewReader(b), magic, func(codec.Message) error { records++; return nil }); err != nil {
			t.Fatal(err)
		}
		for lost := range records {
			var out bytes.Buffer
			w := codec.NewWriter(&out, magic, 1)
			i := 0
			if _, err := codec.ReadAll(bytes.NewReader(b), magic, func(m codec.Message) error {
				if i++; i-1 != lost {
					w.Record(m.Head, cbor.RawMessage(m.Body))
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Close(); err != nil {
				t.Fatal(err)
			}
			k, err := load(out.Bytes(), r.store)
			if err == nil && len(k.Tenants()) == 2 && bytes.Equal(r.whole(k), whole) {
				t.Errorf("%s: record %d may be lost", name, lost)
			}
		}
	}
}

// A log that follows another one begins with an entry, once.
func TestLogBeginsWithEntry(t *testing.T) {
	t.Parallel()
	k, of := NewBook(), tenant(1)
	first := Entry{LeafHash(content(7)), content(7)}
	for _, e := range [][]Entry{{{}}, {{Sealed: make([]byte, SealedMax+1)}}, {first, first}} {
		if err := k.Begin(of, nil, e...); !errors.Is(err, ErrMalformed) {
			t.Errorf("%d entries, the first of %d bytes: %v", len(e), len(e[0].Sealed), err)
		}
	}
	for _, e := range []Entry{first, {LeafHash(content(8)), content(8)}} {
		must.Do(t, k.Begin(of, []byte("former"), e))
	}
	list, err := k.Read(of, 0, 9)
	if err != nil || len(list) != 1 || list[0].Leaf != first.Leaf || k.TailBytes() != int64(len(first.Sealed)) || k.Held()[of] != 1 {
		t.Errorf("the log has %v, %v; %d bytes", list, err, k.TailBytes())
	}
	if err := k.Expire(of, 1); err != nil || k.Held()[of] != 0 || k.TailBytes() != 0 {
		t.Errorf("after expiry: %v, %d records, %d bytes", err, k.Held()[of], k.TailBytes())
	}
}
