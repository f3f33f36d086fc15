package shard

import (
	"fmt"
	"iter"
	"slices"
	"sync"

	"facet/engine/score"
	"facet/shard/kernel"
	"facet/shard/record"
	"facet/shard/scan"
)

const (
	// openBatch is how many templates are opened at a time. A write may wait while they are added
	// to the matrix, about 1 µs each.
	openBatch = 64
	// addedMax is how many templates may be added during a scan. With more, the search scans again.
	addedMax = 2048
)

// The place of an active entry says where its template is: in a slot of the matrix, in waiting, being
// opened, or nowhere any more. The mu of templates guards it.
const (
	gone        int32 = -1
	beingOpened int32 = -2
	// firstWaiting − i is index i of waiting.
	firstWaiting int32 = -3
)

// templates are the decrypted faces of a slice, each in a slot of a matrix. Opening the first one
// makes the matrix.
//
//	enter → waiting → being opened → in the matrix → leave: zeroed, gone
//
// Every active entry is at one of these places, and waits again if it can't be opened. leave may
// come at any time; the goroutine that opens the face finds out afterwards.
type templates struct {
	// entries has the rows. Those that a search or an opening looks at are pinned.
	entries members
	// source has the exact rows that are not in memory. Without one, all are.
	source *source

	// mu guards the fields below. It is taken after Shard.mu, and never held while a face is decrypted or
	// rows are scanned.
	mu       sync.Mutex
	matrix   *kernel.Matrix
	queue    *kernel.Queue // of the searches of matrix
	waiting  []record.Row
	openings []*opening
	dropped  bool
	// added has the entries added to the matrix while searches were under way. addedFirst is the
	// number of the first of them. scans counts the searches under way.
	added      []record.Row
	addedFirst uint64
	scans      int
	stored     stored
}

// opening is a batch of entries that one goroutine opens.
type opening struct {
	rows   []record.Row
	done   chan struct{}
	failed bool // set before done is closed
}

func (t *templates) enter(row record.Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wait(row)
}

// enterAll enters n rows.
func (t *templates) enterAll(rows iter.Seq[record.Row], n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = slices.Grow(t.waiting, n)
	for row := range rows {
		t.wait(row)
	}
}

func (t *templates) wait(row record.Row) {
	t.entries.At(row).Place = firstWaiting - int32(len(t.waiting))
	t.waiting = append(t.waiting, row)
}

// waitingNow returns the number of entries that wait.
func (t *templates) waitingNow() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting)
}

// leave zeroes the template of an entry that goes.
func (t *templates) leave(row record.Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries.At(row)
	switch {
	case t.dropped: // drop has zeroed it
	case e.Place >= 0:
		t.matrix.Erase(int(e.Place))
	case e.Place <= firstWaiting:
		t.unwait(row)
	}
	e.Place = gone
}

// unwait takes an entry that waits out of waiting.
func (t *templates) unwait(row record.Row) {
	i, last := firstWaiting-t.entries.At(row).Place, len(t.waiting)-1
	t.waiting[i] = t.waiting[last]
	t.entries.At(t.waiting[i]).Place = firstWaiting - i
	t.waiting = t.waiting[:last]
	if last == 0 {
		t.waiting = nil // after a start it is as long as the slice
	}
}

// drop zeroes all templates and frees their memory.
func (t *templates) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropped, t.waiting, t.added = true, nil, nil
	if t.matrix != nil {
		t.matrix.Free()
	}
	t.matrix, t.queue = nil, nil
	t.stored.pieces = nil
	t.stored.release()
}

// take takes a batch of waiting entries. Its caller calls settle. If no entry waits, take returns
// the openings of other goroutines.
func (t *templates) take() (mine *opening, others []*opening) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.waiting), openBatch)
	if n == 0 {
		return nil, append(others, t.openings...)
	}
	rest := len(t.waiting) - n
	mine = &opening{rows: slices.Clone(t.waiting[rest:]), done: make(chan struct{})}
	t.waiting = t.waiting[:rest]
	if rest == 0 {
		t.waiting = nil // after a start it is as long as the slice
	}
	for _, row := range mine.rows {
		t.entries.At(row).Place = beingOpened
	}
	t.openings = append(t.openings, mine)
	return mine, nil
}

// matrixOf returns the matrix for templates of dim numbers, whose scores come from table. The first
// template decides the dimension, as long as there is any.
func (t *templates) matrixOf(c *comparator, table *score.Table, dim int) (*kernel.Matrix, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.matrix != nil && t.matrix.Dim() != dim && t.matrix.Len() == 0 {
		t.matrix.Free()
		t.matrix = nil
	}
	if t.matrix == nil {
		m, err := kernel.New(c.arena, dim, t.entries)
		if err != nil {
			return nil, err
		}
		if t.source != nil {
			t.source.store = &c.sealed
			m.Attach(t.source)
		}
		if t.dropped { // nobody will use it
			return m, nil
		}
		t.matrix, t.queue = m, kernel.NewQueue(m, table, c.passes)
	}
	if d := t.matrix.Dim(); d != dim {
		return nil, fmt.Errorf("template of %d numbers among those of %d", dim, d)
	}
	return t.matrix, nil
}

// settle ends an opening. It adds the first len(faces) entries to m and returns the others to
// waiting. err is the error of the entry after these. settle drops err if that entry is gone by
// now.
func (t *templates) settle(o *opening, m *kernel.Matrix, faces []kernel.Prepared, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer close(o.done)
	t.openings = slices.DeleteFunc(t.openings, func(at *opening) bool { return at == o })
	if t.dropped {
		return nil
	}
	if n := len(faces); err != nil && t.entries.At(o.rows[n]).Place == gone {
		err = nil
	}
	for i, row := range o.rows {
		if t.entries.At(row).Place == gone {
			continue
		}
		if i >= len(faces) || t.put(m, row, &faces[i], &err) != nil {
			t.wait(row)
		}
	}
	o.failed = err != nil
	return err
}

// put adds an opened template to the matrix. It also stores its error in *first if *first is nil.
func (t *templates) put(m *kernel.Matrix, row record.Row, face *kernel.Prepared, first *error) error {
	var slot int
	err := fmt.Errorf("the templates are of another dimension by now")
	if m == t.matrix {
		slot, err = m.AddPrepared(row, face)
	}
	if err != nil {
		err = fmt.Errorf("keep the template of event %s: %w", t.entries.At(row).Event, err)
		if *first == nil {
			*first = err
		}
		return err
	}
	t.came(row, slot)
	return nil
}

// came notes that an entry is in the matrix.
func (t *templates) came(row record.Row, slot int) {
	t.entries.At(row).Place = int32(slot)
	if t.scans > 0 {
		if len(t.added) == addedMax {
			n := copy(t.added, t.added[addedMax/2:])
			t.added = t.added[:n]
			t.addedFirst += addedMax - uint64(n)
		}
		t.added = append(t.added, row)
	}
}

// scanning is a search under way.
type scanning struct {
	queue *kernel.Queue
	// from is the number of the first entry that may have been added too late for the search.
	from  uint64
	begun bool
}

// begin notes the start of a search. The caller calls end. Without a matrix the queue is nil.
func (t *templates) begin() scanning {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scans++
	return scanning{t.queue, t.addedFirst + uint64(len(t.added)), true}
}

func (t *templates) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.scans--; t.scans == 0 {
		t.addedFirst += uint64(len(t.added))
		t.added = nil
	}
}

// since compares the probe with the entries that were added since a search began and are still
// there. Entries that q excludes have a score of −1. cold are those of the others whose exact rows are
// not in memory. ok is false if too many were added.
func (t *templates) since(from uint64, table *score.Table, q *Query) (hits []Hit, cold []member, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if from < t.addedFirst || t.dropped {
		return nil, nil, false
	}
	if t.matrix == nil { // nothing was ever added
		return nil, nil, true
	}
	if len(q.Probe) != t.matrix.Dim() {
		return nil, nil, false
	}
	for _, row := range t.added[from-t.addedFirst:] {
		e := t.entries.at(row)
		if e.Place < 0 {
			continue
		}
		h := Hit{Subject: e.Subject, Event: e.Event, Score: -1}
		tagged := scan.Tagged(t.entries.tags(e), q.Tags)
		if q.Coverage != nil {
			q.Coverage.Put(int(e.Place), tagged)
		}
		if tagged && !q.Passed(e.Subject) {
			template, ok := t.matrix.At(int(e.Place))
			if !ok {
				cold = append(cold, e)
				continue
			}
			if s := table.Score(score.Dot(q.Probe, template)); s >= q.Threshold {
				h.Score = s
			}
		}
		hits = append(hits, h)
	}
	return hits, cold, true
}

// bytes returns the memory of the matrix, in the Go heap and outside.
func (t *templates) bytes() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.matrix == nil {
		return 0
	}
	return t.matrix.Bytes()
}
