package kernel

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// chunk is a part of a matrix that never moves; doc.go draws its memory. live, irregular and tags
// have a bit a slot, 64 to a word.
type chunk struct {
	slots  int
	first  int // slot of the matrix
	flat   bool
	coding *coding // nil if flat
	planes [planes][]byte
	rows   []byte // codes, then vec
	vec    int    // offset in rows

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

func (c *chunk) bytes(s *shape) int { return c.vec + c.slots*s.vecNums*4 }

func (c *chunk) alloc(a *Arena, s *shape) error {
	parts := []struct {
		pool  pool
		bytes int
		to    *[]byte
	}{
		{rowPool, c.bytes(s), &c.rows}, {firstPool, c.planeBytes(0), &c.planes[0]}, {secondPool, c.planeBytes(1), &c.planes[1]},
	}
	for _, p := range parts {
		if p.bytes == 0 {
			continue
		}
		var err error
		if *p.to, err = a.alloc(p.pool, p.bytes); err != nil {
			c.release(a)
			return err
		}
	}
	return nil
}

// release zeroes the chunk's memory and returns it to the arena.
func (c *chunk) release(a *Arena) {
	for _, b := range [][]byte{c.planes[0], c.planes[1], c.rows} {
		if b != nil {
			a.release(b)
		}
	}
}

// vectors returns vec as float32 numbers.
func (c *chunk) vectors(s *shape) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&c.rows[c.vec])), c.slots*s.vecNums)
}

func (c *chunk) vector(s *shape, at int) []float32 {
	return c.vectors(s)[at*s.vecNums : (at+1)*s.vecNums]
}

// piece is what a scan reads of up to pieceSlots slots of a chunk.
type piece struct {
	chunk        *chunk
	flat         bool
	first, slots int
	planes       [planes][]byte
	rows         []byte // codes
	vec          []float32

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
		vec:    c.vectors(s)[from*s.vecNums:][:n*s.vecNums],
		live:   c.live[block:][:blocks],
		owners: c.owners[from:][:n],
		tags:   &c.tags,
		block:  block,
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
