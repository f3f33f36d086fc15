package shard

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/shard/kernel"
	"facet/shard/record"
	"facet/shard/seal"
	"facet/shard/segment"
)

// errClosedTemplate is returned when a mean needs a template that is not open yet.
var errClosedTemplate = errors.New("shard: a template is not open")

// means are the subjects' own templates in a slice: the unit mean of the events' templates, for each
// subject with two or more events. They are derived from opened templates, lie in memory only, and
// are no part of the state.
//
//	a write:  leave → the events change → enter: a new row waits
//	a search: opens the events, then derives the rows that wait
//
// A row is an entry without event and sequence. Its revision is the number of the subject's events.
type means struct {
	// entries has the row of each subject that has one, and events the events of the slice. Shard.mu
	// guards both.
	entries, events members
	// rows has the templates by the kind of mean.
	rows [score.Kinds]templates

	// mu guards sources and patterns. It is taken before the mu of rows.
	mu sync.Mutex
	// sources has the events of each row that is not derived yet, in order of registration.
	sources  map[record.Row][]record.Row
	patterns patterns
}

// kindOf returns the rows to which a row belongs.
func (m *means) kindOf(row member) *templates { return &m.rows[score.Kind(int(row.Revision))] }

// leave removes the row of a subject whose events are about to change, and zeroes it. m may be nil.
func (m *means) leave(subject id.Subject) {
	if m == nil {
		return
	}
	row := m.entries.first(subject)
	if row.none() {
		return
	}
	m.entries.DeleteFirst(subject)
	m.kindOf(row).leave(row.row)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sources, row.row)
	m.patterns.release(m.entries.tags(row))
	m.entries.Remove(row.row)
}

// enter adds a row for a subject whose events have changed, if it has two or more. first is the
// first of them, or nil. m may be nil.
func (m *means) enter(first member) {
	if m == nil || first.none() {
		return
	}
	m.leave(first.Subject)
	if first.Next == 0 {
		return
	}
	var events []record.Row
	var tags [][]uint32
	for e := range m.events.from(first) {
		events, tags = append(events, e.row), append(tags, m.events.tags(e))
	}
	m.mu.Lock()
	row := m.entries.at(m.entries.Add(&record.Fields{
		Subject: first.Subject, Revision: uint32(len(events)), Tags: m.patterns.take(tags),
	}))
	m.sources[row.row] = events
	m.mu.Unlock()
	m.entries.SetFirst(row.row)
	m.kindOf(row).enter(row.row)
}

// drop zeroes all rows and frees their memory. m may be nil.
func (m *means) drop() {
	if m == nil {
		return
	}
	for i := range m.rows {
		m.rows[i].drop()
	}
	m.entries.Close()
}

// bytes returns the memory of the matrices. m may be nil.
func (m *means) bytes() (n int64) {
	if m == nil {
		return 0
	}
	for i := range m.rows {
		n += m.rows[i].bytes()
	}
	return n
}

// patternsBytes returns the Go heap of the patterns.
func (m *means) patternsBytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.patterns.bytes
}

// waiting returns the number of rows that are to be derived. m may be nil.
func (m *means) waiting() (n int) {
	if m == nil {
		return 0
	}
	for i := range m.rows {
		n += m.rows[i].waitingNow()
	}
	return n
}

// meansOf returns means of all subjects of a slice, which wait. Shard.mu is held.
func meansOf(arena *kernel.Arena, sl *slice) *means {
	m := &means{entries: members{record.NewTable(arena)}, events: sl.members, sources: make(map[record.Row][]record.Row)}
	for i := range m.rows {
		m.rows[i].entries = m.entries
	}
	for first := range sl.Firsts {
		m.enter(sl.at(first))
	}
	return m
}

// Average gives the slices means that want names, and takes them from the others. It costs little
// if nothing changes.
func (s *Shard) Average(want func(id.Gallery) bool) {
	for _, g := range s.averages(want) {
		s.setAverage(g, want(g))
	}
}

// averages returns the galleries for which want differs from what they have.
func (s *Shard) averages(want func(id.Gallery) bool) (list []id.Gallery) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for g, sl := range s.state.slices {
		if want(g) != (sl.means.Load() != nil) {
			list = append(list, g)
		}
	}
	return list
}

func (s *Shard) setAverage(g id.Gallery, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl := s.state.slices[g]
	if sl == nil || s.closed || on == (sl.means.Load() != nil) {
		return
	}
	var m *means
	if on {
		m = meansOf(s.arena, sl)
	}
	sl.means.Swap(m).drop()
	sl.changes.Add(1)
}

// averaged returns the means of a slice and makes them if there are none.
func (s *Shard) averaged(sl *slice) *means {
	if m := sl.means.Load(); m != nil {
		return m
	}
	s.setAverage(sl.gallery, true)
	return sl.means.Load()
}

// derive derives every row of m that waits at the time of the call, and opens the events for it. Its
// errors are those of open.
func (c *comparator) derive(ctx context.Context, sl *slice, m *means, key *seal.Key) error {
	unpin := m.entries.Pin()
	if unpin == nil {
		return nil // the slice has lost them
	}
	defer unpin()
	for kind := range m.rows {
		rows := &m.rows[kind]
		err := together(ctx, rows.waitingNow(), func(ctx context.Context) error { return c.deriveSome(ctx, sl, m, kind, key) })
		if err != nil {
			return err
		}
	}
	return nil
}

// deriveSome derives rows of one kind on one goroutine. Several may run at once.
func (c *comparator) deriveSome(ctx context.Context, sl *slice, m *means, kind int, key *seal.Key) error {
	rows := &m.rows[kind]
	var faces []kernel.Prepared
	for {
		mine, others := rows.take()
		if mine == nil {
			again, err := await(ctx, others)
			if err != nil || !again {
				return err
			}
			continue
		}
		if faces == nil {
			faces = make([]kernel.Prepared, openBatch)
		}
		matrix, n, err := c.prepareMeans(sl, m, kind, mine.rows, faces)
		err = rows.settle(mine, matrix, faces[:n], err)
		for i := range faces[:n] {
			faces[i].Clear()
		}
		m.derived(rows, mine.rows)
		if errors.Is(err, errClosedTemplate) {
			err = c.open(ctx, sl, key)
		}
		if err == nil {
			err = c.going(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// derived forgets the events of those rows that are in the matrix.
func (m *means) derived(of *templates, rows []record.Row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of.mu.Lock()
	defer of.mu.Unlock()
	for _, row := range rows {
		if m.entries.At(row).Place >= 0 {
			delete(m.sources, row)
		}
	}
}

// prepareMeans encodes the means of rows for their matrix. It stops at the first that it can't
// derive.
func (c *comparator) prepareMeans(sl *slice, m *means, kind int, rows []record.Row, faces []kernel.Prepared) (matrix *kernel.Matrix, n int, err error) {
	var mean score.Mean
	defer mean.Clear()
	u := unsealer{store: &c.sealed, key: sl.source.key.Load()}
	defer u.clear()
	set := c.sealed.current()
	defer set.Release()
	for _, row := range rows {
		m.mu.Lock()
		events := m.sources[row]
		m.mu.Unlock()
		mean.Clear()
		if len(events) == 0 { // the row is gone
			return matrix, n, fmt.Errorf("%w, of subject %s", errClosedTemplate, m.entries.At(row).Subject)
		}
		if err := c.sum(sl, &u, set, &mean, events); err != nil {
			return matrix, n, fmt.Errorf("%w, of subject %s", err, m.entries.At(row).Subject)
		}
		unit := mean.Unit()
		if matrix == nil || matrix.Dim() != len(unit) {
			matrix, err = m.rows[kind].matrixOf(c, c.table.OfMean(kind), len(unit))
		}
		if err == nil {
			err = matrix.Prepare(&faces[n], unit)
		}
		clear(unit)
		if err != nil {
			return matrix, n, fmt.Errorf("derive the template of subject %s: %w", m.entries.At(row).Subject, err)
		}
		n++
	}
	return matrix, n, nil
}

// sum adds the templates of events to mean, and reads those whose exact rows are not in memory. It
// returns errClosedTemplate if one of them is not open.
func (c *comparator) sum(sl *slice, u *unsealer, set *segment.Set, mean *score.Mean, events []record.Row) error {
	for _, row := range events {
		added, open := sl.templates.addTo(mean, row)
		switch {
		case added:
			continue
		case !open:
			return errClosedTemplate
		}
		template, err := u.openOne(set, sl.ref(sl.At(row)), sl.At(row))
		if errors.Is(err, segment.ErrMissing) {
			return errClosedTemplate // the event is gone, and so is the row
		}
		if err != nil {
			return err
		}
		mean.Add(template)
	}
	return nil
}

// addTo adds the template of an event to mean if its exact row is in memory. open reports whether the
// template is open.
func (t *templates) addTo(mean *score.Mean, row record.Row) (added, open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.entries.At(row).Place
	if at < 0 || t.dropped { // the places of dropped templates stay
		return false, false
	}
	template, added := t.matrix.At(int(at))
	if added {
		mean.Add(template)
	}
	return added, true
}

// subjectScore returns the score of the probe with a subject's own template, whether or not it is
// derived. A subject with one event has none: ok is false. Shard.mu is held for reading.
func (c *comparator) subjectScore(sl *slice, key *seal.Key, first member, probe engine.Template) (points int, ok bool, err error) {
	if first.none() || first.Next == 0 {
		return 0, false, nil
	}
	if m := sl.means.Load(); m != nil {
		if row := m.entries.first(first.Subject); !row.none() {
			similarity, open, err := m.kindOf(row).compare(row.entry, probe)
			if open || err != nil {
				return c.table.OfMean(score.Kind(int(row.Revision))).Score(similarity), true, err
			}
		}
	}
	var mean score.Mean
	defer mean.Clear()
	u := newUnsealer(&c.sealed, key)
	defer u.free()
	set := c.sealed.current()
	defer set.Release()
	for e := range sl.from(first) {
		if added, _ := sl.templates.addTo(&mean, e.row); added {
			continue
		}
		template, err := u.openOne(set, sl.ref(e.entry), e.entry)
		if err == nil {
			err = alike(len(probe), len(template))
		}
		if err != nil {
			return 0, false, err
		}
		mean.Add(template)
	}
	unit := mean.Unit()
	defer clear(unit)
	if err := alike(len(probe), len(unit)); err != nil {
		return 0, false, err
	}
	return c.table.OfMean(score.Kind(mean.Len())).Score(score.Dot(probe, unit)), true, nil
}
