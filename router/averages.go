package router

import (
	"context"
	"time"
)

// waitKnown waits until every node answers by the change of a gallery that is committed: a node trusts
// its replica of meta for trustMax without a new round.
func waitKnown(ctx context.Context) error {
	select {
	case <-time.After(trustMax):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
