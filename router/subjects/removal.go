package subjects

import (
	"context"
	"time"

	"facet/raftfsm/shardfsm"
	"facet/router/cluster"
)

// removalRetry is how often a removal looks whether a merge of its subject has ended.
const removalRetry = 500 * time.Millisecond

// afterMerges removes a subject or an event by write, as soon as no merge needs it.
func afterMerges(ctx context.Context, write func() (RemovedAnswer, error)) (RemovedAnswer, error) {
	for {
		a, err := write()
		if err != nil || a.Status != shardfsm.Merging {
			return a, err
		}
		if err := cluster.Pause(ctx, removalRetry); err != nil {
			return a, err
		}
	}
}
