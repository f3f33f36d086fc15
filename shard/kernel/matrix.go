package kernel

import (
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
)

const (
	// DimMax is the largest dimension of a template.
	DimMax = 1024

	groupSlots  = 16
	blockGroups = 4
	blockSlots  = blockGroups * groupSlots
	flatChunks  = 5 // of 8, 8, 16, 32 and 64 slots
	flatSlots   = 128
	firstSlots  = 8
	chunkSlots  = 8192 // of the largest chunks
	growSlots   = 2 * chunkSlots
	growChunks  = 12 // that have growSlots together
	planeDims   = 16 // numbers of a slot in a line of a plane
	lineFloats  = lineBytes / 4
)

// ErrTemplate is returned for a template or probe of another dimension than the matrix, or with a
// number that is not finite.
var ErrTemplate = errors.New("kernel: template can't be used")

// Matrix holds the templates of a slice, of one dimension, in slots. Add, Erase
// and Free belong to one writer at a time; searches may run beside them.
type Matrix struct {
	arena  *Arena
	owners Owners
	shape  shape
	coding *coding
	own    Prepared // used by Add

	chunks atomic.Pointer[[]*chunk]
	slots  int   // number of slots ever used
	free   []int // slots that were erased
	source Source
	passes passes // under way
}

// New returns an empty matrix for templates of dim numbers, 1 to DimMax, of owners.
func New(arena *Arena, dim int, owners Owners) (*Matrix, error) {
	if dim < 1 || dim > DimMax {
		return nil, fmt.Errorf("%w: dimension %d", ErrTemplate, dim)
	}
	m := &Matrix{arena: arena, owners: owners, shape: newShape(dim)}
	m.chunks.Store(new([]*chunk))
	m.coding = arena.codings.coding(&m.shape)
	return m, nil
}

// Dim returns the dimension of the templates.
func (m *Matrix) Dim() int { return m.shape.dim }

// Len returns the number of templates.
func (m *Matrix) Len() int { return m.slots - len(m.free) }

// Add stores a template in constant time and returns its slot. Every search that begins after it
// finds the template. Errors wrap ErrTemplate or ErrMemory, and leave the matrix unchanged.
func (m *Matrix) Add(owner uint32, template []float32) (slot int, err error) {
	defer m.own.Clear()
	if err := m.Prepare(&m.own, template); err != nil {
		return 0, err
	}
	return m.AddPrepared(owner, &m.own)
}

// Erase zeroes the vector and codes of a used slot, and frees it.
func (m *Matrix) Erase(slot int) {
	c, at, err := m.chunkOf(slot)
	if err != nil || c.owners[at].Load() == 0 {
		panic("bug: kernel: erase of a free slot")
	}
	bit := uint64(1) << (at % blockSlots)
	c.live[at/blockSlots].And(^bit)
	c.tags.unset(at, m.tags(c.owners[at].Swap(0)))
	clear(c.vector(&m.shape, at))
	c.free++
	if !c.flat {
		c.irregular[at/blockSlots].And(^bit)
		zero := newCoded(&m.shape)
		c.write(&m.shape, at, &zero)
	}
	m.free = append(m.free, slot)
}

func (m *Matrix) tags(owner uint32) []uint32 { return m.owners.Tags(m.owners.Owner(owner)) }

// At returns the template in a used slot; ok is false if it is cold. The caller must not change it,
// nor read it during an Erase of the slot or a Chill.
func (m *Matrix) At(slot int) (template []float32, ok bool) {
	index, at := place(slot)
	v := (*m.chunks.Load())[index].vector(&m.shape, at)
	if v == nil {
		return nil, false
	}
	return v[:m.shape.dim], true
}

// Free empties the matrix and returns its memory, zeroed, to the arena. Running searches may still
// find templates.
func (m *Matrix) Free() {
	chunks := *m.chunks.Swap(new([]*chunk))
	for _, c := range chunks {
		for i := range c.live {
			c.live[i].Store(0)
		}
		for i := range c.owners {
			c.owners[i].Store(0)
		}
	}
	for _, c := range chunks {
		c.release(m.arena)
	}
	m.slots, m.free = 0, nil
}

// place returns the chunk of a slot, and the slot's index in it.
func place(slot int) (index, at int) {
	switch {
	case slot < firstSlots:
		return 0, slot
	case slot < growSlots:
		n := bits.Len(uint(slot))
		return n - 3, slot - 1<<(n-1)
	}
	return growChunks + (slot-growSlots)/chunkSlots, (slot - growSlots) % chunkSlots
}

// chunkOf returns the chunk of a slot, and makes it for the next unused slot.
func (m *Matrix) chunkOf(slot int) (c *chunk, at int, err error) {
	index, at := place(slot)
	chunks := *m.chunks.Load()
	if index < len(chunks) {
		return chunks[index], at, nil
	}
	c = m.shape.newChunk(index, m.coding)
	if err = c.alloc(m.arena, &m.shape); err != nil {
		return nil, 0, err
	}
	m.append(c)
	return c, at, nil
}

func (m *Matrix) append(c *chunk) {
	// Readers of the old list don't look beyond its length.
	chunks := append(*m.chunks.Load(), c)
	m.chunks.Store(&chunks)
}

// shape has the sizes that follow from the dimension.
type shape struct {
	dim      int
	lines    int // of sixteen numbers
	rowBytes int // of a row's code
	vecNums  int // of a row
}

func newShape(dim int) shape {
	return shape{
		dim:      dim,
		lines:    (dim + planeDims - 1) / planeDims,
		rowBytes: (dim + lineBytes - 1) / lineBytes * lineBytes,
		vecNums:  (dim + lineFloats - 1) / lineFloats * lineFloats,
	}
}

func (s *shape) check(v []float32) error {
	if len(v) != s.dim {
		return fmt.Errorf("%w: %d numbers, want %d", ErrTemplate, len(v), s.dim)
	}
	for i, x := range v {
		if x-x != 0 {
			return fmt.Errorf("%w: number %d is %v", ErrTemplate, i, x)
		}
	}
	return nil
}

// Bytes returns the memory of the matrix: its chunks without cold rows, and what points to them in
// the Go heap.
func (m *Matrix) Bytes() (n int64) {
	for _, c := range *m.chunks.Load() {
		if exact := c.exact.Load(); exact != nil {
			n += int64(len(*exact))
		}
		n += int64(len(c.planes[0])+len(c.planes[1])+len(c.rows)) + int64(len(c.live)+len(c.irregular))*8 + int64(len(c.owners))*4 + c.tags.bytes()
	}
	return n + int64(cap(m.free))*8
}

// FreeBytes returns the part of Bytes that erased templates left for the next ones.
func (m *Matrix) FreeBytes() (n int64) {
	s := &m.shape
	perBlock := m.coding.planes[0].layout.blockBytes + m.coding.planes[1].layout.blockBytes
	for _, c := range *m.chunks.Load() {
		bytes := perBlock/blockSlots + s.rowBytes
		if c.exact.Load() != nil {
			bytes += 4 * s.vecNums
		}
		n += int64(c.free) * int64(bytes)
	}
	return n
}

// BytesPerTemplate returns the bytes of a template in a full warm chunk.
func (m *Matrix) BytesPerTemplate() float64 {
	c := m.shape.newChunk(growChunks, m.coding)
	return float64(c.planeBytes(0)+c.planeBytes(1)+c.rowBytes(&m.shape)+c.exactBytes(&m.shape)) / float64(c.slots)
}

// ScanBytes returns the bytes of a template that every search of a large gallery reads: those of
// the first plane.
func (m *Matrix) ScanBytes() float64 {
	c := m.shape.newChunk(growChunks, m.coding)
	return float64(c.planeBytes(0)) / float64(c.slots)
}

// newChunk returns a chunk without memory.
func (s *shape) newChunk(index int, coding *coding) *chunk {
	slots, first := chunkSlots, growSlots+(index-growChunks)*chunkSlots
	if index < growChunks {
		slots = firstSlots << max(index-1, 0)
		first = slots * min(index, 1)
	}
	blocks := (slots + blockSlots - 1) / blockSlots
	c := &chunk{
		slots:  slots,
		first:  first,
		flat:   index < flatChunks,
		coding: coding,
		live:   make([]atomic.Uint64, blocks),
		owners: make([]atomic.Uint32, slots),
	}
	if !c.flat {
		c.irregular = make([]atomic.Uint64, blocks)
	}
	return c
}
