package scan

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Floor is a score that the searches of one query over several slices share. It rises while they find
// rows, or rows that are at least as similar as they say. None of them need return a row below it:
// there seem to be Limit better ones.
//
// Rows may have been erased since, and a search may have run twice. So whoever joins the hits has to
// look whether Limit of them reach Least, and else to search again without a Floor. It is safe for
// concurrent use.
type Floor struct {
	limit int
	least atomic.Int64

	mu    sync.Mutex // guards known and above
	known map[any][]int
	above []int // of known, the scores above least
}

// NewFloor returns the floor of queries with this limit.
func NewFloor(limit int) *Floor { return &Floor{limit: limit, known: make(map[any][]int)} }

// Least returns the score that a row needs to get in. It never falls.
func (f *Floor) Least() int { return int(f.least.Load()) }

// Raise notes the scores of rows of one slice, or scores below these, in any order. The rows count once
// for each: they are the hits that the query would have in that slice alone. A later call for the same
// slice counts instead of the earlier one.
func (f *Floor) Raise(slice any, scores []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[slice] = append(f.known[slice][:0], scores...)
	least := f.Least()
	f.above = f.above[:0]
	for _, of := range f.known {
		for _, score := range of {
			if score > least {
				f.above = append(f.above, score)
			}
		}
	}
	if len(f.above) >= f.limit {
		slices.Sort(f.above)
		f.least.Store(int64(f.above[len(f.above)-f.limit]))
	}
}
