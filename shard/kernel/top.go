package kernel

import (
	"bytes"
	"maps"
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

	// floor, if not nil, has the best of the rows that are kept and of those that have been
	// certified: rows whose scores are at least those in floor. With as many of them as the query
	// wants, no worse row gets in.
	floor *top
	// sure reports whether nothing is certified, because rows that were have not been found.
	sure bool
	// shared is the score that rows need because of the searches of other matrices, as far as this
	// search knows. changes counts the changes of rows or, if there is a floor, of its rows.
	shared, changes int
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
	t.keep(similarity, o)
	if t.floor != nil {
		t.floor.keep(similarity, o)
		t.least = max(t.least, t.floor.least)
	}
}

// certify notes that a row, which will be looked at later, is at least as similar as this. Pages of
// subjects by their ids have no use for it.
func (t *top) certify(similarity float32, o *Owner) {
	if t.sure || t.query.After != nil {
		return
	}
	if t.floor == nil {
		t.floor = &top{table: t.table, query: t.query, least: t.least, rows: slices.Clone(t.rows), at: maps.Clone(t.at)}
	}
	t.floor.keep(similarity, o)
	t.least = max(t.least, t.floor.least)
}

// scores appends the scores of the best rows that are kept or certified.
func (t *top) scores(to []int) []int {
	rows := t.rows
	if t.floor != nil {
		rows = t.floor.rows
	}
	for _, r := range rows {
		to = append(to, r.score)
	}
	return to
}

// share raises the limit to the score that the searches of all matrices have together.
func (t *top) share(least int) {
	if least > t.shared {
		t.shared = least
		t.least = max(t.least, t.table.Least(least))
	}
}

// justified reports whether the rows that are kept are as good as those that were certified. If
// not, certified rows have been erased before the search looked at them, and it may have excluded
// others because of them.
func (t *top) justified() bool {
	return t.floor == nil || !t.floor.complete() || t.floor.rows[0].score <= t.shared ||
		t.complete() && t.rows[0].score >= t.floor.rows[0].score
}

// admits reports whether a row of at most the given similarity could be among the best.
func (t *top) admits(most float32, o *Owner) bool {
	s := t.table.Score(most)
	if s < t.query.Threshold || t.query.Passed(o.Subject) {
		return false
	}
	r := ranked{s, o}
	i, again := t.at[o.Subject]
	switch {
	case again:
		return compare(r, t.rows[i]) < 0
	case len(t.rows) < t.query.Limit:
		return true
	}
	return t.compare(r, t.rows[0]) < 0
}

// keep is offer without floor.
func (t *top) keep(similarity float32, o *Owner) {
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
	t.changes++
	if t.complete() {
		t.least = max(t.least, t.table.Least(t.rows[0].score))
	}
}

// full reports whether a further row must be more similar than one that is kept, certified or shared. A page
// of subjects by their ids is never full: any row at or above the threshold may get in.
func (t *top) full() bool {
	return t.complete() || t.shared > 0 || t.floor != nil && t.floor.complete()
}

// complete is full without floor.
func (t *top) complete() bool { return t.query.After == nil && len(t.rows) == t.query.Limit }

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
