package kernel

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// With probable bounds, wide templates have another first plane: the signs of their rotated
// numbers, a bit each. The angle between a template and its signs is large, some 37 degrees. Most
// of it does not count, because its direction is random. Blocks are like those of other planes,
// except for
//
//	line 4i+g of a block  slot 16g   16g+1   …   16g+15    32 bits each:
//	bit j of a slot: number 32i + j is not negative
//
// A probe has a table for every four numbers. It has a byte for each of the sixteen patterns of
// signs: what the pattern adds to a sum. A line has eight tables, four for the lower halves of a
// word's bytes and four for the upper halves. Each four fit one register, from which VPERMB looks
// up 64 numbers at once. The second plane has the bits of the plain coding's first plane.

const (
	signNums  = 32 // numbers of a slot in a line
	tableNums = 4
	signTable = 1 << tableNums
	// signTables is the size of a line's tables.
	signTables = signNums / tableNums * signTable
	// signSum is the most that four numbers may add; rounding may add half a number to each.
	signSum = math.MaxUint8 - tableNums/2
	// cosLeastSigns is the smallest cos φ of a bound from signs.
	cosLeastSigns = .65
	// bluntStep is how much the least similarity must rise before a search tries signs again, after
	// they have left too many rows.
	bluntStep = .02
)

// withSigns makes signs the first plane of the plain coding.
func (c *coding) withSigns(s *shape) {
	c.planes[1] = c.planes[0]
	lines := (s.dim + signNums - 1) / signNums
	bounds := lines * blockLineBytes
	c.planes[0] = planeShape{signs: lines, layout: layout{bounds, bounds + blockSlots*boundBytes}, shift: 32}
	c.measureScales(s, nil)
}

// signed reports whether the first plane is one of signs.
func (c *coding) signed() bool { return c.planes[0].signs > 0 }

// signSlopes is slopes for a coding with signs, whose codes are ½ or −½ of each number.
func (e *encoder) signSlopes() (s [planes]slopes, ok bool) {
	all := &e.parts[1]
	var sums laneSums
	for i, y := range e.y {
		sums[i%coderLanes] += math.Abs(y)
	}
	norm := math.Sqrt(all.norm.sum())
	first, ok := slopesFrom(cosLeastSigns, sums.sum()/2, math.Sqrt(float64(e.coding.dim))/2, norm, 0)
	second, fine := e.coding.slopes(all.dots[0].sum()/4, math.Sqrt(all.squares[0].sum())/4, norm, 0)
	return [planes]slopes{first, second}, ok && fine
}

// signs returns the word of one slot in a line: the signs of up to 32 numbers, the first of which
// is number from.
func signs(codes []uint8, from int) (word uint32) {
	for i, code := range codes[from:min(from+signNums, len(codes))] {
		word |= uint32(code) >> 3 << i
	}
	return word
}

// signLargest returns the number that is rounded to probeMax in place of the largest one, so that
// no four numbers add more than signSum.
func signLargest(y []float64) float64 {
	most := 0.
	for i := 0; i < len(y); i += tableNums {
		sum := 0.
		for _, x := range y[i:min(i+tableNums, len(y))] {
			sum += math.Abs(x)
		}
		most = max(most, sum)
	}
	return most * probeMax / signSum
}

// signTablesOf returns a probe's tables for this many lines. For every pattern, a table has the sum
// of the numbers whose bits are set, less the smallest of these sums.
func signTablesOf(whole []int8, lines int) []uint8 {
	tables := make([]uint8, lines*signTables)
	for i := 0; i < lines*signNums; i += tableNums {
		four := whole[i:][:tableNums]
		least := 0
		for _, q := range four {
			least += min(int(q), 0)
		}
		for pattern := range signTable {
			sum := -least
			for j, q := range four {
				sum += pattern >> j & 1 * int(q)
			}
			tables[signTableAt(i)+pattern] = uint8(sum)
		}
	}
	return tables
}

// signTableAt returns the offset of the table for number i and the next three.
func signTableAt(i int) int {
	line, b, upper := i/signNums, i%signNums/8, i/tableNums%2
	return line*signTables + upper*signTables/2 + b*signTable
}

// signOffset returns half of the sum of the numbers' magnitudes. A sum of table entries exceeds the
// same sum with numbers ½ and −½ by this offset.
func signOffset(whole []int8) int32 {
	sum := int32(0)
	for _, q := range whole {
		sum += max(int32(q), -int32(q))
	}
	return half(sum)
}

// firstPlane returns the first plane to scan of a piece that has share of its slots left. Signs
// don't help if few slots are left, or if they left too many rows before.
func (s *search) firstPlane(share, slots int) int {
	if s.coding.signed() && (s.kernel.signs == nil || share <= slots/blocksShare || s.top.least < s.sharp) {
		return 1
	}
	return 0
}

func signsPortable(p *plane) {
	for block, mask := range p.masks {
		for ; mask != 0; mask &= mask - 1 {
			slot := bits.TrailingZeros64(mask)
			group := block*blockGroups + slot/groupSlots
			sum := p.signsAt(p.layout.at(group) + 4*(slot%groupSlots))
			if p.sums != nil {
				p.sums[block*blockSlots+slot] = sum
			}
			if out(sum, p.layout.bounds(p.codes, group)[slot%groupSlots], &p.limit) {
				p.masks[block] &^= 1 << slot
			}
		}
	}
}

func (p *plane) signsAt(at int) (sum int32) {
	for i := range p.signLines {
		word := binary.LittleEndian.Uint32(p.codes[at+i*blockLineBytes:])
		for j := 0; j < signNums; j += tableNums {
			sum += int32(p.tables[signTableAt(i*signNums+j)+int(word>>j%signTable)])
		}
	}
	return sum
}
