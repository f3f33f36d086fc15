package kernel

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"unsafe"
)

// chunk is a piece of a matrix that never moves: doc.go draws its memory. The bits
// of live, irregular and tags are of slots, 64 a word.
type chunk struct {
	slots          int
	flat           bool
	mem            []byte
	mid, rest, vec int // offsets in mem; hi is at 0

	live []atomic.Uint64
	// irregular rows have no bounds and are compared in every search.
	irregular []atomic.Uint64
	owners    []atomic.Pointer[Owner]
	// tags is replaced when a tag is new to the chunk; the words change in place.
	tags atomic.Pointer[[]tagWords]
}

// tagWords tells which slots of a chunk have a tag.
type tagWords struct {
	tag   uint32
	words []atomic.Uint64
}

func (c *chunk) size(s *shape) int { return c.vec + c.slots*s.vecNums*4 }

// vectors are the rows of vec.
func (c *chunk) vectors(s *shape) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&c.mem[c.vec])), c.slots*s.vecNums)
}

func (c *chunk) vector(s *shape, at int) []float32 {
	return c.vectors(s)[at*s.vecNums : (at+1)*s.vecNums]
}

// write puts the codes of a row, one a number, and its bounds into the planes.
func (c *chunk) write(s *shape, at int, codes, lows []uint8, bounds [planes]bound) {
	group, slot := at/groupSlots, at%groupSlots
	hi := c.mem[s.plane.at(group):]
	mid := c.mem[c.mid+s.plane.at(group):]
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
	row := c.mem[c.rest+at*s.rest:][:s.rest]
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
	flat          bool
	slots         int
	hi, mid, rest []byte
	vec           []float32

	live, irregular []atomic.Uint64
	owners          []atomic.Pointer[Owner]
	tags            []tagWords // of the chunk
	block           int        // of the chunk, with which the piece begins
}

// piece gives the piece that begins with slot from.
func (c *chunk) piece(s *shape, from int) *piece {
	n := min(c.slots-from, pieceSlots)
	block, blocks := from/blockSlots, (n+blockSlots-1)/blockSlots
	p := &piece{
		flat:   c.flat,
		slots:  n,
		vec:    c.vectors(s)[from*s.vecNums:][:n*s.vecNums],
		live:   c.live[block:][:blocks],
		owners: c.owners[from:][:n],
		block:  block,
	}
	if table := c.tags.Load(); table != nil {
		p.tags = *table
	}
	if !c.flat {
		p.hi = c.mem[block*s.plane.blockBytes:][:blocks*s.plane.blockBytes]
		p.mid = c.mem[c.mid+block*s.plane.blockBytes:][:blocks*s.plane.blockBytes]
		p.rest = c.mem[c.rest+from*s.rest:][:n*s.rest]
		p.irregular = c.irregular[block:][:blocks]
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
	for _, t := range c.tags {
		if !slices.Contains(tags, t.tag) {
			continue
		}
		for i := range words {
			words[i] |= t.words[c.block+i].Load()
		}
	}
	for i := range words {
		if words[i] != 0 {
			words[i] &= c.live[i].Load()
			any |= words[i]
		}
	}
	return any != 0
}

// setTags gives a slot, which is not live, its tags.
func (c *chunk) setTags(at int, tags []uint32) {
	for _, tag := range tags {
		var table []tagWords
		if old := c.tags.Load(); old != nil {
			table = *old
		}
		i := slices.IndexFunc(table, func(t tagWords) bool { return t.tag == tag })
		if i < 0 {
			i = len(table)
			// Readers of the old table don't look beyond its length.
			table = append(table, tagWords{tag, make([]atomic.Uint64, len(c.live))})
			c.tags.Store(&table)
		}
		table[i].words[at/blockSlots].Or(1 << (at % blockSlots))
	}
}

func (c *chunk) clearTags(at int, tags []uint32) {
	for _, tag := range tags {
		for _, t := range *c.tags.Load() {
			if t.tag == tag {
				t.words[at/blockSlots].And(^(uint64(1) << (at % blockSlots)))
			}
		}
	}
}
