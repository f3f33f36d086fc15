package subjects

import (
	"context"
	"time"

	"facet/raftfsm/shardfsm"
)

const (
	// removalRetry is how often a removal looks whether a merge of its subject has ended.
	removalRetry = 500 * time.Millisecond
)

// afterMerges removes a subject or an event by write, as soon as no merge needs it.
func afterMerges(ctx context.Context, write func() (removedAnswer, error)) (removedAnswer, error) {
	for {
		a, err := write()
		if err != nil || a.Status != shardfsm.Merging {
			return a, err
		}
		if err := Pause(ctx, removalRetry); err != nil {
			return a, err
		}
	}
}

func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
