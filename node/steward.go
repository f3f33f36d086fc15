package node

import (
	"context"
	"errors"
	"time"
)

const (
	// stewardPause is how often the steward looks whether something is to be done.
	stewardPause = 500 * time.Millisecond
	// stewardTimeout bounds one step.
	stewardTimeout = 5 * time.Second
)

// stewardRun does what this node owes the cluster's records: on meta's leader it
// founds the records and takes nodes in; on every node it opens the groups that
// the map gives to it and gives leaderships to those whom the map names first.
// It ends when ctx does.
func (n *Node) stewardRun(ctx context.Context) {
	tick := time.NewTicker(stewardPause)
	defer tick.Stop()
	for {
		changed := n.replicas.Meta().Changed()
		if err := n.stewardStep(ctx); err != nil && ctx.Err() == nil {
			n.log.Warn("cluster records are not in order yet", "err", err)
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (n *Node) stewardStep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stewardTimeout)
	defer cancel()
	if err := n.placement.KeepRecords(ctx); err != nil {
		return err
	}
	if err := errors.Join(n.placement.CheckFounding(), n.placement.CheckStanding(ctx)); err != nil {
		n.fail(err)
		return err
	}
	if err := n.replicas.NoteLevel(); err != nil {
		return err
	}
	n.replicas.Repair(ctx)
	if err := n.replicas.Host(ctx); err != nil {
		return err
	}
	if err := n.placement.Register(ctx); err != nil {
		return err
	}
	n.placement.Move(ctx)
	n.placement.OfferLeaderships(ctx)
	n.announce()
	return nil
}
