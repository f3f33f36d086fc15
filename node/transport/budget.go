package transport

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// budgetBytes bounds the memory of large frames in each direction: of requests from
// their first bytes until they are answered, and of answers while they arrive. A frame
// for which there is no room is left in the connection until there is, or until its
// time is over; its sender waits. Small frames are bounded by the connections:
// inlineBytesMax each.
const budgetBytes = 256 << 20

// budget is memory that connections share.
type budget struct{ room *semaphore.Weighted }

func newBudget(bytes int64) *budget { return &budget{semaphore.NewWeighted(bytes)} }

// share is what a frame has of a budget; the zero share is nothing.
type share struct {
	of    *budget
	bytes int64
}

// take waits for room for a frame of n bytes.
func (b *budget) take(ctx context.Context, n int) (share, error) {
	if n <= inlineBytesMax {
		return share{}, nil
	}
	if err := b.room.Acquire(ctx, int64(n)); err != nil {
		return share{}, fmt.Errorf("wait for memory for a frame of %d bytes: %w", n, err)
	}
	return share{b, int64(n)}, nil
}

// giveBack ends a share; it may be called again.
func (s *share) giveBack() {
	if s.bytes > 0 {
		s.of.room.Release(s.bytes)
		s.bytes = 0
	}
}
