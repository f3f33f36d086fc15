package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"facet/node/loop"
	"facet/node/replicas"
)

const (
	// controllerPause is the longest wait between two rounds of the controller.
	controllerPause = 500 * time.Millisecond
	// controllerTimeout bounds one round.
	controllerTimeout = 5 * time.Second
)

// controller does what this node owes the cluster's records, first to last in the order of
// its steps: that order is a promise. On meta's leader it founds the records and takes
// nodes in; on every node it opens the groups that the map gives to it and gives
// leaderships to those whom the map names first.
type controller struct {
	*loop.Loop
	// found waits until the node belongs to a cluster.
	found   func(context.Context) error
	steps   []step
	changed func() <-chan struct{} // closed at the next change of meta
	fail    func(error)
	log     *slog.Logger
}

// step is one step of a round. If it fails, the round ends.
type step struct {
	name string
	do   func(context.Context) error
}

// Run founds or joins the cluster and then keeps it, until ctx ends.
func (c *controller) Run(ctx context.Context) {
	defer c.Start()()
	if err := c.found(ctx); err != nil {
		if ctx.Err() == nil {
			c.fail(err)
		}
		return
	}
	tick := time.NewTicker(controllerPause)
	defer tick.Stop()
	for {
		changed := c.changed()
		err := c.round(ctx)
		c.Done(err)
		if err != nil && ctx.Err() == nil {
			c.log.Warn("cluster records are not in order yet", "err", err)
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *controller) round(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, controllerTimeout)
	defer cancel()
	for _, s := range c.steps {
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// newController returns the controller of a node whose parts are open.
func newController(n *Node) *controller {
	always := func(do func(context.Context)) func(context.Context) error {
		return func(ctx context.Context) error {
			do(ctx)
			return nil
		}
	}
	return &controller{
		Loop: loop.New("controller"), found: n.placement.Found, changed: func() <-chan struct{} { return n.replicas.Meta().Changed() },
		fail: n.fail, log: n.log,
		steps: []step{
			{"keep the records", n.placement.KeepRecords},
			{"check the membership", func(ctx context.Context) error {
				err := errors.Join(n.placement.CheckFounding(), n.placement.CheckMembership(ctx))
				if err != nil {
					n.fail(err)
				}
				return err
			}},
			{"note the level", func(context.Context) error { return n.replicas.NoteLevel() }},
			{"repair replicas", always(replicas.Repairer{Replicas: n.replicas}.Step)},
			{"host replicas", n.replicas.Host},
			{"register", n.placement.Register},
			{"move replicas", always(n.placement.Move)},
			{"offer leaderships", always(n.placement.OfferLeaderships)},
			{"announce", always(func(context.Context) { n.announce() })},
		},
	}
}
