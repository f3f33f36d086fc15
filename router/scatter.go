package router

import (
	"context"

	"golang.org/x/sync/errgroup"

	"facet/internal/id"
	"facet/internal/mutant"
)

// scatter asks all shards at once and gives their answers in the shards' order.
// One error is the whole answer's: a part of the result is never given for it.
func scatter[Q, A any](ctx context.Context, r *Router, m method[Q, A], shards []id.Shard, q Q) ([]A, error) {
	queries := make([]Q, len(shards))
	for i := range queries {
		queries[i] = q
	}
	return scatterEach(ctx, r, m, shards, queries)
}

// scatterEach is scatter with a query of its own for each shard.
func scatterEach[Q, A any](ctx context.Context, r *Router, m method[Q, A], shards []id.Shard, queries []Q) ([]A, error) {
	return scatterBy(ctx, len(shards), func(ctx context.Context, i int) (A, error) { return ask(ctx, r, m, shards[i], queries[i]) })
}

// scatterBy gives what each gives for 0 to n-1, all at once.
func scatterBy[A any](ctx context.Context, n int, each func(ctx context.Context, i int) (A, error)) ([]A, error) {
	answers := make([]A, n)
	work, ctx := errgroup.WithContext(ctx)
	for i := range n {
		work.Go(func() error {
			a, err := each(ctx, i)
			answers[i] = a
			if mutant.SkipDeadShard {
				return nil
			}
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	return answers, nil
}
