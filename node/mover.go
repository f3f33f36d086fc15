package node

import (
	"context"
	"fmt"
	"slices"

	"facet/internal/id"
	"facet/node/replicas"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
)

// moveReplicas brings the members of the groups that this node leads nearer to what
// the map asks for: one change of one group's members at a time, and only if a
// majority of the members after it has caught up.
func (n *Node) moveReplicas(ctx context.Context) {
	shards := n.replicas.Meta().Shards()
	for _, at := range shards.Shards {
		group, ok := n.replicas.Group(at.Shard)
		if !ok || !group.IsLeader() {
			continue
		}
		step := n.returnVotes
		if at.Moving {
			step = n.moveStep
		}
		if err := step(ctx, shards.Epoch, at, group); err != nil && ctx.Err() == nil {
			n.log.Info("a move has to wait", "group", at.Shard, "why", err)
		}
	}
}

// moveStep makes the next change: new members first receive the log, then vote;
// then the leadership goes to a voter that stays, then those leave that have to.
func (n *Node) moveStep(ctx context.Context, epoch uint64, at metafsm.ShardVoters, group *raftfsm.Group) error {
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
			n.log.Info("a replica moves: the new one receives the log", "group", at.Shard, "node", m)
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
		// A node that goes by an older map may be about to drop an old replica.
		r, err := n.replicas.Ask(ctx, m, replicas.Query{Group: at.Shard})
		if err != nil || !r.Ready(epoch, commit) {
			continue
		}
		if err := n.replicas.Enough(ctx, at.Shard, commit, append(slices.Clone(voters), m)); err != nil {
			return err
		}
		n.log.Info("a replica moves: the new one has caught up and votes", "group", at.Shard, "node", m)
		return group.AddVoter(ctx, m, index)
	}
	if waiting > 0 {
		return nil
	}
	return n.moveAway(ctx, at, group, members, index)
}

// moveAway is the second half of a move, when all that are wanted vote.
func (n *Node) moveAway(ctx context.Context, at metafsm.ShardVoters, group *raftfsm.Group, members []id.Member, index uint64) error {
	gone := slices.DeleteFunc(slices.Clone(members), func(m id.Member) bool { return slices.Contains(at.Voters, m) })
	if len(gone) == 0 {
		return nil // meta's leader sees it and ends the move
	}
	if err := n.replicas.Enough(ctx, at.Shard, group.Status().Commit, at.Voters); err != nil {
		return err
	}
	if slices.Contains(gone, n.member) {
		for _, m := range at.Voters {
			if r, err := n.replicas.Ask(ctx, m, replicas.Query{Group: at.Shard}); err == nil && r.Open {
				n.log.Info("a replica moves: the leadership goes first", "group", at.Shard, "to", m)
				return group.Transfer(ctx, m)
			}
		}
		return fmt.Errorf("no voter of shard %d answers", at.Shard)
	}
	n.log.Info("a replica moves: the old one leaves", "group", at.Shard, "node", gone[0])
	return group.Remove(ctx, gone[0], index)
}

// returnVotes gives the members that lost their vote in a group at rest, which this
// node leads, the vote back once they have caught up.
func (n *Node) returnVotes(ctx context.Context, epoch uint64, at metafsm.ShardVoters, group *raftfsm.Group) error {
	servers, index, err := group.Servers()
	if err != nil {
		return err
	}
	voters, commit := replicas.VotersBut(servers, ""), group.Status().Commit
	for _, s := range servers {
		if s.Voter || !slices.Contains(at.Voters, s.Member) {
			continue
		}
		r, err := n.replicas.Ask(ctx, s.Member, replicas.Query{Group: at.Shard})
		if err != nil || !r.Ready(epoch, commit) {
			continue
		}
		if err := n.replicas.Enough(ctx, at.Shard, commit, append(slices.Clone(voters), s.Member)); err != nil {
			return err
		}
		n.log.Info("a replica was made anew and votes again", "group", at.Shard, "node", s.Member)
		return group.AddVoter(ctx, s.Member, index)
	}
	return nil
}
