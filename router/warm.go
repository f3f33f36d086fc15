package router

import (
	"context"
	"fmt"

	"facet/internal/id"
)

// Warm opens the templates that this node's replica of a shard has and has not
// opened yet, so that the first search after a start, or after this replica became
// the leader, is as quick as any. Galleries that this node's replica of meta does not
// know (yet, or any more) are left out.
func (r *searchRequests) Warm(ctx context.Context, group id.Shard) error {
	m, here := r.groups.Shard(group)
	if !here {
		return nil
	}
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

// CatchUp waits until this node's replica of a shard has applied what its leader had
// committed at the call. The error says that it could not find out, or not soon.
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
