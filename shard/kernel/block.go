package kernel

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
)

const (
	// BlockRows is the number of rows in a block of codes.
	BlockRows = blockSlots
	// codesVersion changes whenever a template gets other codes than before, or a block another
	// layout.
	codesVersion = 1
)

// CodingID names the coding of a matrix. Matrices with the same one have the same codes of a
// template, bit for bit, on every processor.
type CodingID [sha256.Size]byte

// CodingID returns the name of the coding.
func (m *Matrix) CodingID() CodingID { return m.coding.id() }

func (c *coding) id() CodingID {
	b := []byte("facet codes ")
	for _, n := range []int{codesVersion, c.dim, c.coarse, c.fine, c.parts[0], c.parts[1], rotateSeed, rotateRounds, rowMax, rowZero} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	// The 1 and the 0 stand for parts of a coding that no longer exist. They keep the name, because with
	// another one a node would encode all its templates again.
	for _, x := range []float64{c.step, c.grain, 1} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	for p, plane := range c.planes {
		for _, n := range []int{plane.coarse, plane.fine, 0, plane.first, plane.layout.boundsAt, plane.layout.blockBytes} {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
		for _, at := range []axis{c.scales[p].a, c.scales[p].t} {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(at.from))
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(at.unit))
		}
	}
	return sha256.Sum256(b)
}

// block is a chunk of one block, without exact rows, in the bytes of a caller:
//
//	first plane | second plane | rows
func (m *Matrix) block(b []byte) *chunk {
	c := &chunk{slots: blockSlots, coding: m.coding}
	for p := range c.planes {
		n := c.planeBytes(p)
		c.planes[p], b = b[:n:n], b[n:]
	}
	c.rows = b[:c.rowBytes(&m.shape)]
	return c
}

// BlockBytes returns the length of a block of codes.
func (m *Matrix) BlockBytes() int {
	c := chunk{slots: blockSlots, coding: m.coding}
	return c.planeBytes(0) + c.planeBytes(1) + c.rowBytes(&m.shape)
}

// CopyCodes copies the codes of the template in a used slot into row at of a block. It reports false
// if the row is cut off from its codes: it has no bounds. It belongs to the writer.
func (m *Matrix) CopyCodes(block []byte, at, slot int) bool {
	index, from := place(slot)
	c, to, s := (*m.chunks.Load())[index], m.block(block), &m.shape
	if c.flat {
		defer m.own.Clear()
		if err := m.Prepare(&m.own, c.vector(s, from)[:s.dim]); err != nil || !m.own.enc.bounded {
			return false
		}
		to.write(s, at, &m.own.enc.coded)
		return true
	}
	if c.isIrregular(from) {
		return false
	}
	copy(to.rows[at*s.rowBytes:][:s.rowBytes], c.rows[from*s.rowBytes:])
	for p := range c.planes {
		plane := &m.coding.planes[p]
		out, in := plane.layout.at(at/groupSlots)+4*(at%groupSlots), plane.layout.at(from/groupSlots)+4*(from%groupSlots)
		for range plane.layout.boundsAt / blockLineBytes {
			copy(to.planes[p][out:out+4], c.planes[p][in:])
			out, in = out+blockLineBytes, in+blockLineBytes
		}
		plane.layout.bounds(to.planes[p], at/groupSlots)[at%groupSlots] = plane.layout.bounds(c.planes[p], from/groupSlots)[from%groupSlots]
	}
	return true
}

// AddBlock adds BlockRows templates by their codes, which CopyCodes made in a matrix of the same
// coding. Their exact rows are cold. It returns the slot of the first, and the others follow. A row
// with the owner 0 is left out, and its slot free. It belongs to the writer and needs a source. Errors
// wrap ErrTemplate or ErrMemory, and no template is added then.
func (m *Matrix) AddBlock(owners []uint32, block []byte) (slot int, err error) {
	if m.source == nil || len(owners) != blockSlots || len(block) != m.BlockBytes() {
		return 0, fmt.Errorf("%w: %d owners and %d bytes are no block, or there is no source", ErrTemplate, len(owners), len(block))
	}
	for m.slots < flatSlots || m.slots%blockSlots != 0 {
		c, _, err := m.chunkOf(m.slots)
		if err != nil {
			return 0, err
		}
		m.leaveFree(c)
	}
	c, at, err := m.coldChunkOf(m.slots)
	if err != nil {
		return 0, err
	}
	slot = m.slots
	m.fill(c, at, owners, m.block(block))
	return slot, nil
}

// leaveFree makes the next unused slot a free one.
func (m *Matrix) leaveFree(c *chunk) {
	c.free++
	m.free = append(m.free, m.slots)
	m.slots++
}

// coldChunkOf returns the chunk of the next unused slot, which is cold when it returns.
func (m *Matrix) coldChunkOf(slot int) (c *chunk, at int, err error) {
	index, at := place(slot)
	if chunks := *m.chunks.Load(); index == len(chunks) {
		c = m.shape.newChunk(index, m.coding)
		if err := c.allocCodes(m.arena, &m.shape); err != nil {
			return nil, 0, err
		}
		m.append(c)
		return c, at, nil
	}
	c = (*m.chunks.Load())[index]
	if c.exact.Load() != nil {
		if !c.chills() {
			return nil, 0, fmt.Errorf("%w: too many rows without bounds are in the chunk", ErrTemplate)
		}
		m.chill(c)
	}
	return c, at, nil
}

// fill copies a block into the next unused slots, from slot at of the chunk on.
func (m *Matrix) fill(c *chunk, at int, owners []uint32, from *chunk) {
	s, live := &m.shape, uint64(0)
	copy(c.rows[at*s.rowBytes:], from.rows)
	for p := range c.planes {
		copy(c.planes[p][m.coding.planes[p].layout.at(at/groupSlots):], from.planes[p])
	}
	for i, owner := range owners {
		if owner == 0 {
			m.leaveFree(c)
			zero := newCoded(s)
			c.write(s, at+i, &zero)
			continue
		}
		m.slots++
		live |= 1 << i
		c.tags.set(at+i, len(c.live), m.tags(owner))
		c.owners[at+i].Store(owner)
	}
	c.live[at/blockSlots].Store(live)
}
