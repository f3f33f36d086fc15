package kernel

import (
	"bytes"
	"slices"

	"facet/engine/score"
	"facet/internal/id"
	"facet/shard/scan"
)

// top keeps the best rows in a heap whose first is the worst of them. It keeps the same rows as
// scan.TopK, which explains why one hit for each subject stays exact.
type top struct {
	table *score.Table
	query *scan.Query
	least float32 // similarity that a row needs to get in
	rows  []ranked
	at    map[id.Subject]int // nil when subjects may repeat
}

type ranked struct {
	score int
	owner *Owner
}

func newTop(table *score.Table, q *scan.Query) *top {
	t := &top{table: table, query: q, least: table.Least(q.Threshold)}
	if q.OneEach() {
		t.at = make(map[id.Subject]int)
	}
	return t
}

// compare orders as scan.Compare does, best first.
func compare(a, b ranked) int {
	if a.score != b.score {
		return b.score - a.score
	}
	if c := bytes.Compare(a.owner.Subject.UUID[:], b.owner.Subject.UUID[:]); c != 0 {
		return c
	}
	return bytes.Compare(a.owner.Event.UUID[:], b.owner.Event.UUID[:])
}

// compare orders as scan.Query.Compare does.
func (t *top) compare(a, b ranked) int {
	if t.query.After != nil {
		return bytes.Compare(a.owner.Subject.UUID[:], b.owner.Subject.UUID[:])
	}
	return compare(a, b)
}

// offer adds a row of the given similarity if it is among the best.
func (t *top) offer(similarity float32, o *Owner) {
	s := t.table.Score(similarity)
	if s < t.query.Threshold || t.query.Passed(o.Subject) {
		return
	}
	r := ranked{s, o}
	i, again := t.at[o.Subject]
	switch {
	case again:
		if compare(r, t.rows[i]) >= 0 {
			return
		}
		t.rows[i] = r
		t.down(i)
	case len(t.rows) < t.query.Limit:
		t.rows = append(t.rows, r)
		t.note(len(t.rows) - 1)
		t.up(len(t.rows) - 1)
	case t.compare(r, t.rows[0]) < 0:
		if t.at != nil {
			delete(t.at, t.rows[0].owner.Subject)
		}
		t.rows[0] = r
		t.note(0)
		t.down(0)
	default:
		return
	}
	if t.full() {
		t.least = max(t.least, t.table.Least(t.rows[0].score))
	}
}

// full reports whether a further row must be more similar than one that is kept. A page of subjects
// by their ids is never full: any row at or above the threshold may get in.
func (t *top) full() bool { return t.query.After == nil && len(t.rows) == t.query.Limit }

func (t *top) note(i int) {
	if t.at != nil {
		t.at[t.rows[i].owner.Subject] = i
	}
}

func (t *top) swap(i, j int) {
	t.rows[i], t.rows[j] = t.rows[j], t.rows[i]
	t.note(i)
	t.note(j)
}

// up restores the heap after rows[i] became worse than its parent.
func (t *top) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if t.compare(t.rows[i], t.rows[parent]) <= 0 {
			return
		}
		t.swap(i, parent)
		i = parent
	}
}

// down restores the heap after rows[i] became better than one of its children.
func (t *top) down(i int) {
	for {
		worst := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.rows); child++ {
			if t.compare(t.rows[child], t.rows[worst]) > 0 {
				worst = child
			}
		}
		if worst == i {
			return
		}
		t.swap(i, worst)
		i = worst
	}
}

// hits returns the rows best first and empties the heap.
func (t *top) hits() []scan.Hit {
	slices.SortFunc(t.rows, t.compare)
	hits := make([]scan.Hit, len(t.rows))
	for i, r := range t.rows {
		hits[i] = scan.Hit{Subject: r.owner.Subject, Event: r.owner.Event, Score: r.score}
	}
	t.rows = nil
	return hits
}
