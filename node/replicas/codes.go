package replicas

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"facet/internal/id"
	"facet/node/loop"
	"facet/shard"
)

// CodesLeast is how many faces a segment has at least whose codes are kept on disk. A smaller one is
// soon merged with others, and its templates are encoded in milliseconds.
const CodesLeast = 1024

// Codes keeps the codes of templates on disk, beside their segments, so that a start needs to encode
// few of them. It writes the codes of one segment a second at most. It is safe for concurrent use.
type Codes struct {
	*loop.Loop
	replicas *Replicas
	least    uint64
	due      func() bool
	log      *slog.Logger
	rest     time.Time // until when nothing is written after an error
}

// NewCodes returns the Codes of a node's replicas, for segments with at least so many faces. It writes
// once w has opened all templates.
func NewCodes(r *Replicas, w *Warmer, least int) *Codes {
	return &Codes{
		Loop: loop.New("codes"), replicas: r, least: uint64(least),
		due: func() bool { return w.Warmed() && !r.cfg.DiskFull() }, log: r.cfg.Log,
	}
}

// Run writes codes until ctx ends.
func (c *Codes) Run(ctx context.Context) { c.Every(ctx, warmInterval, c.step) }

func (c *Codes) step(ctx context.Context) error {
	due := c.due() && time.Now().After(c.rest)
	for number, s := range shardsOf(c.replicas) { // any order will do
		if n := s.RefusedCodes(); n > 0 {
			c.log.WarnContext(ctx, "codes of templates on disk could not be used, so the templates were encoded again", "group", number, "pieces", n)
		}
		if !due {
			continue
		}
		saved, err := s.SaveCodes(ctx, c.least)
		if err != nil && ctx.Err() == nil && !errors.Is(err, shard.ErrClosed) {
			c.rest = time.Now().Add(warmPause)
			c.log.WarnContext(ctx, "codes of templates were not kept on disk; the next start encodes these templates", "group", number, "err", err)
			return fmt.Errorf("keep the codes of %s on disk: %w", Name(number), err)
		}
		due = saved.Files == 0
	}
	return nil
}

// shardsOf returns the shards with a replica here.
func shardsOf(r *Replicas) map[id.Shard]*shard.Shard {
	shards := make(map[id.Shard]*shard.Shard)
	for _, number := range r.Numbers() {
		if h, open := r.hosted(number); open {
			shards[number] = h.state.Shard()
		}
	}
	return shards
}
