package requestlog

import (
	"sync/atomic"

	"golang.org/x/time/rate"
)

// A Bound lets through linesPerSecond lines of the log, and linesAtOnce at once.
const (
	linesPerSecond = 5
	linesAtOnce    = 20
)

// Bound bounds the lines of one kind that every request may cause, so that an overloaded node does not fill
// its disk. It is safe for concurrent use.
type Bound struct {
	rate    *rate.Limiter
	omitted atomic.Int64 // lines since the last one
}

// NewBound returns a Bound.
func NewBound() *Bound { return &Bound{rate: rate.NewLimiter(linesPerSecond, linesAtOnce)} }

// Next reports whether a line may be written now. The line ends with the attributes, which say how many
// lines were omitted before it, if any.
func (b *Bound) Next() (attributes []any, ok bool) {
	if !b.rate.Allow() {
		b.omitted.Add(1)
		return nil, false
	}
	if n := b.omitted.Swap(0); n > 0 {
		attributes = []any{"omitted", n}
	}
	return attributes, true
}
