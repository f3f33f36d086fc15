package record

import (
	"hash/maphash"
	"iter"
	"unsafe"

	"facet/internal/id"
)

// index finds the first row of a subject. It has pages of open addressing with linear probing. A full
// page is split in two by one more bit of the hash, so that no write waits for a whole table to be
// made anew:
//
//	pages, by the upper bits of the hash:  00 ─ p   01 ─ p   10 ─ q   11 ─ r      depth 2
//	                                       p has depth 1, q and r have 2
//
// A page has a byte of the hash and the row for each slot: 5 bytes. It is between 7/16 and 7/8 full.
type index struct {
	rows  *rows
	seed  maphash.Seed
	pages []*page // 1 << depth
	depth uint
	n     int
}

// page has slots of a row, or 0, and a byte of its hash.
type page struct {
	memory []byte
	rows   []Row
	marks  []byte
	n      int
	depth  uint // bits of the hash that all its subjects share
}

const (
	firstSlots = 16
	pageSlots  = 4096
)

func (x *index) hash(subject *id.Subject) uint64 { return maphash.Bytes(x.seed, subject.UUID[:]) }

func mark(h uint64) byte { return byte(h >> 24) }

func (x *index) newPage(slots int, depth uint) *page {
	b := x.rows.arena.Records(5 * slots)
	return &page{memory: b, rows: unsafe.Slice((*Row)(unsafe.Pointer(&b[0])), slots), marks: b[4*slots:][:slots], depth: depth}
}

// reserve makes room for n subjects in an empty index, so that hardly a page is split until then.
func (x *index) reserve(n int) {
	if x.pages != nil || n < pageSlots/2 {
		return
	}
	for ; n<<2 > 3*pageSlots<<x.depth; x.depth++ { // three quarters, as pages differ
	}
	x.pages = make([]*page, 1<<x.depth)
	for i := range x.pages {
		x.pages[i] = x.newPage(pageSlots, x.depth)
	}
}

func (x *index) pageOf(h uint64) *page { return x.pages[h>>(64-x.depth)] }

// find returns the slot of a subject, or the free slot where it belongs.
func (p *page) find(r *rows, subject *id.Subject, h uint64) (slot int, found bool) {
	mask := len(p.rows) - 1
	for slot = int(h) & mask; p.rows[slot] != 0; slot = (slot + 1) & mask {
		if p.marks[slot] == mark(h) && r.At(p.rows[slot]).Subject == *subject {
			return slot, true
		}
	}
	return slot, false
}

func (x *index) get(subject *id.Subject) Row {
	if x.n == 0 {
		return 0
	}
	h := x.hash(subject)
	p := x.pageOf(h)
	if slot, found := p.find(x.rows, subject, h); found {
		return p.rows[slot]
	}
	return 0
}

func (x *index) set(row Row) {
	h := x.hash(&x.rows.At(row).Subject)
	p, slot, _ := x.slotOf(row, h)
	p.rows[slot], p.marks[slot] = row, mark(h)
}

// slotOf returns the slot of the subject of a row, whose hash is h. A new one is zero.
func (x *index) slotOf(row Row, h uint64) (p *page, slot int, found bool) {
	subject := &x.rows.At(row).Subject
	if x.pages == nil {
		x.pages = []*page{x.newPage(firstSlots, 0)}
	}
	p = x.pageOf(h)
	slot, found = p.find(x.rows, subject, h)
	if found {
		return p, slot, true
	}
	if 8*(p.n+1) > 7*len(p.rows) {
		p = x.widen(p, h)
		slot, _ = p.find(x.rows, subject, h)
	}
	p.n++
	x.n++
	return p, slot, false
}

// sortedRows is how many rows Index sorts by their pages at a time.
const sortedRows = 1 << 20

type hashed struct {
	hash uint64
	row  Row
}

// addAll adds n rows, so many together in the order of their pages. Added one after another, each row
// would wait for three lines of memory that no cache has.
func (x *index) addAll(rows iter.Seq[Row], n, together int, join func(first, row Row) (Row, error)) error {
	x.reserve(n)
	batch := make([]hashed, 0, min(n, together))
	sorted := make([]hashed, cap(batch))
	for row := range rows {
		batch = append(batch, hashed{x.hash(&x.rows.At(row).Subject), row})
		if len(batch) < together {
			continue
		}
		if err := x.addBatch(batch, sorted, join); err != nil {
			return err
		}
		batch = batch[:0]
	}
	return x.addBatch(batch, sorted, join)
}

// addBatch adds rows in the order of their pages, those of a page in their own order.
func (x *index) addBatch(batch, sorted []hashed, join func(first, row Row) (Row, error)) error {
	shift := 64 - x.depth
	next := make([]int, 1<<x.depth+1) // where the next row of a page goes
	for i := range batch {
		next[batch[i].hash>>shift+1]++
	}
	for i := 1; i < len(next); i++ {
		next[i] += next[i-1]
	}
	for _, e := range batch {
		at := &next[e.hash>>shift]
		sorted[*at] = e
		*at++
	}
	for _, e := range sorted[:len(batch)] {
		p, slot, found := x.slotOf(e.row, e.hash)
		if found {
			first, err := join(p.rows[slot], e.row)
			if err != nil {
				return err
			}
			e.row = first
		}
		p.rows[slot], p.marks[slot] = e.row, mark(e.hash)
	}
	return nil
}

// widen makes room in the page of a hash and returns the page that has it then.
func (x *index) widen(p *page, h uint64) *page {
	if len(p.rows) < pageSlots {
		next := x.newPage(2*len(p.rows), p.depth)
		x.move(p, func(uint64) *page { return next })
		x.replace(p, h, next, next)
		return next
	}
	if p.depth == x.depth {
		pages := make([]*page, 2*len(x.pages))
		for i := range pages {
			pages[i] = x.pages[i/2]
		}
		x.pages, x.depth = pages, x.depth+1
	}
	halves := [2]*page{x.newPage(pageSlots, p.depth+1), x.newPage(pageSlots, p.depth+1)}
	half := func(h uint64) *page { return halves[h>>(63-p.depth)&1] }
	x.move(p, half)
	x.replace(p, h, halves[0], halves[1])
	if next := half(h); 8*(next.n+1) <= 7*len(next.rows) {
		return next
	}
	return x.widen(half(h), h) // nearly never: all had the same bit
}

// move moves the rows of a page to others and frees it.
func (x *index) move(p *page, to func(h uint64) *page) {
	for _, row := range p.rows {
		if row == 0 {
			continue
		}
		subject := &x.rows.At(row).Subject
		h := x.hash(subject)
		next := to(h)
		slot, _ := next.find(x.rows, subject, h)
		next.rows[slot], next.marks[slot] = row, mark(h)
		next.n++
	}
}

// replace puts two pages, or one twice, in the places of p, to which a hash belongs, and frees p.
func (x *index) replace(p *page, h uint64, low, high *page) {
	shared := x.depth - p.depth // bits that the places of p differ in
	first := int(h>>(64-x.depth)) >> shared << shared
	for i := range 1 << shared {
		if x.pages[first+i] = low; shared > 0 && i >= 1<<(shared-1) {
			x.pages[first+i] = high
		}
	}
	x.rows.arena.ReleaseRecords(p.memory)
}

// delete removes a subject, and moves the subjects behind it that would no longer be found.
func (x *index) delete(subject *id.Subject) {
	if x.n == 0 {
		return
	}
	h := x.hash(subject)
	p := x.pageOf(h)
	hole, found := p.find(x.rows, subject, h)
	if !found {
		return
	}
	mask := len(p.rows) - 1
	for slot := (hole + 1) & mask; p.rows[slot] != 0; slot = (slot + 1) & mask {
		home := int(x.hash(&x.rows.At(p.rows[slot]).Subject)) & mask
		if (slot-home)&mask >= (slot-hole)&mask { // its way leads over the hole
			p.rows[hole], p.marks[hole] = p.rows[slot], p.marks[slot]
			hole = slot
		}
	}
	p.rows[hole] = 0
	p.n--
	x.n--
}

// each calls yield with all rows. Pages that several places share come once.
func (x *index) each(yield func(Row) bool) {
	for i, p := range x.pages {
		if i > 0 && x.pages[i-1] == p {
			continue
		}
		for _, row := range p.rows {
			if row != 0 && !yield(row) {
				return
			}
		}
	}
}

func (x *index) bytes() (n int64) {
	for i, p := range x.pages {
		if i == 0 || x.pages[i-1] != p {
			n += int64(len(p.memory))
		}
	}
	return n
}

// heapBytes returns the memory of the pages' heads and places.
func (x *index) heapBytes() int64 { return int64(len(x.pages)) * (8 + 100) }

func (x *index) release() {
	for i, p := range x.pages {
		if i == 0 || x.pages[i-1] != p {
			x.rows.arena.ReleaseRecords(p.memory)
		}
	}
	x.pages, x.n = nil, 0
}
