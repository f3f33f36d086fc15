package kernel

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// chunk is a piece of a matrix that never moves: doc.go draws its memory. The bits
// of live, irregular and tags are of slots, 64 a word.
type chunk struct {
	slots   int
	first   int // slot of the matrix
	flat    bool
	hi, mid []byte
	rows    []byte // rest, then vec
	vec     int    // offset in rows

	live []atomic.Uint64
	// irregular rows have no bounds and are compared in every search. odd is set when there
	// was one, and stays.
	irregular []atomic.Uint64
	odd       atomic.Bool
	owners    []atomic.Pointer[Owner]
	tags      tagTable
}

// planeBytes and rowBytes are the sizes of hi and mid, and of rows.
func (c *chunk) planeBytes(s *shape) int {
	if c.flat {
		return 0
	}
	return c.slots / blockSlots * s.plane.blockBytes
}

func (c *chunk) rowBytes(s *shape) int { return c.vec + c.slots*s.vecNums*4 }

// alloc takes the chunk's memory.
func (c *chunk) alloc(a *Arena, s *shape) error {
	parts := []struct {
		pool  pool
		bytes int
		to    *[]byte
	}{
		{rowPool, c.rowBytes(s), &c.rows}, {hiPool, c.planeBytes(s), &c.hi}, {midPool, c.planeBytes(s), &c.mid},
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

// release gives it back, zeroed.
func (c *chunk) release(a *Arena) {
	for _, b := range [][]byte{c.hi, c.mid, c.rows} {
		if b != nil {
			a.release(b)
		}
	}
}

// vectors are the rows of vec.
func (c *chunk) vectors(s *shape) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&c.rows[c.vec])), c.slots*s.vecNums)
}

func (c *chunk) vector(s *shape, at int) []float32 {
	return c.vectors(s)[at*s.vecNums : (at+1)*s.vecNums]
}

// write puts the codes of a row, one a number, and its bounds into the planes.
func (c *chunk) write(s *shape, at int, codes, lows []uint8, bounds [planes]bound) {
	group, slot := at/groupSlots, at%groupSlots
	hi := c.hi[s.plane.at(group):]
	mid := c.mid[s.plane.at(group):]
	for i := range s.lines {
		var h, m uint32
		for j, code := range codes[i*planeDims : min((i+1)*planeDims, s.dim)] {
			shift := 8*(j%4) + 2*(j/4)
			h |= uint32(code>>2) << shift
			m |= uint32(code&3) << shift
		}
		binary.LittleEndian.PutUint32(hi[i*s.plane.lineBytes+4*slot:], h)
		binary.LittleEndian.PutUint32(mid[i*s.plane.lineBytes+4*slot:], m)
	}
	for p, line := range [][]byte{hi[s.lines*s.plane.lineBytes:], mid[s.lines*s.plane.lineBytes:]} {
		binary.LittleEndian.PutUint16(line[2*slot:], bounds[p].alpha)
		binary.LittleEndian.PutUint16(line[lineBytes/2+2*slot:], bounds[p].tan)
	}
	row := c.rows[at*s.rest:][:s.rest]
	clear(row)
	for i, low := range lows {
		row[i/unitDims*lowBytes+i%lowBytes] |= low << (4 * (i % unitDims / lowBytes))
	}
	row = row[s.units*lowBytes:]
	for i, code := range codes {
		row[i/unitDims*midBytes+i%midBytes] |= code & 3 << (2 * (i % unitDims / midBytes))
	}
	row = row[s.units*midBytes:]
	binary.LittleEndian.PutUint16(row, bounds[2].alpha)
	binary.LittleEndian.PutUint16(row[2:], bounds[2].tan)
}

// piece is what a scan sees of up to pieceSlots slots of a chunk.
type piece struct {
	chunk         *chunk
	flat          bool
	first, slots  int
	hi, mid, rest []byte
	vec           []float32

	live, irregular []atomic.Uint64 // irregular is nil if there is none
	owners          []atomic.Pointer[Owner]
	tags            *tagTable // of the chunk
	block           int       // of the chunk, with which the piece begins
}

// piece gives the piece of up to most slots that begins with slot from.
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
		p.hi = c.hi[block*s.plane.blockBytes:][:blocks*s.plane.blockBytes]
		p.mid = c.mid[block*s.plane.blockBytes:][:blocks*s.plane.blockBytes]
		p.rest = c.rows[from*s.rest:][:n*s.rest]
		if c.odd.Load() {
			p.irregular = c.irregular[block:][:blocks]
		}
	}
	return p
}

// restBound reads the bound of a row's whole code.
func (c *piece) restBound(s *shape, at int) (alpha, tan float32) {
	b := c.rest[(at+1)*s.rest-boundBytes:][:boundBytes]
	return float32(binary.LittleEndian.Uint16(b)), float32(binary.LittleEndian.Uint16(b[2:]))
}

// allow writes the slots that a search with tags may see, and tells if there are any.
func (c *piece) allow(words []uint64, tags []uint32) bool {
	var any uint64
	if len(tags) == 0 {
		for i := range words {
			words[i] = c.live[i].Load()
			any |= words[i]
		}
		return any != 0
	}
	clear(words)
	if !c.tags.mark(words, c.block, tags) {
		return false
	}
	for i := range words {
		if words[i] != 0 {
			words[i] &= c.live[i].Load()
			any |= words[i]
		}
	}
	return any != 0
}
