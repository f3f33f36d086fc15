package record

import (
	"iter"
	"slices"
	"sort"
)

const (
	// blockRows is the most rows of a block, and blockLeast the fewest with which neighbours stay apart.
	blockRows  = 512
	blockLeast = blockRows / 2
)

// Order has rows of a table in the order of their sequences, which is also the order of their
// times. Changes need the caller's lock. A copy may be read without it while the table is pinned.
type Order struct {
	table  *Table
	blocks []*block
	n      int
	// epoch counts the copies. A block of an earlier epoch is shared with a copy.
	epoch uint64
}

// block has rows, one or more.
type block struct {
	rows  []Row // its capacity is blockRows, or less in the only block
	epoch uint64
}

// NewOrder returns an empty order of rows of t.
func NewOrder(t *Table) *Order { return &Order{table: t} }

// Table returns the table of the rows.
func (o *Order) Table() *Table { return o.table }

// Len returns the number of rows. The nil order has none.
func (o *Order) Len() int {
	if o == nil {
		return 0
	}
	return o.n
}

// Bytes returns the memory, in the Go heap.
func (o *Order) Bytes() (n int64) {
	if len(o.blocks) == 1 {
		return 64 + 4*int64(cap(o.blocks[0].rows))
	}
	return int64(len(o.blocks)) * (8 + 64 + 4*blockRows)
}

// Copy returns the order as it is now, nil for nil. It takes time in proportion to the number of rows divided by
// the size of a block.
func (o *Order) Copy() *Order {
	if o == nil {
		return nil
	}
	o.epoch++
	return &Order{table: o.table, blocks: slices.Clone(o.blocks), n: o.n, epoch: o.epoch}
}

// own returns block i, and copies it first if a copy of the order shares it.
func (o *Order) own(i int) *block {
	b := o.blocks[i]
	if b.epoch < o.epoch {
		b = &block{rows: append(make([]Row, 0, blockRows), b.rows...), epoch: o.epoch}
		o.blocks[i] = b
	}
	return b
}

// Append adds a row with a larger sequence than all others.
func (o *Order) Append(row Row) {
	last := len(o.blocks) - 1
	if last < 0 || len(o.blocks[last].rows) == blockRows {
		b := &block{epoch: o.epoch}
		if last >= 0 {
			b.rows = make([]Row, 0, blockRows)
		}
		o.blocks = append(o.blocks, b)
		last++
	}
	b := o.own(last)
	b.rows = append(b.rows, row)
	o.n++
}

// find returns the place of the first row that does not come before some point of the order, which
// before tells: the block and the index in it. Behind the last row it is the place of a next one.
func (o *Order) find(before func(*Record) bool) (i, at int) {
	i = sort.Search(len(o.blocks), func(i int) bool {
		rows := o.blocks[i].rows
		return !before(o.table.At(rows[len(rows)-1]))
	})
	if i < len(o.blocks) {
		rows := o.blocks[i].rows
		at = sort.Search(len(rows), func(at int) bool { return !before(o.table.At(rows[at])) })
	}
	return i, at
}

func from(sequence uint64) func(*Record) bool {
	return func(r *Record) bool { return r.Sequence() < sequence }
}

// Rank returns how many rows come before some point of the order, which before tells.
func (o *Order) Rank(before func(*Record) bool) int {
	i, n := o.find(before)
	for _, b := range o.blocks[:i] {
		n += len(b.rows)
	}
	return n
}

// Get returns the row with a sequence, or 0.
func (o *Order) Get(sequence uint64) Row {
	i, at := o.find(from(sequence))
	if i == len(o.blocks) || o.table.At(o.blocks[i].rows[at]).Sequence() != sequence {
		return 0
	}
	return o.blocks[i].rows[at]
}

// Delete removes the row with a sequence and returns it, or 0 if there is none. The record stays.
func (o *Order) Delete(sequence uint64) Row {
	i, at := o.find(from(sequence))
	if i == len(o.blocks) || o.table.At(o.blocks[i].rows[at]).Sequence() != sequence {
		return 0
	}
	b := o.own(i)
	row := b.rows[at]
	b.rows = slices.Delete(b.rows, at, at+1)
	o.n--
	o.merge(i)
	return row
}

// merge removes block i if it is empty, or joins it with a neighbour if both have few rows.
func (o *Order) merge(i int) {
	if n := len(o.blocks[i].rows); n == 0 {
		o.blocks = slices.Delete(o.blocks, i, i+1)
		return
	} else if n > blockLeast {
		return
	}
	for _, low := range []int{i - 1, i} {
		if low >= 0 && low+1 < len(o.blocks) && len(o.blocks[low].rows)+len(o.blocks[low+1].rows) <= blockRows {
			b := o.own(low)
			b.rows = append(b.rows, o.blocks[low+1].rows...)
			o.blocks = slices.Delete(o.blocks, low+1, low+2)
			return
		}
	}
}

// First returns the record of the first row, or nil.
func (o *Order) First() *Record {
	if o.Len() == 0 {
		return nil
	}
	return o.table.At(o.blocks[0].rows[0])
}

// Last returns the record of the last row, or nil.
func (o *Order) Last() *Record {
	if o.n == 0 {
		return nil
	}
	rows := o.blocks[len(o.blocks)-1].rows
	return o.table.At(rows[len(rows)-1])
}

// All returns the rows with a sequence of least or more, with their records.
func (o *Order) All(least uint64) iter.Seq2[Row, *Record] {
	return func(yield func(Row, *Record) bool) {
		if o.Len() == 0 {
			return
		}
		i, at := 0, 0
		if least > 0 {
			i, at = o.find(from(least))
		}
		o.ascend(i, at, yield)
	}
}

func (o *Order) ascend(i, at int, yield func(Row, *Record) bool) {
	for ; i < len(o.blocks); i++ {
		for _, row := range o.blocks[i].rows[at:] {
			if !yield(row, o.table.At(row)) {
				return
			}
		}
		at = 0
	}
}

// At returns the rows from index n on, with their records.
func (o *Order) At(n int) iter.Seq2[Row, *Record] {
	return func(yield func(Row, *Record) bool) {
		for i, b := range o.blocks {
			if n < len(b.rows) {
				o.ascend(i, n, yield)
				return
			}
			n -= len(b.rows)
		}
	}
}

// Back returns the rows before the last n, the last one first, with their records.
func (o *Order) Back(n int) iter.Seq2[Row, *Record] {
	return func(yield func(Row, *Record) bool) {
		for _, b := range slices.Backward(o.blocks) {
			rows := b.rows
			if n >= len(rows) {
				n -= len(rows)
				continue
			}
			for _, row := range slices.Backward(rows[:len(rows)-n]) {
				if !yield(row, o.table.At(row)) {
					return
				}
			}
			n = 0
		}
	}
}
