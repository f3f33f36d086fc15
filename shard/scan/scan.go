package scan

import (
	"bytes"
	"cmp"
	"container/heap"
	"iter"
	"slices"

	"facet/engine/score"
	"facet/internal/id"
)

// Row is one active event of a slice.
type Row struct {
	Subject id.Subject
	Event   id.Event
	// Tags are the identities of the event's tags.
	Tags []uint32
	// Template has unit norm and the probe's dimension.
	Template []float32
}

// Query asks for the rows that are most similar to a probe.
type Query struct {
	// Probe has unit norm and the slice's dimension.
	Probe []float32
	// Threshold is the lowest score wanted, inclusive, 0 to score.Max.
	Threshold int
	// Limit is the most hits to return, at least 1.
	Limit int
	// Tags, unless empty, admit only rows that have one of them.
	Tags []uint32
	// BySubject makes Limit count subjects, and returns only the best event of each.
	BySubject bool
	// After, unless nil, asks for the first Limit subjects that follow this id in the order of ids,
	// instead of the best ones. It implies BySubject. Pages of such hits miss no subject and repeat
	// none, however scores change between them.
	After *id.Subject
	// Means asks Shard.Search to compare the templates of subjects, too. TopK ignores it.
	Means bool
	// Floor, unless nil, is shared with the searches of other slices. TopK ignores it; a faster search
	// may leave out rows below it.
	Floor *Floor
	// Coverage, unless nil, is filled by Shard.Search. TopK ignores it.
	Coverage *Coverage
}

// OneEach reports whether a subject has at most one hit.
func (q *Query) OneEach() bool { return q.BySubject || q.After != nil }

// Passed reports whether the subject belongs to an earlier page.
func (q *Query) Passed(s id.Subject) bool {
	return q.After != nil && bytes.Compare(s.UUID[:], q.After.UUID[:]) <= 0
}

// Compare returns the order of two hits of q: by subject id for pages of subjects, else that of the
// function Compare.
func (q *Query) Compare(a, b Hit) int {
	if q.After != nil {
		return bytes.Compare(a.Subject.UUID[:], b.Subject.UUID[:])
	}
	return Compare(a, b)
}

// Hit is a row that TopK found.
type Hit struct {
	Subject id.Subject
	Event   id.Event
	// Score is 0 to score.Max.
	Score int
	// SubjectScore is the score of the subject's own template, or 0 if it has none. Only Shard.Search
	// sets it, in the best hit of the subject.
	SubjectScore int `cbor:",omitempty"`
}

// Rank returns the larger of both scores.
func (h Hit) Rank() int { return max(h.Score, h.SubjectScore) }

// Compare orders hits totally, best first: rank descending, then subject id,
// then event id.
func Compare(a, b Hit) int {
	return cmp.Or(
		cmp.Compare(b.Rank(), a.Rank()),
		bytes.Compare(a.Subject.UUID[:], b.Subject.UUID[:]),
		bytes.Compare(a.Event.UUID[:], b.Event.UUID[:]),
	)
}

// TopK returns the best q.Limit hits among rows in the order of q.Compare. The result
// does not depend on the order of the rows, whose events are distinct.
func TopK(rows iter.Seq[Row], table *score.Table, q Query) []Hit {
	least := table.Least(q.Threshold)
	keep := newBest(q)
	for row := range rows {
		if !Tagged(row.Tags, q.Tags) || q.Passed(row.Subject) {
			continue
		}
		similarity := score.Dot(q.Probe, row.Template)
		if similarity < least {
			continue
		}
		if s := table.Score(similarity); s >= q.Threshold { // a NaN is not below least
			keep.offer(Hit{Subject: row.Subject, Event: row.Event, Score: s})
		}
	}
	return keep.sorted()
}

// Tagged reports whether have holds one of want, or want is empty.
func Tagged(have, want []uint32) bool {
	return len(want) == 0 || slices.ContainsFunc(have, func(t uint32) bool { return slices.Contains(want, t) })
}

// best keeps the best hits in a heap whose top is the worst of them.
//
// With one hit a subject it stays exact although it forgets dropped subjects. A dropped subject was
// worse than all kept hits, and the worst kept hit only gets better. So a subject comes back only
// with a hit better than the forgotten one. In the order of ids it never comes back, because the
// last id kept only gets smaller.
type best struct {
	query Query
	hits  []Hit
	// at has the index of each subject's hit; nil when subjects may repeat.
	at map[id.Subject]int
}

func newBest(q Query) *best {
	b := &best{query: q}
	if q.OneEach() {
		b.at = make(map[id.Subject]int)
	}
	return b
}

func (b *best) offer(h Hit) {
	if i, ok := b.at[h.Subject]; ok {
		if Compare(h, b.hits[i]) < 0 {
			b.hits[i] = h
			heap.Fix(b, i)
		}
		return
	}
	switch {
	case len(b.hits) < b.query.Limit:
		heap.Push(b, h)
	case b.query.Compare(h, b.hits[0]) < 0:
		if b.at != nil {
			delete(b.at, b.hits[0].Subject)
			b.at[h.Subject] = 0
		}
		b.hits[0] = h
		heap.Fix(b, 0)
	}
}

func (b *best) sorted() []Hit {
	slices.SortFunc(b.hits, b.query.Compare)
	return b.hits
}

// Len, Less, Swap, Push and Pop implement heap.Interface; Less puts the worst on top.
func (b *best) Len() int           { return len(b.hits) }
func (b *best) Less(i, j int) bool { return b.query.Compare(b.hits[i], b.hits[j]) > 0 }
func (b *best) Swap(i, j int) {
	b.hits[i], b.hits[j] = b.hits[j], b.hits[i]
	if b.at != nil {
		b.at[b.hits[i].Subject], b.at[b.hits[j].Subject] = i, j
	}
}

func (b *best) Push(x any) {
	h := x.(Hit) //nolint:forcetypeassert // heap.Push is called above only
	b.hits = append(b.hits, h)
	if b.at != nil {
		b.at[h.Subject] = len(b.hits) - 1
	}
}

func (b *best) Pop() any { panic("bug: nothing is popped") }
