package loop

import (
	"context"
	"time"
)

// Pause waits for d. It returns ctx's error if ctx ends first.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
