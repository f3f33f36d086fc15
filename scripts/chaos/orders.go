package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"facet/internal/id"
	"facet/node/wire"
)

const (
	// replicas is the number of voters of each shard, unless the fault replicas changes it.
	replicas = 3
	// orderTimeout is the longest wait until a node accepts an order, movesTimeout the
	// longest wait for the order's effect.
	movesTimeout = 2 * time.Minute
	orderTimeout = 45 * time.Second
	lookPause    = 300 * time.Millisecond
)

// orderFaults are the faults by operators' orders.
var orderFaults = []fault{
	{"drain", orders, true, false, 8 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		args := []string{"node", "drain", p.ID.String()}
		if n.cluster.Founders <= replicas {
			args = append(args, "--force")
		}
		return func() error {
			if err := n.order("node", "activate", p.ID.String()); err != nil {
				return err
			}
			return n.until("the node that was drained has its share again", func(s wire.Status) bool { return holds(s, p.ID) > 0 })
		}, n.order(args...)
	}},
	{"replicas", orders, false, false, 8 * time.Second, func(n *nemesis, _ *process) (func() error, error) {
		number := 5
		if !n.damaged() && n.random.IntN(2) > 0 { // damaged files of an only replica are lost
			number = 1
		}
		n.say("each shard gets %d replicas", number)
		have := func(number int) error {
			return n.until(fmt.Sprintf("each shard has %d replicas", number), func(s wire.Status) bool { return s.Voting[number] == s.Shards })
		}
		whole := n.random.IntN(2) > 0
		return func() error {
			if whole { // else it changes back on the way
				if err := have(min(number, len(n.cluster.members()))); err != nil {
					return err
				}
			}
			if err := n.order("cluster", "replicas", fmt.Sprint(replicas)); err != nil {
				return err
			}
			return have(replicas)
		}, n.order("cluster", "replicas", fmt.Sprint(number), "--force")
	}},
	{"replace", orders, false, false, 4 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		spare, err := n.join()
		if err != nil {
			return nil, err
		}
		return func() error {
			if err := n.until("the replaced node holds nothing", func(s wire.Status) bool {
				return holds(s, p.ID) == 0 && holds(s, spare.ID) > 0
			}); err != nil {
				return err
			}
			p.Signal(syscall.SIGTERM)
			n.cluster.leave(p)
			return errors.Join(n.remove(p.ID), n.startRemoved(p), n.cluster.discard(p))
		}, n.order("node", "replace", p.ID.String(), spare.ID.String())
	}},
	{"wreck", orders, true, false, 3 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		if n.othersDamaged(p) {
			return func() error { return nil }, nil
		}
		p.Signal(syscall.SIGKILL)
		return func() error { return n.rebuild(p) }, nil
	}},
	{"move", room, false, false, 4 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		back := func() error { return n.until("the shard has moved", func(wire.Status) bool { return true }) }
		s, err := n.settled()
		if err != nil {
			return nil, err
		}
		for shard := 1; shard <= n.cluster.Shards; shard++ {
			has := voters(s, id.Shard(shard))
			for _, m := range s.Nodes {
				if has[p.ID] && !has[m.ID] && m.State == wire.StateActive && m.Answers {
					return back, n.order("shard", "move", fmt.Sprint(shard), "--from", p.ID.String(), "--to", m.ID.String())
				}
			}
		}
		return back, nil // it has nothing to give
	}},
}

// voters returns the nodes that vote in a group.
func voters(s wire.Status, group id.Shard) map[id.Node]bool {
	has := map[id.Node]bool{}
	for _, m := range s.Nodes {
		for _, g := range m.Groups {
			if g.Group == group && g.Role != "non-voter" {
				has[m.ID] = true
			}
		}
	}
	return has
}

// holds returns the number of shards in which a node votes.
func holds(s wire.Status, who id.Node) int {
	count := 0
	for shard := 1; shard <= s.Shards; shard++ {
		if voters(s, id.Shard(shard))[who] {
			count++
		}
	}
	return count
}

// order sends an order by the command line until a node accepts it.
func (n *nemesis) order(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	for {
		_, err := n.cluster.facet(ctx, args...)
		if err == nil || ctx.Err() != nil {
			return err
		}
		pause(ctx, lookPause)
	}
}

// until waits until nothing is moving and ok holds, several times in a row.
func (n *nemesis) until(what string, ok func(wire.Status) bool) error {
	return n.untilSeenBy(n.cluster.members, what, ok)
}

// untilSeenBy is until with the status of one of by's nodes.
func (n *nemesis) untilSeenBy(by func() []*process, what string, ok func(wire.Status) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), movesTimeout)
	defer cancel()
	var last error
	for row := 0; row < 3; pause(ctx, lookPause) {
		s, err := n.cluster.statusBy(ctx, by())
		if err == nil && len(s.Moves) == 0 && ok(s) {
			row++
			continue
		}
		row, last = 0, err
		if ctx.Err() != nil {
			return fmt.Errorf("not within %s: %s (moves %v, %w)", movesTimeout, what, s.Moves, last)
		}
	}
	return nil
}

// settled waits until nothing is moving and returns the status.
func (n *nemesis) settled() (s wire.Status, err error) {
	err = n.until("nothing is on the move", func(now wire.Status) bool { s = now; return true })
	return s, err
}

// join starts a node with an empty disk and waits until the node is a member of the
// cluster.
func (n *nemesis) join() (*process, error) {
	p, err := n.cluster.newProcess()
	if err == nil {
		err = n.cluster.start(p)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), movesTimeout)
	defer cancel()
	for ctx.Err() == nil {
		s, err := n.cluster.status(ctx)
		for _, m := range s.Nodes {
			if err == nil && m.ID == p.ID && m.Answers && m.State == wire.StateActive {
				n.say("%s has joined", p.Name)
				return p, nil
			}
		}
		pause(ctx, lookPause)
	}
	return nil, fmt.Errorf("%s has not joined within %s: see %s", p.Name, movesTimeout, p.Log)
}

// rebuild erases a node that does not run and replaces it by a new one.
func (n *nemesis) rebuild(p *process) error {
	n.forfeit(p, time.Now())
	if err := n.cluster.discard(p); err != nil {
		return err
	}
	heir, err := n.join()
	if err != nil {
		return err
	}
	if err := n.order("node", "replace", p.ID.String(), heir.ID.String(), "--force"); err != nil {
		return err
	}
	if err := n.until("the new node has the shards of the one that was lost", func(s wire.Status) bool { return holds(s, heir.ID) > 0 }); err != nil {
		return err
	}
	return n.remove(p.ID)
}

// removedEndsWithin is the longest that a removed node may run until it learns of its removal.
const removedEndsWithin = 30 * time.Second

// startRemoved starts a removed node, which must end by itself.
func (n *nemesis) startRemoved(p *process) error {
	if err := n.cluster.start(p); err != nil {
		return err
	}
	if !p.EndsWithin(removedEndsWithin) {
		return fmt.Errorf("%s was removed, and goes on when it is started: see %s", p.Name, p.Log)
	}
	return nil
}

// remove removes a node that no longer runs from the cluster.
func (n *nemesis) remove(who id.Node) error {
	if err := n.order("node", "remove", who.String()); err != nil {
		return err
	}
	return n.until("the removed node is gone", func(s wire.Status) bool {
		for _, m := range s.Nodes {
			if m.ID == who {
				return false
			}
		}
		return true
	})
}
