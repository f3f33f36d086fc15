package kernel

import (
	"encoding/binary"
	"math"

	"facet/internal/stale"
)

const (
	// normSlack is how far a template's norm may be from 1. Rows beyond it are always compared
	// exactly.
	normSlack = 1.0 / (1 << 13)

	// rowMax is the largest code of a row. The stored code is the code plus rowZero, in 8 bits. So
	// zero is in the middle of the values with the same upper four bits.
	rowMax, rowZero = 119, 8*16 + 8
	// unitNums numbers share unitBytes bytes of each half of a row's code. Number i shares a byte
	// with number i + unitBytes.
	unitNums, unitBytes = 64, 32
	// lowZero is the mean of the lower four bits if all values are equally frequent. lowMean and
	// lowVariance are the mean and the variance of their squared distance from lowZero. A bounded
	// row may exceed this mean by lowSigmas standard deviations.
	lowZero, lowMean, lowVariance = 7.5, 21.25, 357
	lowSigmas                     = 4.6

	// codeLeast to codeMost are the codes of the planes, in steps from the middle.
	codeLeast, codeMost = -8, 7
)

// rowError is the largest distance of a bounded row from its code, in steps of the code. Rounding
// moves nearly all rows less.
func rowError(dim int) float64 { return .29*math.Sqrt(float64(dim)) + .8 }

// lowError is the largest squared distance of a code's upper four bits alone from the whole code.
func lowError(dim int) float64 {
	n := float64(dim)
	return n*lowMean + lowSigmas*math.Sqrt(n*lowVariance)
}

// coded is a template encoded in a coding.
type coded struct {
	// codes has 4 bits for each number: the pair of bits in the first plane, or the coarse pair,
	// and the next pair.
	codes  []uint8
	row    []uint8 // a code a number, padded to rowBytes
	bounds [planes]bound
	// bounded is false for a row without bounds, which every search compares exactly.
	bounded bool
}

// encoder turns templates into codes. It is not for concurrent use.
type encoder struct {
	coder  *coder
	coding *coding
	y      []float64
	parts  [3]cells // of the coding
	coded
}

func newEncoder(s *shape, c *coding) *encoder {
	return &encoder{coder: activeCoder, coding: c, y: make([]float64, s.dim), coded: newCoded(s)}
}

func newCoded(s *shape) coded {
	return coded{codes: make([]uint8, s.dim), row: make([]uint8, s.rowBytes)}
}

// clear zeroes all traces of a template.
func (e *encoder) clear() {
	clear(e.y)
	clear(e.parts[:])
	clear(e.codes)
	clear(e.row)
	e.bounds, e.bounded = [planes]bound{}, false
}

// encode encodes v into e.coded, and reports whether all numbers are finite.
func (e *encoder) encode(v []float32) (finite bool) {
	stale.Fill(e.y)
	stale.Fill(e.codes)
	norm := e.coder.norm(&e.parts[0].norm, v)
	if !(math.Abs(norm-1) <= normSlack) {
		e.clear()
		return norm-norm == 0
	}
	c := e.coding
	c.rotation.applyTo(e.coder, e.y, v, 1/norm)
	e.parts = [...]cells{
		e.cells(0, c.parts[0], firstPlane), e.cells(c.parts[0], c.parts[1], bothPlanes), e.cells(c.parts[1], c.dim, noPlane),
	}
	for i := range e.parts {
		e.coder.codeAll(&e.parts[i])
	}
	e.bounded = e.rowIsNear() && e.stateBounds()
	return true
}

// cells returns the numbers of a part, for the coder.
func (e *encoder) cells(from, to int, kind cellKind) cells {
	c := cells{
		y: e.y[from:to], row: e.row[from:to], codes: e.codes[from:to],
		kind: kind, grain: e.coding.grain, gain: 1 / e.coding.step, width: 1,
	}
	if kind == bothPlanes && e.coding.fine > e.coding.coarse {
		c.gain, c.width = 4*c.gain, .25
	}
	return c
}

// rowIsNear reports whether the row's code and its upper half are close enough to the row for a
// bound.
func (e *encoder) rowIsNear() bool {
	most := rowError(e.coding.dim)
	all, both, none := &e.parts[0], &e.parts[1], &e.parts[2]
	if !(all.off.sum()+both.off.sum()+none.off.sum() <= most*most) {
		return false
	}
	// (l − 7.5)² = 7.5² − l · (15 − l); numbers that pad add nothing.
	n := e.coding.dim
	return lowZero*lowZero*float64(n)-float64(e.coder.spread(e.row)) <= lowError(n)
}

// stateBounds computes the bounds, and reports whether the scales can store them.
func (e *encoder) stateBounds() bool {
	slopes, ok := e.slopes()
	for p := range slopes {
		fits := false
		e.bounds[p], fits = e.coding.scales[p].bound(slopes[p])
		ok = ok && fits
	}
	return ok
}

// write stores the codes and bounds of a row.
func (c *chunk) write(s *shape, at int, e *coded) {
	halve(c.rows[at*s.rowBytes:(at+1)*s.rowBytes], e.row)
	group, slot := at/groupSlots, at%groupSlots
	for p, plane := range c.planes {
		shape := &c.coding.planes[p]
		line := shape.layout.at(group) + 4*slot
		for i := range shape.coarse {
			binary.LittleEndian.PutUint32(plane[line:], pairs(e.codes, i*planeDims, 2))
			line += blockLineBytes
		}
		for i := range shape.fine {
			from, shift := shape.first+i*planeDims, 2
			if p == 1 || from < c.coding.coarse*planeDims {
				shift = 0
			}
			binary.LittleEndian.PutUint32(plane[line:], pairs(e.codes, from, shift))
			line += blockLineBytes
		}
		shape.layout.bounds(plane, group)[slot] = e.bounds[p]
	}
}

// halve writes a row's code as two halves: the upper four bits of all numbers, then the lower four.
func halve(to, row []uint8) {
	const upper, lower = 0xf0f0f0f0f0f0f0f0, 0x0f0f0f0f0f0f0f0f
	half := len(row) / 2
	for i := 0; i < half; i += 8 {
		at := i/unitBytes*unitNums + i%unitBytes
		a := binary.LittleEndian.Uint64(row[at:])
		b := binary.LittleEndian.Uint64(row[at+unitBytes:])
		binary.LittleEndian.PutUint64(to[i:], a>>4&lower|b&upper)
		binary.LittleEndian.PutUint64(to[half+i:], a&lower|b<<4&upper)
	}
}

// pairs returns the word of one slot in a line: two bits of up to sixteen codes, the first of which
// is code from.
func pairs(codes []uint8, from, shift int) uint32 {
	var last [planeDims]uint8
	line := codes[from:]
	if len(line) < planeDims {
		copy(last[:], line)
		line = last[:]
	}
	const pair = 0x0303030303030303
	low := binary.LittleEndian.Uint64(line) >> shift & pair
	high := binary.LittleEndian.Uint64(line[8:]) >> shift & pair
	// Each half has four codes: those of k = 0 and 1, and of 2 and 3.
	low |= low >> 30
	high |= high >> 30
	return uint32(low) | uint32(high)<<4
}
