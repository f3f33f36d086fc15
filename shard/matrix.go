package shard

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"

	"facet/shard/scan"
)

// chunkRows is the number of templates that are allocated together. Chunks are
// never copied, so that no stale copy of an erased template is left in memory.
const chunkRows = 1024

// matrix holds the templates of a slice in clear, one a row, in chunks of
// chunkRows. The rows of erased events are zeroed and used again.
//
// rows, free and the length of chunks change only while Shard.mu is held for
// writing; what is in chunks, open, queued, pending and dim change also under opening.
type matrix struct {
	dim    int // 0 until the first template was opened
	chunks [][]float32
	rows   []matrixRow
	// free are rows without an entry.
	free []int
	// pending are the rows that are to be opened, each once; some may be open or
	// empty by now.
	pending []int
}

type matrixRow struct {
	entry  *entry // nil when the row is free
	open   bool   // the template is in its chunk
	queued bool   // the row is in pending
}

// take gives a row to an active entry.
func (m *matrix) take(e *entry) int {
	row := len(m.rows)
	if n := len(m.free); n > 0 {
		row = m.free[n-1]
		m.free = m.free[:n-1]
		m.rows[row].entry = e
	} else {
		m.rows = append(m.rows, matrixRow{entry: e})
		if row%chunkRows == 0 {
			m.chunks = append(m.chunks, nil)
		}
	}
	if !m.rows[row].queued {
		m.rows[row].queued = true
		m.pending = append(m.pending, row)
	}
	return row
}

// next gives a pending row; done takes it off.
func (m *matrix) next() (row int, ok bool) {
	if len(m.pending) == 0 {
		return 0, false
	}
	return m.pending[len(m.pending)-1], true
}

func (m *matrix) done(row int) {
	m.pending = m.pending[:len(m.pending)-1]
	m.rows[row].queued = false
}

// release zeroes a row and frees it.
func (m *matrix) release(row int) {
	if m.rows[row].open {
		clear(m.at(row))
	}
	m.rows[row] = matrixRow{queued: m.rows[row].queued}
	m.free = append(m.free, row)
}

// at gives the template of an open row.
func (m *matrix) at(row int) []float32 {
	i := row % chunkRows * m.dim
	return m.chunks[row/chunkRows][i : i+m.dim : i+m.dim]
}

// fill reads a template of little-endian float32 into a row. The first one of all
// decides the dimension.
func (m *matrix) fill(row int, template []byte) error {
	dim := len(template) / 4
	switch {
	case m.dim == 0:
		m.dim = dim
	case m.dim != dim:
		return fmt.Errorf("template of %d numbers among those of %d", dim, m.dim)
	}
	if m.chunks[row/chunkRows] == nil {
		m.chunks[row/chunkRows] = make([]float32, chunkRows*m.dim)
	}
	for i, to := 0, m.at(row); i < dim; i++ {
		to[i] = math.Float32frombits(binary.LittleEndian.Uint32(template[4*i:]))
	}
	m.rows[row].open = true
	return nil
}

// all gives the active events with their templates, all of which are open.
func (m *matrix) all() iter.Seq[scan.Row] {
	return func(yield func(scan.Row) bool) {
		for row, r := range m.rows {
			if r.entry == nil {
				continue
			}
			if !r.open {
				panic("bug: a scan of a row that is not open")
			}
			if !yield(scan.Row{Subject: r.entry.subject, Event: r.entry.event, Tags: r.entry.tags, Template: m.at(row)}) {
				return
			}
		}
	}
}

// erase zeroes everything.
func (m *matrix) erase() {
	for _, c := range m.chunks {
		clear(c)
	}
}
