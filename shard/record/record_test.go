package record

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/kernel"
)

// plain is a record in the Go heap.
type plain struct {
	Fields
	row Row
}

func subjectOf(n uint64) id.Subject {
	return id.Subject{UUID: id.UUID{byte(n), byte(n >> 8), byte(n >> 16), 15: byte(n >> 5)}}
}

func eventOf(n uint64) id.Event {
	return id.Event{UUID: id.UUID{1: byte(n), 2: byte(n >> 8), 3: byte(n >> 16)}}
}

func (p *plain) check(t *testing.T, table *Table, r *Record) {
	t.Helper()
	if r.Subject != p.Subject || r.Event != p.Event || r.Sequence() != p.Sequence || r.First() != p.First || r.Time() != p.Time ||
		r.Revision != p.Revision || r.SealedLen != p.SealedLen || r.NoteLen != p.NoteLen || r.Deleted != p.Deleted ||
		!slices.Equal(table.Tags(&r.Owner), p.Tags) {
		t.Fatalf("row %d has %+v, with tags %v, want %+v", p.row, r, table.Tags(&r.Owner), p.Fields)
	}
}

func newArena(t testing.TB) *kernel.Arena {
	arena := kernel.NewArena(0)
	t.Cleanup(func() {
		if n := arena.Used(); n != 0 {
			t.Errorf("%d bytes are in use at the end", n)
		}
		if err := arena.Close(); err != nil {
			t.Error(err)
		}
	})
	return arena
}

// world is a table with an order, and what they should be. A reader is a copy of both at one moment.
type world struct {
	*rand.Rand
	table    *Table
	order    *Order
	sequence uint64
	list     []*plain // in order
	firsts   map[id.Subject]Row
	readers  []reader
}

type reader struct {
	unpin func()
	order *Order
	list  []*plain
}

func newWorld(t testing.TB, seed uint64) *world {
	table := NewTable(newArena(t))
	t.Cleanup(table.Close)
	return &world{Rand: rand.New(rand.NewPCG(seed, 1)), table: table, order: NewOrder(table), firsts: make(map[id.Subject]Row)}
}

func (w *world) add() {
	w.sequence += 1 + w.Uint64N(3)
	p := &plain{Fields: Fields{
		Subject: subjectOf(w.sequence), Event: eventOf(w.sequence), Sequence: w.sequence, First: w.sequence - w.Uint64N(2),
		Time: int64(w.sequence) - 5, Revision: w.Uint32(), SealedLen: uint16(w.Uint32()), NoteLen: uint16(w.Uint32()), Deleted: w.IntN(5) == 0,
	}}
	for range w.IntN(3) {
		p.Tags = append(p.Tags, w.Uint32N(4))
	}
	p.row = w.table.Add(&p.Fields)
	w.order.Append(p.row)
	w.table.SetFirst(p.row)
	w.firsts[p.Subject] = p.row
	w.list = append(w.list, p)
}

func (w *world) remove(t *testing.T, at int) {
	p := w.list[at]
	w.list = slices.Delete(w.list, at, at+1)
	if row := w.order.Delete(p.Sequence); row != p.row {
		t.Fatalf("the order deleted row %d, want %d", row, p.row)
	}
	w.table.DeleteFirst(p.Subject)
	delete(w.firsts, p.Subject)
	w.table.Remove(p.row)
}

func (w *world) step(t *testing.T) {
	switch n := w.IntN(100); {
	case n < 2 && len(w.readers) < 4:
		w.readers = append(w.readers, reader{w.table.Pin(), w.order.Copy(), slices.Clone(w.list)})
	case n < 4 && len(w.readers) > 0:
		i := w.IntN(len(w.readers))
		w.readers[i].check(t, w.table)
		w.readers[i].unpin()
		w.readers = slices.Delete(w.readers, i, i+1)
	case n < 45 && len(w.list) > 0:
		w.remove(t, w.IntN(len(w.list)))
	default:
		w.add()
	}
}

func (r *reader) check(t *testing.T, table *Table) {
	t.Helper()
	i := 0
	for row, e := range r.order.All(0) {
		if row != r.list[i].row {
			t.Fatalf("row %d is at place %d, want %d", row, i, r.list[i].row)
		}
		r.list[i].check(t, table, e)
		i++
	}
	if i != len(r.list) || r.order.Len() != i {
		t.Fatalf("%d rows of %d, want %d", i, r.order.Len(), len(r.list))
	}
}

func (w *world) check(t *testing.T) {
	t.Helper()
	now := reader{order: w.order, list: w.list}
	now.check(t, w.table)
	if w.table.Len() != len(w.list) || w.table.Subjects() != len(w.firsts) {
		t.Fatalf("%d records and %d subjects, want %d and %d", w.table.Len(), w.table.Subjects(), len(w.list), len(w.firsts))
	}
	seen := 0
	for row := range w.table.Firsts {
		if seen++; w.firsts[w.table.At(row).Subject] != row {
			t.Fatalf("row %d is the first of %v", row, w.table.At(row).Subject)
		}
	}
	if seen != len(w.firsts) {
		t.Fatalf("%d first rows come, want %d", seen, len(w.firsts))
	}
	for n := uint64(1); n <= w.sequence+1; n += 1 + n/50 {
		if got, want := w.table.First(subjectOf(n)), w.firsts[subjectOf(n)]; got != want {
			t.Fatalf("subject %d has row %d, want %d", n, got, want)
		}
		at, found := slices.BinarySearchFunc(w.list, n, func(p *plain, n uint64) int { return int(p.Sequence) - int(n) })
		want := Row(0)
		if found {
			want = w.list[at].row
		}
		if got := w.order.Get(n); got != want {
			t.Fatalf("sequence %d has row %d, want %d", n, got, want)
		}
		if rank := w.order.Rank(from(n)); rank != at {
			t.Fatalf("%d rows come before sequence %d, want %d", rank, n, at)
		}
	}
	w.checkParts(t)
}

// checkParts compares the reading of parts of the order.
func (w *world) checkParts(t *testing.T) {
	t.Helper()
	var rows []Row
	for _, p := range w.list {
		rows = append(rows, p.row)
	}
	from := w.IntN(len(rows) + 1)
	var ahead, back, after []Row
	for row := range w.order.At(from) {
		ahead = append(ahead, row)
	}
	for row := range w.order.Back(from) {
		back = append(back, row)
	}
	sequence := uint64(math.MaxUint64)
	if from < len(rows) {
		sequence = w.list[from].Sequence
	}
	for row := range w.order.All(sequence) {
		after = append(after, row)
	}
	slices.Reverse(back)
	if !slices.Equal(ahead, rows[from:]) || !slices.Equal(back, rows[:len(rows)-from]) || !slices.Equal(after, rows[from:]) {
		t.Fatalf("%d rows: %d from place %d, %d but the last so many, %d from its sequence on", len(rows), len(ahead), from, len(back), len(after))
	}
	if first := w.order.First(); len(rows) > 0 && (first != w.table.At(rows[0]) || w.order.Last() != w.table.At(rows[len(rows)-1])) {
		t.Fatal("the first or the last record is another")
	}
}

// The table and the order are as lists and maps of Go, whatever comes and goes. What a reader has
// pinned stays as it was.
func TestRecordsEqualPlainOnes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		w := newWorld(t, seed)
		for i := range 12_000 {
			if i < 5000 && seed > 1 { // until the index has several pages
				w.add()
			}
			w.step(t)
			if i%1000 == 999 {
				w.check(t)
			}
		}
		for len(w.list) > 0 {
			w.remove(t, w.IntN(len(w.list)))
			if len(w.list)%1000 == 0 {
				w.check(t)
			}
		}
		for _, r := range w.readers {
			r.check(t, w.table)
			r.unpin()
		}
	}
}

// Rows are used again once no reader that was there has a pin, although others come all the time.
func TestRemovedRowsAreUsedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 7)
	for range 100 {
		w.add()
	}
	old := w.table.Pin()
	for range 10_000 {
		w.remove(t, 0)
		w.add()
		next := w.table.Pin()
		old()
		old = next
	}
	old()
	if used := w.table.used; used > 300 {
		t.Errorf("%d rows were used for 100 records", used)
	}
}

func TestPinnedTableFreesMemoryLater(t *testing.T) {
	t.Parallel()
	arena := newArena(t)
	table := NewTable(arena)
	row := table.Add(&Fields{Subject: subjectOf(3), Sequence: 9})
	table.SetFirst(row)
	unpin, other := table.Pin(), table.Pin()
	table.Close()
	other()
	if arena.Used() == 0 || table.At(row).Sequence() != 9 {
		t.Error("the memory is free while the table is pinned")
	}
	if table.Pin() != nil {
		t.Error("a closed table can be pinned")
	}
	unpin()
	if n := arena.Used(); n != 0 {
		t.Errorf("%d bytes are in use", n)
	}
}

func TestTimesBeyondRangeAreCut(t *testing.T) {
	t.Parallel()
	table := NewTable(newArena(t))
	defer table.Close()
	for given, want := range map[int64]int64{
		0: 0, -1: -1, TimeMax: TimeMax, TimeMax + 1: TimeMax, -TimeMax - 1: -TimeMax - 1, math.MinInt64: -TimeMax - 1, math.MaxInt64: TimeMax,
	} {
		if got := table.At(table.Add(&Fields{Time: given})).Time(); got != want {
			t.Errorf("time %d is %d, want %d", given, got, want)
		}
	}
	if size := unsafe.Sizeof(Record{}); size != 72 {
		t.Errorf("a record takes %d bytes, doc.go says 72", size)
	}
}

// All subjects of one page may share the next bit of the hash.
func TestPagesSplitUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 9)
	for len(w.table.index.pages) < 8 {
		w.add()
	}
	w.check(t)
	for _, p := range w.table.index.pages {
		if 8*p.n > 7*len(p.rows) {
			t.Errorf("a page of %d slots has %d rows", len(p.rows), p.n)
		}
	}
}

// A start knows all rows: the index is what adding them one by one makes, and no page is split.
func TestIndexOfAllRowsEqualsOneByOne(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, pageSlots, 10 * pageSlots, 50_000} {
		for _, together := range []int{1000, sortedRows} {
			table := NewTable(newArena(t))
			r := rand.New(rand.NewPCG(uint64(n), 1))
			want := map[id.Subject][]Row{}
			for i := range n {
				s := subjectOf(r.Uint64N(max(uint64(n)*3/4, 1)))
				want[s] = append(want[s], table.Add(&Fields{Subject: s, Sequence: uint64(i + 1)}))
			}
			err := table.index.addAll(numbers(n), n, together, func(first, row Row) (Row, error) {
				table.At(row).Next = first // the last one is the first of all
				return row, nil
			})
			if err != nil || table.Subjects() != len(want) {
				t.Fatalf("%d rows: %d subjects, %v; want %d", n, table.Subjects(), err, len(want))
			}
			for s, rows := range want {
				at := table.First(s)
				for _, row := range slices.Backward(rows) {
					if at != row {
						t.Fatalf("subject %s: row %d, want %d", s, at, row)
					}
					at = table.At(at).Next
				}
			}
			for _, p := range table.index.pages {
				if len(table.index.pages) > 1 && p.depth != table.index.depth {
					t.Errorf("%d rows: a page was split", n)
				}
			}
			if most := max(4*n/(pageSlots/2), 2); len(table.index.pages) > most {
				t.Errorf("%d rows have %d pages", n, len(table.index.pages))
			}
			table.Close()
		}
	}
}

// numbers returns the first n rows of a table.
func numbers(n int) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for row := Row(1); row <= Row(n) && yield(row); row++ {
		}
	}
}

// A table may be closed, or become garbage, after the arena was.
func TestTableOutlivesClosedArena(t *testing.T) {
	t.Parallel()
	arena := kernel.NewArena(0)
	table, other := NewTable(arena), NewTable(arena)
	row := table.Add(&Fields{Subject: subjectOf(3), Sequence: 9})
	other.Add(&Fields{Sequence: 8})
	must.Do(t, arena.Close())
	other.Close()
	if table.At(row).Sequence() != 9 {
		t.Error("the record is another")
	}
	for n := range uint64(1000) {
		table.Add(&Fields{Subject: subjectOf(n), Sequence: 10 + n})
	}
	table.Close()
	if n := arena.Used(); n != 0 {
		t.Errorf("%d bytes are in use", n)
	}
}
