package claim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard"
)

var gallery = id.Gallery{UUID: id.UUID{1}}

func subject(n int) id.Subject {
	return id.Subject{UUID: id.UUID{2, byte(n >> 16), byte(n >> 8), byte(n)}}
}

// name returns a name that lies anywhere among the others.
func name(n int) (out shard.ExternalName) {
	binary.BigEndian.PutUint64(out[:], rand.New(rand.NewPCG(uint64(n), 1)).Uint64())
	return out
}

func change(b *Book, c Change) Holder {
	out, _ := b.Change(gallery, 1, []Change{c})
	return out[0]
}

func TestNameHasOneHolder(t *testing.T) {
	t.Parallel()
	b := New()
	first := change(b, Change{Name: name(1), Subject: subject(1)})
	if first.Subject != subject(1) {
		t.Fatalf("first claim: %+v", first)
	}
	if got := change(b, Change{Name: name(1), Subject: subject(2)}); got != first {
		t.Errorf("second claim: %+v, want %+v", got, first)
	}
	again := change(b, Change{Name: name(1), Subject: subject(1)})
	if again.Subject != subject(1) || again.Turn == first.Turn {
		t.Errorf("the holder claims again: %+v after %+v", again, first)
	}
	if got := change(b, Change{Name: name(1), Subject: subject(2), From: first}); got != again {
		t.Errorf("taken from a claim that was made again: %+v", got)
	}
	if got := change(b, Change{Name: name(1), From: first}); got != again {
		t.Errorf("given up for a claim that was made again: %+v", got)
	}
	if got := change(b, Change{Name: name(1), Subject: subject(2), From: again}); got.Subject != subject(2) {
		t.Errorf("taken: %+v", got)
	}
	held := b.Holder(gallery, 1, name(1))
	if got := change(b, Change{Name: name(1), From: held}); got != (Holder{}) || b.Len() != 0 || len(b.Galleries()) != 0 {
		t.Errorf("given up: %+v, %d left", got, b.Len())
	}
	// A claim after all that has another turn than any before.
	if got := change(b, Change{Name: name(1), Subject: subject(2)}); got == held {
		t.Errorf("claimed after it was given up: %+v again", got)
	}
	if got := b.Holder(gallery, 2, name(1)); got != (Holder{}) {
		t.Errorf("another generation: %+v", got)
	}
	b.Fence(gallery, 2)
	if b.Len() != 0 {
		t.Error("a fence leaves claims")
	}
}

func TestBarStopsOlderClaims(t *testing.T) {
	t.Parallel()
	b := New()
	before := b.Bars()
	b.Bar(subject(1))
	if !b.Barred(subject(1), before) || b.Barred(subject(2), before) || b.Barred(subject(1), b.Bars()) {
		t.Error("a bar stops other claims than the older ones of its subject")
	}
	for n := range barsMax - 1 {
		b.Bar(subject(10 + n))
	}
	if !b.Barred(subject(1), before) || b.Barred(subject(2), before) {
		t.Error("a bar is forgotten too early")
	}
	b.Bar(subject(1000_000))
	if !b.Barred(subject(2), before) {
		t.Error("a claim older than all bars passes")
	}
	if !b.Barred(subject(2), b.Bars()+1) {
		t.Error("a claim from the future passes")
	}
}

// TestTableMatchesMap makes random changes and compares the book with a map, through snapshots.
func TestTableMatchesMap(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	b, want := New(), map[shard.ExternalName]Holder{}
	for step := range 20_000 {
		n := name(r.IntN(3000))
		c := Change{Name: n, Subject: subject(r.IntN(5))}
		if held := want[n]; r.IntN(2) == 0 || step > 15_000 && r.IntN(3) > 0 {
			c.From = held
			if step > 10_000 || r.IntN(3) == 0 {
				c.Subject = id.Subject{}
			}
		}
		got := change(b, c)
		if got.Subject.IsZero() {
			delete(want, n)
		} else {
			want[n] = got
		}
		if step%997 == 0 {
			b = through(t, b)
		}
		if held := b.Holder(gallery, 1, n); held != got {
			t.Fatalf("step %d: holder %+v, want %+v", step, held, got)
		}
	}
	seen := 0
	var last shard.ExternalName
	for page := b.After(gallery, last, 100); len(page) > 0; page = b.After(gallery, last, 100) {
		for _, c := range page {
			if bytes.Compare(c.Name[:], last[:]) <= 0 || want[c.Name] != c.Holder {
				t.Fatalf("claim %x: %+v, want %+v", c.Name, c.Holder, want[c.Name])
			}
			last, seen = c.Name, seen+1
		}
	}
	if seen != len(want) || b.Len() != len(want) {
		t.Errorf("%d claims listed, %d counted, want %d", seen, b.Len(), len(want))
	}
}

func records(t testing.TB, b *Book) []byte {
	t.Helper()
	var out bytes.Buffer
	w := codec.NewWriter(&out, codec.Magic{}, 1)
	b.Freeze().Write(w)
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func load(b []byte) (*Book, error) {
	l := NewLoader()
	_, err := codec.ReadAll(bytes.NewReader(b), codec.Magic{}, func(m codec.Message) error {
		_, err := l.Load(m)
		return err
	})
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		return nil, err
	}
	out := New()
	out.Replace(l)
	return out, nil
}

// through returns a book from a snapshot of b, whose records are the same.
func through(t testing.TB, b *Book) *Book {
	t.Helper()
	was := records(t, b)
	again, err := load(was)
	must.Do(t, err)
	if !bytes.Equal(records(t, again), was) {
		t.Fatal("a book from a snapshot has other records")
	}
	return again
}

func TestViewKeepsItsMoment(t *testing.T) {
	t.Parallel()
	b := New()
	for n := range 1000 {
		change(b, Change{Name: name(n), Subject: subject(1)})
	}
	was, v := records(t, b), b.Freeze()
	for n := range 1000 {
		change(b, Change{Name: name(n), From: b.Holder(gallery, 1, name(n))})
		change(b, Change{Name: name(5000 + n), Subject: subject(2)})
	}
	var out bytes.Buffer
	w := codec.NewWriter(&out, codec.Magic{}, 1)
	v.Write(w)
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), was) {
		t.Error("a view sees later changes")
	}
}

func FuzzLoadClaims(f *testing.F) {
	b := New()
	for n := range 3 {
		change(b, Change{Name: name(n), Subject: subject(1)})
	}
	b.Bar(subject(1))
	r, err := codec.NewReader(bytes.NewReader(records(f, b)), codec.Magic{})
	must.Do(f, err)
	for {
		m, err := r.Next()
		if err != nil {
			break
		}
		f.Add(m.Code, m.Version, bytes.Clone(m.Body), uint64(3))
	}
	f.Fuzz(func(t *testing.T, code, version byte, body []byte, n uint64) {
		l := NewLoader()
		must.Do(t, l.begin(tableRecord{gallery, 1, max(n, 1)}))
		_, err := l.Load(codec.Message{Head: codec.Head{Code: code, Version: version}, Body: body})
		if err != nil && !errors.Is(err, ErrSnapshot) && !errors.Is(err, codec.ErrMalformed) {
			t.Fatal(err)
		}
		if err == nil && l.Check() == nil {
			out := New()
			out.Replace(l)
			through(t, out)
		}
	})
}

// TestClaimTakesLittleMemory shows that an external id takes at most 32 bytes of memory: its claim.
// The note takes none (shard.TestNoteTakesNoMemoryInEntry).
func TestClaimTakesLittleMemory(t *testing.T) {
	const n, most = 300_000, 32
	f := func(how string, count int, fill func() *Book) *Book {
		t.Helper()
		before := heap()
		b := fill()
		per := float64(heap()-before) / float64(count)
		t.Logf("%s: %.1f bytes a claim", how, per)
		if b.Len() != count || per > most {
			t.Errorf("%s: %d claims of %.1f bytes, want %d of at most %d", how, b.Len(), per, count, most)
		}
		return b
	}
	first := f("claimed", n, func() *Book {
		b := New()
		for i := range n {
			change(b, Change{Name: name(i), Subject: subject(i)})
		}
		return b
	})
	snapshot := records(t, first)
	f("from a snapshot", n, func() *Book {
		b, err := load(snapshot)
		must.Do(t, err)
		return b
	})
	runtime.KeepAlive(snapshot)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkClaim(b *testing.B) {
	book := New()
	for i := range 1_000_000 {
		change(book, Change{Name: name(i), Subject: subject(i)})
	}
	n := 1_000_000
	b.ReportAllocs()
	for b.Loop() {
		change(book, Change{Name: name(n), Subject: subject(n)})
		n++
	}
}
