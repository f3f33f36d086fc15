package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"facet/internal/tick"
	"facet/node/loop"
	"facet/node/replicas"
)

const (
	// controllerInterval is the longest time between two rounds of the controller.
	controllerInterval = 500 * time.Millisecond
	// controllerTimeout is the longest time of one round. A round may wait for several nodes
	// that do not answer, one after the other (peer.AnswerTimeout).
	controllerTimeout = 15 * time.Second
)

// controller brings this node and the cluster's records in line with each other. It calls
// the steps of the parts in a fixed order: each step relies on those before it.
type controller struct {
	*loop.Loop
	found   func(context.Context) error // waits until the node belongs to a cluster
	steps   []step
	changed func() <-chan struct{} // returns a channel that the next change of meta closes
	fail    func(error)
	log     *slog.Logger
}

// step is one step of a round. Its error ends the round.
type step struct {
	name string
	do   func(context.Context) error
}

// Run founds or joins the cluster and then makes rounds until ctx ends.
func (c *controller) Run(ctx context.Context) {
	defer c.Start()()
	if err := c.found(ctx); err != nil {
		if ctx.Err() == nil {
			c.fail(err)
		}
		return
	}
	for {
		changed := c.changed()
		err := c.round(ctx)
		c.Done(err)
		if err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "the controller's round failed and will be repeated", "err", err)
		}
		select {
		case <-changed:
		case <-time.After(tick.Until(controllerInterval)):
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

// newController returns the controller of n. All parts of n must be open.
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
				err := errors.Join(n.placement.CheckFounding(ctx), n.placement.CheckMembership(ctx))
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
