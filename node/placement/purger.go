package placement

import (
	"context"
	"time"

	"facet/node/loop"
	"facet/raftfsm"
)

const (
	// purgeInterval is how often meta's leader looks for deleted galleries.
	purgeInterval = 250 * time.Millisecond
	// purgeTimeout is the longest time of one round. A round waits for shards without a leader.
	purgeTimeout = 15 * time.Second
)

// Galleries continues the deletion of galleries (routing.Router).
type Galleries interface {
	Sweep(ctx context.Context) error
}

// Purger erases what deleted galleries held, on meta's leader. It runs beside the controller:
// it waits for shards that have no leader, and the controller may have to open one of them.
type Purger struct {
	*loop.Loop
	meta      *raftfsm.Group
	galleries Galleries
}

// NewPurger returns a Purger; Run does its work.
func NewPurger(meta *raftfsm.Group, galleries Galleries) *Purger {
	return &Purger{loop.New("purges"), meta, galleries}
}

// Run erases until ctx ends.
func (p *Purger) Run(ctx context.Context) {
	p.Every(ctx, purgeInterval, func(ctx context.Context) error {
		if !p.meta.IsLeader() {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, purgeTimeout)
		defer cancel()
		return p.galleries.Sweep(ctx)
	})
}
