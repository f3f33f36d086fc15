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

const (
	roomInterval = time.Second
	// Exact rows leave the memory when the estimate is above 1/fullShare less than the budget, until it
	// is below 1/leaveShare less. They come back while it is below 1/backShare less.
	fullShare, leaveShare, backShare = 16, 8, 4
)

// Room keeps the exact rows of templates in memory while there is room, and leaves them on disk when
// the memory is short: first those of the gallery that was searched longest ago, a piece at a time. It
// is safe for concurrent use.
type Room struct {
	*loop.Loop
	replicas     *Replicas
	used, budget func() int64
	serves       func() bool
	log          *slog.Logger
}

// NewRoom returns the Room of a node's replicas. used and budget return bytes. No row comes back before
// w has opened all templates, so that the node serves as soon as it can.
func NewRoom(r *Replicas, w *Warmer, used, budget func() int64) *Room {
	return &Room{
		Loop: loop.New("room"), replicas: r, used: used, budget: budget,
		serves: w.Warmed, log: r.cfg.Log,
	}
}

// Run moves exact rows until ctx ends.
func (m *Room) Run(ctx context.Context) {
	m.Every(ctx, roomInterval, m.step)
}

func (m *Room) step(ctx context.Context) error {
	used, budget := m.used(), m.budget()
	short := used > budget-budget/fullShare
	for _, s := range shardsOf(m.replicas) {
		s.MemoryShort(short)
	}
	switch {
	case short:
		m.leave(ctx, used-(budget-budget/leaveShare))
	case used < budget-budget/backShare && m.serves():
		return m.back(ctx, budget-budget/backShare-used)
	}
	return nil
}

// leave releases exact rows of about so many bytes.
func (m *Room) leave(ctx context.Context, bytes int64) {
	freed := int64(0)
	for freed < bytes && ctx.Err() == nil {
		s := pick(shardsOf(m.replicas), false)
		if s == nil {
			break
		}
		piece := s.Chill()
		if piece == 0 {
			break
		}
		freed += piece
	}
	if freed > 0 {
		m.log.InfoContext(ctx, "exact rows of templates were released, as memory is short; searches read them from disk", "bytes", freed)
	}
}

// back reads exact rows of at most about so many bytes.
func (m *Room) back(ctx context.Context, bytes int64) error {
	for bytes > 0 && ctx.Err() == nil {
		s := pick(shardsOf(m.replicas), true)
		if s == nil {
			return nil
		}
		taken, err := s.Thaw(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, shard.ErrClosed) {
			return fmt.Errorf("bring exact rows back: %w", err)
		}
		if taken == 0 {
			return nil
		}
		bytes -= taken
	}
	return nil
}

// pick returns the shard whose rows leave next or, with back, come back next, or nil.
func pick(shards map[id.Shard]*shard.Shard, back bool) (best *shard.Shard) {
	var searched int64
	for _, s := range shards { // any order will do
		if at, ok := s.NextExact(back); ok && (best == nil || (at > searched) == back) {
			best, searched = s, at
		}
	}
	return best
}

// Cold returns how many templates' exact rows are on disk only.
func (m *Room) Cold() (rows int) {
	for _, s := range shardsOf(m.replicas) {
		rows += s.ColdRows()
	}
	return rows
}
