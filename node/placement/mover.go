package placement

import (
	"context"
	"fmt"
	"slices"
	"time"

	"facet/internal/id"
	"facet/node/replicas"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
)

// leaderRest is how long this node leads a group before it offers the leadership to the
// member that the map names first.
const leaderRest = 5 * time.Second

// Move brings the members of the groups that this node leads nearer to the map. It makes at
// most one change to each group, and only if a majority of the voters after the change has
// caught up.
func (p *Placement) Move(ctx context.Context) {
	shards := p.cfg.Replicas.Meta().Shards()
	for _, at := range shards.Shards {
		group, ok := p.cfg.Replicas.Group(at.Shard)
		if !ok || !group.IsLeader() {
			continue
		}
		step := p.returnVotes
		if at.Moving {
			step = p.moveStep
		}
		if err := step(ctx, shards.Epoch, at, group); err != nil && ctx.Err() == nil {
			p.cfg.Log.Info("a move has to wait", "group", at.Shard, "why", err)
		}
	}
}

// moveStep makes the next change. First new members receive the log, then they vote. Then
// the leadership goes to a voter that stays, and old members leave.
func (p *Placement) moveStep(ctx context.Context, epoch uint64, at metafsm.ShardVoters, group *raftfsm.Group) error {
	servers, index, err := group.Servers()
	if err != nil {
		return err
	}
	var voters, learners []id.Member
	for _, s := range servers {
		if s.Voter {
			voters = append(voters, s.Member)
		} else {
			learners = append(learners, s.Member)
		}
	}
	members := slices.Concat(voters, learners)
	for _, m := range at.Voters {
		if !slices.Contains(members, m) {
			p.cfg.Log.Info("a replica moves: the new one receives the log", "group", at.Shard, "node", m)
			return group.AddNonvoter(ctx, m, index)
		}
	}
	commit := group.Status().Commit
	waiting := 0
	for _, m := range learners {
		if !slices.Contains(at.Voters, m) {
			continue
		}
		waiting++
		// A node with an older map may be about to drop this replica.
		r, err := p.cfg.Replicas.Ask(ctx, m, replicas.Query{Group: at.Shard})
		if err != nil || !r.Ready(epoch, commit) {
			continue
		}
		if err := p.cfg.Replicas.Enough(ctx, at.Shard, commit, append(slices.Clone(voters), m)); err != nil {
			return err
		}
		p.cfg.Log.Info("a replica moves: the new one has caught up and votes", "group", at.Shard, "node", m)
		return group.AddVoter(ctx, m, index)
	}
	if waiting > 0 {
		return nil
	}
	return p.moveAway(ctx, at, group, members, index)
}

// moveAway is the second half of a move: all wanted voters vote, and old members leave.
func (p *Placement) moveAway(ctx context.Context, at metafsm.ShardVoters, group *raftfsm.Group, members []id.Member, index uint64) error {
	gone := slices.DeleteFunc(slices.Clone(members), func(m id.Member) bool { return slices.Contains(at.Voters, m) })
	if len(gone) == 0 {
		return nil // meta's leader notes the end of the move
	}
	if err := p.cfg.Replicas.Enough(ctx, at.Shard, group.Status().Commit, at.Voters); err != nil {
		return err
	}
	if slices.Contains(gone, p.cfg.Self) {
		for _, m := range at.Voters {
			if r, err := p.cfg.Replicas.Ask(ctx, m, replicas.Query{Group: at.Shard}); err == nil && r.Open {
				p.cfg.Log.Info("a replica moves: the leadership goes first", "group", at.Shard, "to", m)
				return group.Transfer(ctx, m)
			}
		}
		return fmt.Errorf("no voter of shard %d answers", at.Shard)
	}
	p.cfg.Log.Info("a replica moves: the old one leaves", "group", at.Shard, "node", gone[0])
	return group.Remove(ctx, gone[0], index)
}

// returnVotes makes rebuilt replicas voters again once they have caught up. Call it only
// on the leader of a group that is not on the move.
func (p *Placement) returnVotes(ctx context.Context, epoch uint64, at metafsm.ShardVoters, group *raftfsm.Group) error {
	servers, index, err := group.Servers()
	if err != nil {
		return err
	}
	voters, commit := replicas.VotersBut(servers, ""), group.Status().Commit
	for _, s := range servers {
		if s.Voter || !slices.Contains(at.Voters, s.Member) {
			continue
		}
		r, err := p.cfg.Replicas.Ask(ctx, s.Member, replicas.Query{Group: at.Shard})
		if err != nil || !r.Ready(epoch, commit) {
			continue
		}
		if err := p.cfg.Replicas.Enough(ctx, at.Shard, commit, append(slices.Clone(voters), s.Member)); err != nil {
			return err
		}
		p.cfg.Log.Info("a rebuilt replica has caught up and votes again", "group", at.Shard, "node", s.Member)
		return group.AddVoter(ctx, s.Member, index)
	}
	return nil
}

// OfferLeaderships hands each group that this node has led for leaderRest to the member that
// the map names first, if that member answers and has caught up. A group accepts no write
// during the transfer, so a member that does not answer is offered nothing.
func (p *Placement) OfferLeaderships(ctx context.Context) {
	for _, first := range p.cfg.Replicas.Meta().Shards().Shards {
		number := first.Shard
		group, ok := p.cfg.Replicas.Group(number)
		if !ok || !group.IsLeader() {
			delete(p.led, number)
			continue
		}
		since, noted := p.led[number]
		if !noted {
			p.led[number] = time.Now()
			continue
		}
		wanted := first.Voters[0]
		if wanted == p.cfg.Self || time.Since(since) < leaderRest {
			continue
		}
		p.led[number] = time.Now()
		r, err := p.cfg.Replicas.Ask(ctx, wanted, replicas.Query{Group: number})
		if err != nil || !r.CaughtUp(group.Status().Commit) {
			continue
		}
		if err := group.Transfer(ctx, wanted); err != nil {
			p.cfg.Log.Warn("leadership was not handed over", "group", number, "err", err)
		}
	}
}
