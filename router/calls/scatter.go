package calls

import (
	"context"

	"golang.org/x/sync/errgroup"

	"facet/internal/id"
)

// Scatter carries out m on all shards at once and returns their answers in the
// order of shards. It returns no partial result: one error fails the whole call.
func Scatter[H, Q, A any](ctx context.Context, c *Caller, m Method[H, Q, A], shards []id.Shard, q Q) ([]A, error) {
	queries := make([]Q, len(shards))
	for i := range queries {
		queries[i] = q
	}
	return ScatterEach(ctx, c, m, shards, queries)
}

// ScatterEach does what Scatter does, with a separate query for each shard.
func ScatterEach[H, Q, A any](ctx context.Context, c *Caller, m Method[H, Q, A], shards []id.Shard, queries []Q) ([]A, error) {
	return ScatterBy(ctx, len(shards), func(ctx context.Context, i int) (A, error) { return CallLeader(ctx, c, m, shards[i], queries[i]) })
}

// ScatterBy calls each for 0 to n-1, all at once, and returns the answers. One
// error fails the whole call.
func ScatterBy[A any](ctx context.Context, n int, each func(ctx context.Context, i int) (A, error)) ([]A, error) {
	answers := make([]A, n)
	work, ctx := errgroup.WithContext(ctx)
	for i := range n {
		work.Go(func() error {
			a, err := each(ctx, i)
			answers[i] = a
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	return answers, nil
}
