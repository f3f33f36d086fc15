package record

import (
	"fmt"
	"hash/maphash"
	"iter"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"facet/internal/id"
	"facet/shard/kernel"
)

const (
	recordBytes = int(unsafe.Sizeof(Record{}))
	// The chunks of a table have 64, 64, 128, … rows, and chunkRows from the seventh on, so that a
	// small gallery takes little.
	firstRows  = 64
	chunkRows  = 4096
	growRows   = 2 * chunkRows // rows of the chunks that grow
	growChunks = 8
	// reclaimMost is how many removed rows an Add frees.
	reclaimMost = 32
)

// Table has the records of a slice, and the first row of each subject's active events. Its methods
// need the caller's lock, for writing where they change something. Owner, Tags and Pin don't.
type Table struct {
	memory
	used Row // rows that were ever used
	live int
	free Row // the first of the free rows, a list by Next

	tags tagSets
	pins pins
}

// memory is the part of a table outside the Go heap.
type memory struct {
	*rows
	index *index
}

// rows has the records.
type rows struct {
	arena  *kernel.Arena
	chunks atomic.Pointer[[][]Record]
}

// NewTable returns an empty table whose memory comes from arena. It is freed by Close, or when the
// table is no longer used.
func NewTable(arena *kernel.Arena) *Table {
	r := &rows{arena: arena}
	r.chunks.Store(new([][]Record))
	t := &Table{memory: memory{r, &index{rows: r, seed: maphash.MakeSeed()}}, used: 1} // row 0 is none
	runtime.AddCleanup(t, memory.release, t.memory)
	return t
}

// At returns the record of a row, 1 or more.
func (r *rows) At(row Row) *Record {
	index, at := place(row)
	return &(*r.chunks.Load())[index][at]
}

// Owner returns the owner of a row.
func (t *Table) Owner(row Row) *kernel.Owner { return &t.At(row).Owner }

// Tags returns the tags of an owner, which must not be changed.
func (t *Table) Tags(o *kernel.Owner) []uint32 { return t.tags.at(o.Tags) }

// Len returns the number of records that are not removed.
func (t *Table) Len() int { return t.live }

// Add adds a record and returns its row.
func (t *Table) Add(f *Fields) Row {
	if f.Sequence > SequenceMax || f.First > SequenceMax {
		panic(fmt.Sprintf("bug: record: sequence %d of event %s", max(f.Sequence, f.First), f.Event))
	}
	t.reclaim()
	row := t.free
	if row == 0 {
		row = t.used
		if index, at := place(row); at == 0 || row == 1 {
			t.grow(index)
		}
		t.used++
	} else {
		t.free = t.At(row).Next
	}
	t.live++
	*t.At(row) = Record{
		Owner:    kernel.Owner{Subject: f.Subject, Event: f.Event, Tags: t.tags.take(f.Tags)},
		Revision: f.Revision,
		sequence: pack(f.Sequence), first: pack(f.First),
		time:      pack(uint64(min(max(f.Time, -TimeMax-1), TimeMax))),
		SealedLen: f.SealedLen, NoteLen: f.NoteLen, Deleted: f.Deleted,
	}
	return row
}

// Remove removes a record. Its fields stay readable for those who pinned the table before.
func (t *Table) Remove(row Row) {
	t.live--
	t.pins.retire(t, row)
}

// place returns the chunk of a row, and the row's index in it.
func place(row Row) (index, at int) {
	switch {
	case row < firstRows:
		return 0, int(row)
	case row < growRows:
		n := bits.Len32(row)
		return n - 6, int(row) - 1<<(n-1)
	}
	return growChunks + int(row-growRows)/chunkRows, int(row-growRows) % chunkRows
}

func (r *rows) grow(index int) {
	n := chunkRows
	if index < growChunks {
		n = firstRows << max(index-1, 0)
	}
	b := r.arena.Records(n * recordBytes)
	chunk := unsafe.Slice((*Record)(unsafe.Pointer(&b[0])), n)
	// Readers of the old list don't look beyond its length.
	chunks := append(*r.chunks.Load(), chunk)
	r.chunks.Store(&chunks)
}

// Bytes returns the memory outside the Go heap.
func (t *Table) Bytes() int64 { return t.size() + t.index.bytes() }

func (r *rows) size() (n int64) {
	for _, c := range *r.chunks.Load() {
		n += int64(len(c) * recordBytes)
	}
	return n
}

// HeapBytes returns about the memory in the Go heap.
func (t *Table) HeapBytes() int64 { return t.tags.bytes + t.index.heapBytes() }

// First returns the first active event of a subject, or 0.
func (t *Table) First(subject id.Subject) Row { return t.index.get(&subject) }

// Index does what SetFirst does for n rows, in an empty table and in a sixth of the time. For a row whose
// subject has one already, join returns which of both is the first. Its error ends Index.
func (t *Table) Index(rows iter.Seq[Row], n int, join func(first, row Row) (Row, error)) error {
	return t.index.addAll(rows, n, sortedRows, join)
}

// SetFirst sets the first active event of its subject.
func (t *Table) SetFirst(row Row) { t.index.set(row) }

// DeleteFirst makes a subject unknown.
func (t *Table) DeleteFirst(subject id.Subject) { t.index.delete(&subject) }

// Subjects returns the number of known subjects.
func (t *Table) Subjects() int { return t.index.n }

// Firsts calls yield with the first active event of each subject, in no order. The table must not be
// changed meanwhile.
func (t *Table) Firsts(yield func(Row) bool) { t.index.each(yield) }

// Close frees the memory as soon as nobody has pinned the table. Nobody else uses the table
// afterwards.
func (t *Table) Close() { t.pins.close(t) }

// release frees the memory. A second call does nothing.
func (m memory) release() {
	for _, c := range *m.chunks.Swap(new([][]Record)) {
		m.arena.ReleaseRecords(unsafe.Slice((*byte)(unsafe.Pointer(&c[0])), len(c)*recordBytes))
	}
	m.index.release()
}

// pins counts readers in two epochs, and has the rows that were removed in each. A row of an epoch
// may be read by those who pinned the table in it or before. So when nobody has a pin of the epoch
// before the present one, the rows of that epoch are free, and the next epoch begins.
type pins struct {
	mu      sync.Mutex
	epoch   uint
	held    [2]int
	retired [2]Row // lists by Next
	closed  bool
}

// Pin keeps the records that are not removed yet readable until unpin is called, once. It returns nil
// after Close.
func (t *Table) Pin() (unpin func()) {
	p := &t.pins
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	epoch := p.epoch
	p.held[epoch&1]++
	return func() { p.unpin(t, epoch) }
}

func (p *pins) unpin(t *Table, epoch uint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[epoch&1]--
	if p.closed && p.held[0]+p.held[1] == 0 {
		t.release()
	}
}

func (p *pins) retire(t *Table, row Row) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.At(row).Next = p.retired[p.epoch&1]
	p.retired[p.epoch&1] = row
}

func (p *pins) close(t *Table) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.held[0]+p.held[1] == 0 {
		t.release()
	}
}

// reclaim frees some of the rows that nobody can read any more.
func (t *Table) reclaim() {
	if t.used == Row(t.live)+1 {
		return // no row was removed
	}
	p := &t.pins
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[(p.epoch+1)&1] > 0 {
		return
	}
	before := &p.retired[(p.epoch+1)&1]
	for range reclaimMost {
		if *before == 0 {
			p.epoch++
			return
		}
		r := t.At(*before)
		t.tags.release(r.Tags)
		*before, r.Next, t.free = r.Next, t.free, *before
	}
}
