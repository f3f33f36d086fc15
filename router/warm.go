package router

import (
	"context"
	"fmt"

	"facet/internal/id"
)

// Warm opens the templates of this node's replica of a shard that are not open yet.
// The first search after a start, or after a change of leader, is then as quick as
// any. Warm also derives the templates of subjects where their galleries want them, and drops them
// where they don't any more. It skips galleries that this node's replica of meta does not know.
func (r *searchRequests) Warm(ctx context.Context, group id.Shard) error {
	m, here := r.groups.Shard(group)
	if !here {
		return nil
	}
	m.Shard().Average(r.groups.Meta().SubjectTemplates)
	for _, cold := range m.Shard().Cold() {
		g, known := r.groups.Meta().Gallery(cold.Gallery)
		if !known || g.Generation != cold.Generation {
			continue
		}
		key, err := r.dataKey(g)
		if err != nil {
			return fmt.Errorf("warm gallery %s: %w", cold.Gallery, err)
		}
		if err := m.Shard().Warm(ctx, cold.Gallery, cold.Generation, key); err != nil {
			return fmt.Errorf("warm gallery %s: %w", cold.Gallery, err)
		}
	}
	return nil
}

// CatchUp waits until this node's replica of a shard has applied everything that
// its leader had committed at the call, or until ctx ends.
func (r *cluster) CatchUp(ctx context.Context, group id.Shard) error {
	if g, here := r.groups.Group(group); here && g.IsLeader() {
		index, err := g.ReadIndex(ctx)
		if err == nil {
			err = g.WaitApplied(ctx, index)
		}
		return err
	}
	return r.catchUp(ctx, group)
}
