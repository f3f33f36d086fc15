package placement

import (
	"context"
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

const (
	// configuredPause is how often a leader looks whether it has applied a change of its
	// group's members. configuredTimeout is the longest that it waits for that.
	configuredPause   = 5 * time.Millisecond
	configuredTimeout = time.Second
)

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
		step := p.moveStep
		if !at.Moving && isPlaced(at, group) {
			step = p.returnVotes
		}
		if err := step(ctx, shards.Epoch, at, group); err != nil && ctx.Err() == nil {
			p.cfg.Log.InfoContext(ctx, "a move has to wait", "group", at.Shard, "why", err)
		}
	}
}

// isPlaced reports whether the members of a group are those of the map, with a vote or without. After
// a move they may be others: a leader that had not read of the move's end, or of its new goal, has
// taken one more step towards the old one.
func isPlaced(at metafsm.ShardVoters, group *raftfsm.Group) bool {
	servers, _, err := group.Servers()
	return err == nil && len(servers) == len(at.Voters) &&
		!slices.ContainsFunc(servers, func(s raftfsm.Server) bool { return !slices.Contains(at.Voters, s.Member) })
}

// moveStep makes the next change of a group on the move, and the one after it if the group
// would else stay with an even number of voters.
func (p *Placement) moveStep(ctx context.Context, epoch uint64, at metafsm.ShardVoters, group *raftfsm.Group) error {
	for {
		m, index, err := p.moving(ctx, epoch, at, group)
		if err != nil {
			return err
		}
		step, err := m.next()
		if err != nil {
			return err
		}
		if err := p.carryOut(ctx, at.Shard, group, step, index); err != nil || !m.passing(step) {
			return err
		}
		if err := configured(ctx, group, index); err != nil {
			return err
		}
	}
}

// configured waits until the group has applied a newer configuration than that of index.
func configured(ctx context.Context, group *raftfsm.Group, index uint64) error {
	ctx, cancel := context.WithTimeout(ctx, configuredTimeout)
	defer cancel()
	for {
		if _, now, err := group.Servers(); err != nil || now != index {
			return err
		}
		select {
		case <-time.After(configuredPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// moving asks the members of a group on the move how far they are. index is that of the
// group's configuration.
func (p *Placement) moving(ctx context.Context, epoch uint64, at metafsm.ShardVoters, group *raftfsm.Group) (m moving, index uint64, err error) {
	servers, index, err := group.Servers()
	if err != nil {
		return m, 0, err
	}
	m = moving{self: p.cfg.Self, goal: at.Voters, ready: map[id.Member]bool{}, current: map[id.Member]bool{}, refused: p.refused[at.Shard]}
	for _, s := range servers {
		if s.Voter {
			m.voters = append(m.voters, s.Member)
		} else {
			m.learners = append(m.learners, s.Member)
		}
	}
	commit := group.Status().Commit
	for _, s := range servers {
		if !s.Voter && !slices.Contains(at.Voters, s.Member) {
			continue
		}
		r, err := p.cfg.Replicas.Ask(ctx, s.Member, replicas.Query{Group: at.Shard})
		m.current[s.Member] = err == nil && r.CaughtUp(commit)
		// A node with an older map may be about to drop this replica.
		m.ready[s.Member] = err == nil && r.Ready(epoch, commit)
	}
	return m, index, nil
}

// carryOut makes a step. index is that of the configuration to which the step belongs.
func (p *Placement) carryOut(ctx context.Context, number id.Shard, group *raftfsm.Group, s moveStep, index uint64) error {
	switch s.kind {
	case moveAdd:
		p.cfg.Log.InfoContext(ctx, "a replica moves: the new one receives the log", "group", number, "node", s.member)
		return group.AddNonvoter(ctx, s.member, index)
	case movePromote:
		p.cfg.Log.InfoContext(ctx, "a replica moves: the new one has caught up and votes", "group", number, "node", s.member)
		return group.AddVoter(ctx, s.member, index)
	case moveTransfer:
		p.cfg.Log.InfoContext(ctx, "a replica moves: the leadership goes first", "group", number, "to", s.member)
		delete(p.refused, number)
		err := group.Transfer(ctx, s.member)
		if err != nil {
			p.refused[number] = s.member // the next round tries another
		}
		return err
	case moveRemove:
		p.cfg.Log.InfoContext(ctx, "a replica moves: the old one leaves", "group", number, "node", s.member)
		return group.Remove(ctx, s.member, index)
	default:
		return nil
	}
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
		p.cfg.Log.InfoContext(ctx, "a rebuilt replica has caught up and votes again", "group", at.Shard, "node", s.Member)
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
			p.cfg.Log.WarnContext(ctx, "leadership was not handed over", "group", number, "err", err)
		}
	}
}
