package searches

import (
	"context"
	"fmt"

	"facet/internal/id"
)

// Warm opens the templates of this node's replica of a shard that are not open yet.
// The first search after a start, or after a change of leader, is then as quick as
// any. Warm also derives the templates of subjects where their galleries want them, and drops them
// where they don't any more. It skips galleries that this node's replica of meta does not know.
func (r *SearchRequests) Warm(ctx context.Context, group id.Shard) error {
	m, here := r.cluster.Groups.Shard(group)
	if !here {
		return nil
	}
	m.Shard().Average(r.cluster.Groups.Meta().SubjectTemplates)
	for _, cold := range m.Shard().Cold() {
		g, known := r.cluster.Groups.Meta().Gallery(cold.Gallery)
		if !known || g.Generation != cold.Generation {
			continue
		}
		key, err := r.cluster.DataKey(g)
		if err != nil {
			return fmt.Errorf("warm gallery %s: %w", cold.Gallery, err)
		}
		if err := m.Shard().Warm(ctx, cold.Gallery, cold.Generation, key); err != nil {
			return fmt.Errorf("warm gallery %s: %w", cold.Gallery, err)
		}
	}
	return nil
}
