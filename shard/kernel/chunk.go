package kernel

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"facet/shard/scan"
)

// chunk is a part of a matrix that never moves; doc.go draws its memory. live, irregular and tags
// have a bit a slot, 64 to a word.
//
// A chunk is cold while exact is nil. Readers load exact once for each piece.
type chunk struct {
	slots  int
	first  int // slot of the matrix
	flat   bool
	coding *coding // nil if flat
	planes [planes][]byte
	rows   []byte // codes
	exact  atomic.Pointer[[]byte]
	free   int // erased slots; for the writer only

	live []atomic.Uint64
	// irregular marks rows without bounds, which every search compares. odd is set with the first
	// such row, and stays set.
	irregular []atomic.Uint64
	odd       atomic.Bool
	owners    []atomic.Uint32
	tags      tagTable
}

func (c *chunk) planeBytes(plane int) int {
	if c.flat {
		return 0
	}
	return c.slots / blockSlots * c.coding.planes[plane].layout.blockBytes
}

func (c *chunk) rowBytes(s *shape) int {
	if c.flat {
		return 0
	}
	return c.slots * s.rowBytes
}

func (c *chunk) exactBytes(s *shape) int { return c.slots * s.vecNums * 4 }

// exactPool returns the pool of the exact rows. Those of flat chunks are no whole pages.
func (c *chunk) exactPool() pool {
	if c.flat {
		return rowPool
	}
	return exactPool
}

// alloc takes memory for the chunk. The exact rows come last: they are stored if all is there.
func (c *chunk) alloc(a *Arena, s *shape) error {
	if err := c.allocCodes(a, s); err != nil {
		return err
	}
	exact, err := a.alloc(c.exactPool(), c.exactBytes(s))
	if err != nil {
		c.release(a)
		return err
	}
	c.exact.Store(&exact)
	return nil
}

// allocCodes takes memory for the codes only.
func (c *chunk) allocCodes(a *Arena, s *shape) (err error) {
	parts := []struct {
		pool  pool
		bytes int
		to    *[]byte
	}{{rowPool, c.rowBytes(s), &c.rows}, {firstPool, c.planeBytes(0), &c.planes[0]}, {secondPool, c.planeBytes(1), &c.planes[1]}}
	for _, p := range parts {
		if p.bytes == 0 {
			continue
		}
		if *p.to, err = a.alloc(p.pool, p.bytes); err != nil {
			c.release(a)
			return err
		}
	}
	return nil
}

// release zeroes the chunk's memory and returns it to the arena.
func (c *chunk) release(a *Arena) {
	for i, b := range [poolCount][]byte{firstPool: c.planes[0], secondPool: c.planes[1], rowPool: c.rows} {
		if b != nil {
			a.release(pool(i), b)
		}
	}
	if exact := c.exact.Load(); exact != nil {
		a.release(c.exactPool(), *exact)
	}
}

// vectors returns the exact rows as float32 numbers; nil if the chunk is cold.
func (c *chunk) vectors() []float32 {
	exact := c.exact.Load()
	if exact == nil {
		return nil
	}
	return floats(*exact)
}

func floats(b []byte) []float32 { return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4) }

// vector returns an exact row; nil if the chunk is cold.
func (c *chunk) vector(s *shape, at int) []float32 {
	if all := c.vectors(); all != nil {
		return all[at*s.vecNums : (at+1)*s.vecNums]
	}
	return nil
}

// isIrregular reports whether the row at a slot has no bounds.
func (c *chunk) isIrregular(at int) bool {
	return c.irregular[at/blockSlots].Load()>>(at%blockSlots)&1 == 1
}

// piece is what a scan reads of up to pieceSlots slots of a chunk.
type piece struct {
	chunk        *chunk
	flat         bool
	first, slots int
	planes       [planes][]byte
	rows         []byte    // codes
	exact        *[]byte   // of the chunk; nil if it is cold
	vec          []float32 // nil if the chunk is cold

	live, irregular []atomic.Uint64 // irregular is nil if there is none
	owners          []atomic.Uint32
	tags            *tagTable // of the chunk
	block           int       // index in the chunk of the piece's first block
}

// piece returns the piece that starts at slot from. It has at most most slots.
func (c *chunk) piece(s *shape, from, most int) piece {
	n := min(c.slots-from, most)
	block, blocks := from/blockSlots, (n+blockSlots-1)/blockSlots
	p := piece{
		chunk:  c,
		flat:   c.flat,
		first:  c.first + from,
		slots:  n,
		live:   c.live[block:][:blocks],
		owners: c.owners[from:][:n],
		tags:   &c.tags,
		block:  block,
	}
	if p.exact = c.exact.Load(); p.exact != nil {
		p.vec = floats(*p.exact)[from*s.vecNums:][:n*s.vecNums]
	}
	if !c.flat {
		for i := range p.planes {
			size := c.coding.planes[i].layout.blockBytes
			p.planes[i] = c.planes[i][block*size:][:blocks*size]
		}
		p.rows = c.rows[from*s.rowBytes:][:n*s.rowBytes]
		if c.odd.Load() {
			p.irregular = c.irregular[block:][:blocks]
		}
	}
	return p
}

// allow writes the mask of slots that a search with tags may see, and counts them.
func (c *piece) allow(words []uint64, tags []uint32) (n int) {
	if len(tags) == 0 {
		for i := range words {
			words[i] = c.live[i].Load()
			n += bits.OnesCount64(words[i])
		}
		return n
	}
	clear(words)
	if !c.tags.mark(words, c.block, tags) {
		return 0
	}
	for i := range words {
		if words[i] != 0 {
			words[i] &= c.live[i].Load()
			n += bits.OnesCount64(words[i])
		}
	}
	return n
}

// note tells the coverage of a search, if it has one, which rows go into the scan of the piece, and
// which ones the tags leave out.
func (c *piece) note(s *search, allowed []uint64) {
	to := s.top.query.Coverage
	if to == nil {
		return
	}
	to.Note(c.first, allowed)
	if len(s.tags) == 0 {
		return
	}
	for i, rows := range allowed {
		to.LeaveOut(c.first+i*blockSlots, c.live[i].Load()&^rows)
	}
}

// Count counts the rows of the matrix that are noted in a coverage. It belongs to the writer.
func (m *Matrix) Count(to *scan.Coverage) {
	for _, c := range *m.chunks.Load() {
		to.Count(c.first, c.live)
	}
}
