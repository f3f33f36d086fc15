package job

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/engine"
	"facet/internal/codec"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/seal"
)

var magic = codec.Magic([]byte("testjobs"))

func name(n byte) Name {
	return Name{Gallery: id.Gallery{UUID: id.UUID{n}}, Generation: 1, Batch: id.Batch{UUID: id.UUID{9, n}}}
}

func beginning(n byte, total uint32) Begin {
	return Begin{Name: name(n), Application: id.Application{UUID: id.UUID{7}}, Request: [16]byte{n}, Total: total, Time: 1000}
}

// filled is a book with batch n of total items, open.
func filled(t testing.TB, k *Book, n byte, total uint32) {
	t.Helper()
	if _, err := k.Begin(beginning(n, total)); err != nil {
		t.Fatal(err)
	}
	var items [][]byte
	for i := range total {
		items = append(items, []byte{n, byte(i)})
	}
	if _, err := k.Add(name(n), 0, items, 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Open(name(n), 1000); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, k *Book) []byte {
	t.Helper()
	var b bytes.Buffer
	w := codec.NewWriter(&b, magic, 1)
	k.Freeze().Write(w)
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(b []byte) (*Book, error) { return readWith(b, nil) }

func TestBatchIsSeenOnceComplete(t *testing.T) {
	t.Parallel()
	k := New()
	f := func(what string, got Progress, err error, want Progress, wantErr error) {
		t.Helper()
		want.Application, want.Total = beginning(1, 3).Application, 3
		if wantErr != nil {
			want = Progress{}
		}
		if got != want || !errors.Is(err, wantErr) {
			t.Errorf("%s: %+v, %v; want %+v, %v", what, got, err, want, wantErr)
		}
	}
	p, err := k.Begin(beginning(1, 3))
	f("begin", p, err, Progress{}, nil)
	p, err = k.Add(name(1), 1, [][]byte{{1}}, 1000)
	f("an item before the first", p, err, Progress{}, ErrPlace)
	p, err = k.Add(name(1), 0, [][]byte{{0}, {1}}, 1000)
	f("two items", p, err, Progress{Items: 2}, nil)
	p, err = k.Begin(beginning(1, 3))
	f("begin again", p, err, Progress{Items: 2}, nil)
	p, err = k.Open(name(1), 1000)
	f("open too early", p, err, Progress{}, ErrPlace)
	_, _, err = k.Page(name(1), 0, 10)
	f("a page too early", Progress{}, err, Progress{}, ErrUnknown)
	p, err = k.Add(name(1), 1, [][]byte{{99}, {2}}, 1000)
	f("two items, one of them again", p, err, Progress{Items: 3}, nil)
	p, err = k.Add(name(1), 3, [][]byte{{3}}, 1000)
	f("one too many", p, err, Progress{}, ErrPlace)
	p, err = k.Open(name(1), 1000)
	f("open", p, err, Progress{Items: 3, Open: true}, nil)
	other := beginning(1, 3)
	other.Request[0]++
	p, err = k.Begin(other)
	f("begin with another request", p, err, Progress{}, ErrConflict)
	page, _, err := k.Page(name(1), 1, 10)
	if want := []Record{{Index: 1, Sealed: []byte{1}}, {Index: 2, Sealed: []byte{2}}}; err != nil || !cmp.Equal(page, want) {
		t.Errorf("page %v, %v", page, err)
	}
	stranger := name(1)
	stranger.Gallery = name(2).Gallery
	if _, _, err := k.Page(stranger, 0, 10); !errors.Is(err, ErrUnknown) {
		t.Errorf("another gallery's: %v", err)
	}
}

func TestFirstResultOfItemCounts(t *testing.T) {
	t.Parallel()
	k := New()
	filled(t, k, 1, 4)
	first := Result{Index: 2, Attempts: 1, Success: true, Subject: id.Subject{UUID: id.UUID{5}}}
	later := Result{Index: 2, Attempts: 2}
	for _, results := range [][]Result{{first}, {later, {Index: 0, Attempts: 3}}, {{Index: 77}}} {
		if _, err := k.Finish(name(1), results, 2000); err != nil {
			t.Fatal(err)
		}
	}
	page, p, err := k.Page(name(1), 0, 10)
	if err != nil || p.Done != 2 || page[2].Result.Attempts != 1 || !page[2].Result.Success || page[0].Result.Attempts != 3 {
		t.Fatalf("page %+v, %+v, %v", page, p, err)
	}
	left, app, err := k.Unfinished(name(1), 10, func(i uint32) bool { return i == 1 })
	if err != nil || len(left) != 1 || left[0].Index != 3 || app != beginning(1, 1).Application {
		t.Errorf("unfinished %v, %v, %v", left, app, err)
	}
	if got := k.Work(Registrations); len(got) != 1 || got[0] != name(1) {
		t.Errorf("work %v", got)
	}
	if _, err := k.Finish(name(1), []Result{{Index: 1}, {Index: 3}}, 3000); err != nil || len(k.Work(Registrations)) != 0 {
		t.Errorf("finished, but work is left: %v, %v", k.Work(Registrations), err)
	}
}

func TestRecordsAreKeptThirtyDays(t *testing.T) {
	t.Parallel()
	const minute, day = int64(60_000), int64(24 * 60 * 60_000)
	k := New()
	filled(t, k, 1, 1)                                  // ends
	filled(t, k, 2, 1)                                  // never ends
	if _, err := k.Begin(beginning(3, 1)); err != nil { // is never complete
		t.Fatal(err)
	}
	if _, err := k.Finish(name(1), []Result{{Index: 0}}, 1000+day); err != nil {
		t.Fatal(err)
	}
	f := func(now int64, due bool, want ...bool) {
		t.Helper()
		if k.Due(now) != due {
			t.Errorf("at %d: due %v", now, !due)
		}
		k.Expire(now)
		for i, there := range want {
			if _, err := k.Find(name(byte(i + 1))); (err == nil) != there {
				t.Errorf("at %d: batch %d: %v", now, i+1, err)
			}
		}
	}
	f(1000+10*minute, false, true, true, true)
	f(1001+10*minute, true, true, true, false)
	f(1000+31*day, false, true, true, false)
	f(1001+31*day, true, false, true, false)
	f(1000+99*day, false, false, true, false)
}

func TestFenceDropsEarlierGenerations(t *testing.T) {
	t.Parallel()
	k := New()
	filled(t, k, 1, 2)
	filled(t, k, 2, 2)
	k.Fence(name(1).Gallery, 1)
	if len(k.Work(Registrations)) != 2 {
		t.Error("a fence before the generation drops it")
	}
	k.Fence(name(1).Gallery, 2)
	if got := k.Work(Registrations); len(got) != 1 || got[0] != name(2) {
		t.Errorf("work %v", got)
	}
	if k.state.items != 2 || len(k.state.galleries) != 1 {
		t.Errorf("%d items of %d galleries are counted", k.state.items, len(k.state.galleries))
	}
}

func TestBookRespectsBounds(t *testing.T) {
	t.Parallel()
	k := New()
	f := func(total uint32, n byte, want error) {
		t.Helper()
		if _, err := k.Begin(beginning(n, total)); !errors.Is(err, want) {
			t.Errorf("batch %d of %d: %v, want %v", n, total, err, want)
		}
	}
	f(0, 1, ErrPlace)
	f(ItemsMax+1, 1, ErrPlace)
	for n := range byte(itemsPerShardMax / ItemsMax) {
		f(ItemsMax, n, nil)
	}
	f(ItemsMax, 100, ErrFull)
	f(itemsPerShardMax%ItemsMax, 101, nil)
	f(1, 102, ErrFull)
}

func TestSnapshotHoldsEverything(t *testing.T) {
	t.Parallel()
	k := New()
	filled(t, k, 1, 3)
	filled(t, k, 2, 2)
	if _, err := k.Begin(beginning(3, 5)); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Finish(name(1), []Result{{Index: 1, Attempts: 2, Success: true, Sealed: []byte{4}}, {Index: 0}}, 5000); err != nil {
		t.Fatal(err)
	}
	frozen := k.Freeze()
	text := write(t, k)
	got, err := read(text)
	if err != nil || !bytes.Equal(write(t, got), text) {
		t.Fatalf("read: %v", err)
	}
	left, _, _ := got.Unfinished(name(1), 10, func(uint32) bool { return false })
	if len(left) != 1 || left[0].Index != 2 || len(got.Work(Registrations)) != 2 || got.state.items != 10 {
		t.Errorf("after reading: unfinished %v, work %v, %d items", left, got.Work(Registrations), got.state.items)
	}
	if _, err := k.Finish(name(1), []Result{{Index: 2}}, 6000); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := codec.NewWriter(&b, magic, 1)
	frozen.Write(w)
	if _, err := w.Close(); err != nil || !bytes.Equal(b.Bytes(), text) {
		t.Error("a view sees a later write")
	}
}

func TestSealedJobTextNeedsItsPlace(t *testing.T) {
	t.Parallel()
	key, err := seal.NewKey(make([]byte, seal.KeyBytes))
	must.Do(t, err)
	item := Item{Filename: "ann.jpg", Tags: []uint32{3, 70_000}}
	sealed := SealItem(key, name(1), 5, item)
	if got, err := OpenItem(key, name(1), 5, sealed); err != nil || !cmp.Equal(got, item) {
		t.Errorf("open: %v, %v", got, err)
	}
	if bytes.Contains(sealed, []byte("ann")) {
		t.Error("the name stands in clear")
	}
	outcome := Outcome{Reason: "why", Attributes: &engine.Attributes{Quality: .5, Tilt: -3, Face: engine.Rect{Left: 1}}, Ignored: []engine.Attributes{{Face: engine.Rect{Left: 1, Top: 2, Right: 3, Bottom: 4}}, {Quality: .25}}}
	text := SealOutcome(key, name(1), 5, outcome)
	got, err := OpenOutcome(key, name(1), 5, text)
	if got.Numbers, got.IgnoredNumbers = nil, nil; err != nil || !cmp.Equal(got, outcome) {
		t.Errorf("open: %+v, %v", got, err)
	}
	for what, open := range map[string]func() error{
		"index":   func() error { _, err := OpenItem(key, name(1), 6, sealed); return err },
		"gallery": func() error { _, err := OpenItem(key, name(2), 5, sealed); return err },
		"kind":    func() error { _, err := OpenOutcome(key, name(1), 5, sealed); return err },
	} {
		if err := open(); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("another %s: %v", what, err)
		}
	}
}

func FuzzReadBook(f *testing.F) {
	k := New()
	filled(f, k, 1, 3)
	if _, err := k.Finish(name(1), []Result{{Index: 1, Sealed: []byte{1}}}, 5000); err != nil {
		f.Fatal(err)
	}
	f.Add(write(f, k))
	f.Add(write(f, New()))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := read(b)
		if err != nil {
			return
		}
		again, err := read(write(t, k))
		if err != nil || !bytes.Equal(write(t, again), write(t, k)) {
			t.Fatalf("what was read does not survive a snapshot: %v", err)
		}
	})
}

// A gallery has one comparison with itself: the next one drops it, and nothing else.
func TestNextComparisonReplacesEarlier(t *testing.T) {
	t.Parallel()
	k := New()
	filled(t, k, 1, 2) // registrations of the same gallery
	compare := func(gallery, n byte) Name {
		t.Helper()
		c := beginning(n, 1)
		c.Kind, c.Name.Gallery, c.Holder = Duplicates, name(gallery).Gallery, id.UUID{4}
		if _, err := k.Begin(c); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Add(c.Name, 0, [][]byte{{n}}, 1000); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Open(c.Name, 1000); err != nil {
			t.Fatal(err)
		}
		return c.Name
	}
	first, other := compare(1, 11), compare(2, 12)
	if _, err := k.Finish(first, []Result{{Index: 0, Pairs: 7}}, 1000); err != nil || k.Paired(first) != 7 {
		t.Fatalf("%d pairs, %v", k.Paired(first), err)
	}
	next := compare(1, 13)
	if got := k.Batches(Duplicates); len(got) != 2 || got[0] != other || got[1] != next {
		t.Errorf("reports %v", got)
	}
	if _, err := k.Find(first); !errors.Is(err, ErrUnknown) {
		t.Errorf("the earlier comparison: %v", err)
	}
	if work := k.Work(Registrations); len(work) != 1 || work[0] != name(1) || k.Left(Duplicates) != 2 || k.Left(Registrations) != 2 {
		t.Errorf("work %v, %d and %d items", work, k.Left(Duplicates), k.Left(Registrations))
	}
	f := func(what string, holder id.UUID, want int) {
		t.Helper()
		if list := k.List(name(1).Gallery, 1, Duplicates, holder, 9); len(list) != want || want > 0 && list[0].Batch != next.Batch {
			t.Errorf("comparisons of %s: %v", what, list)
		}
	}
	f("all", id.UUID{}, 1)
	f("their holder", id.UUID{4}, 1)
	f("another", id.UUID{5}, 0)
	if again, err := read(write(t, k)); err != nil || len(again.Work(Duplicates)) != 2 {
		t.Errorf("after reading: %v", err)
	}
	if _, err := k.Drop(next); err != nil || len(k.Work(Duplicates)) != 1 || k.state.items != 3 {
		t.Errorf("dropped: %v, %d items", err, k.state.items)
	}
}

func TestRedactionKeepsTheRest(t *testing.T) {
	t.Parallel()
	k := New()
	filled(t, k, 1, 3)
	if _, err := k.Finish(name(1), []Result{{Index: 1, Sealed: []byte{1, 2}, Pairs: 2}}, 5000); err != nil {
		t.Fatal(err)
	}
	before := k.state.batches[name(1).Batch].touched
	p, err := k.Redact(name(1), []Result{{Index: 0, Pairs: 9}, {Index: 1, Sealed: []byte{1}, Pairs: 1}, {Index: 77}})
	page, _, _ := k.Page(name(1), 0, 9)
	if err != nil || p.Done != 1 || page[0].Result != nil || page[1].Result.Pairs != 1 || !bytes.Equal(page[1].Result.Sealed, []byte{1}) {
		t.Errorf("%+v, %+v, %v", p, page, err)
	}
	if k.state.batches[name(1).Batch].touched != before {
		t.Error("a redaction keeps the batch longer")
	}
	if _, err := k.Redact(name(2), nil); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown batch: %v", err)
	}
}

func TestPairsOpenInTheirPlace(t *testing.T) {
	t.Parallel()
	key, err := seal.NewKey(bytes.Repeat([]byte{3}, seal.KeyBytes))
	must.Do(t, err)
	want := Pairs{Cut: true, Reason: "why"}
	for i := range PairsMax {
		want.List = append(want.List, Pair{id.Subject{UUID: id.UUID{1, byte(i >> 8), byte(i)}}, id.Subject{UUID: id.UUID{2, byte(i)}}, 9999 - i})
	}
	sealed := SealPairs(key, name(1), 4, want)
	got, err := OpenPairs(key, name(1), 4, sealed)
	if got.Packed = nil; err != nil || !cmp.Equal(got, want) {
		t.Errorf("%d pairs, %v", len(got.List), err)
	}
	if _, err := OpenPairs(key, name(1), 5, sealed); !errors.Is(err, seal.ErrOpen) {
		t.Errorf("another place: %v", err)
	}
	if _, err := OpenOutcome(key, name(1), 4, sealed); err == nil {
		t.Error("pairs open as an outcome")
	}
	b := Block{Shard: 3, After: 5, Last: 9, Threshold: 8000}
	if got, err := OpenBlock(key, name(1), 0, SealBlock(key, name(1), 0, b)); err != nil || got != b {
		t.Errorf("block %+v, %v", got, err)
	}
}
