package transport

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// budgetBytes is the memory for large frames in each direction. A request holds its
// share from its first byte until it is answered. An answer holds its share while
// it arrives. A frame that finds no room waits in the connection, and its sender
// waits too, until there is room or the time is over. Small frames take no share:
// each connection has at most inlineBytesMax of them.
const budgetBytes = 256 << 20

// budget is memory that connections share.
type budget struct{ room *semaphore.Weighted }

func newBudget(bytes int64) *budget { return &budget{semaphore.NewWeighted(bytes)} }

// share is the part of a budget that one frame takes. The zero share is nothing.
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

// giveBack returns a share to its budget. It may be called again.
func (s *share) giveBack() {
	if s.bytes > 0 {
		s.of.room.Release(s.bytes)
		s.bytes = 0
	}
}
