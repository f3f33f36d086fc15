package admin

import (
	"context"
	"slices"
	"time"

	"facet/internal/id"
	"facet/node/replicas"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// SetNodeState changes the state of a node. Unless forced, it returns an error if too few
// nodes would remain for the number of replicas that is wanted, or if a group would lose its
// majority with a node that does not answer. The replicas of a draining or removed node then
// move away; Status shows the progress.
func (p *Port) SetNodeState(ctx context.Context, o wire.Order) error {
	state, ok := nodeStates[o.State]
	if !ok {
		return router.Errorf(router.InvalidRequest, "", "a node is %s, %s or %s", wire.StateActive, wire.StateDraining, wire.StateRemoved)
	}
	if err := p.cfg.Router.SyncMeta(ctx); err != nil {
		return err
	}
	if state != metafsm.NodeActive && !o.Force {
		if err := p.cfg.Placement.MayLeave(o.Node); err != nil {
			return router.Errorf(router.InvalidRequest, "", "%v; add a node first, or force the order", err)
		}
	}
	if _, alive := p.alive(o.Node); alive && state == metafsm.NodeRemoved && !o.Force && p.holdsSome(o.Node) {
		return router.Errorf(router.InvalidRequest, "", "the node runs and holds replicas: drain it first, or force the order")
	}
	if _, alive := p.alive(o.Node); state == metafsm.NodeRemoved && (alive || !o.Force) {
		if err := p.mayBeCut(ctx, o.Node); err != nil {
			return err
		}
	}
	return p.cfg.Router.SetNodeState(ctx, metafsm.SetNodeState{Node: o.Node, State: state, Heir: o.Heir})
}

// mayBeCut returns an error if a group would lose its majority without the vote of a node. A
// removed node is cut off at once and never comes back, and a group without a majority can't
// give the vote to another node.
func (p *Port) mayBeCut(ctx context.Context, who id.Node) error {
	records := p.cfg.Replicas.Meta().Nodes()
	i := slices.IndexFunc(records, func(r metafsm.Node) bool { return r.ID == who })
	if i < 0 {
		return nil // SetNodeState says so
	}
	there := map[id.Member]bool{}
	for _, m := range p.cfg.Gossip.Members() {
		there[m.Member] = m.Member != records[i].Member
	}
	var meta []id.Member
	servers, _, err := p.cfg.Replicas.MetaGroup().Servers()
	if err != nil {
		return err
	}
	for _, s := range servers {
		if s.Voter {
			meta = append(meta, s.Member)
		}
	}
	if err := needs(id.Meta, meta, records[i].Member, there); err != nil {
		return err
	}
	for _, at := range p.cfg.Replicas.Meta().Shards().Shards {
		err := needs(at.Shard, at.Voters, records[i].Member, there)
		if err == nil && slices.Contains(at.Holders(), records[i].Member) {
			err = p.needsNow(ctx, at, records[i].Member, there)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// electionWait is how long a removal waits for the shards of a node that has just died: a new
// leader is elected within 2.5 s, and the other replicas catch up with it.
const electionWait = 5 * time.Second

// needsNow does the work of needs with the present voters of a shard and those of their
// replicas that serve. The map knows neither: a new replica has no vote yet, a damaged one has
// lost it or is closed although its node is there. So needsNow asks the group's leader, and
// each voter. It asks again until they allow the removal or electionWait is over.
func (p *Port) needsNow(ctx context.Context, at metafsm.ShardVoters, who id.Member, there map[id.Member]bool) error {
	for end := time.Now().Add(electionWait); ; {
		err := p.needsAtOnce(ctx, at, who, there)
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// needsAtOnce does the work of needsNow, and asks once.
func (p *Port) needsAtOnce(ctx context.Context, at metafsm.ShardVoters, who id.Member, there map[id.Member]bool) error {
	others := slices.DeleteFunc(at.Holders(), func(m id.Member) bool { return !there[m] })
	leader, ok := p.cfg.Replicas.Leading(ctx, at.Shard, append(others, who))
	if !ok {
		return router.Errorf(router.InvalidRequest, "", "no leader of %s confirms who votes in it: start its nodes that are down and try again; "+
			"if the node is down for good, --force removes it, and the shard may be lost", replicas.Name(at.Shard))
	}
	serves := map[id.Member]bool{}
	for _, m := range replicas.VotersBut(leader.Servers, who) {
		serves[m] = there[m] && p.cfg.Replicas.CaughtUp(ctx, at.Shard, leader.Commit, []id.Member{m}) == 1
	}
	return needs(at.Shard, replicas.VotersBut(leader.Servers, ""), who, serves)
}

// needs returns an error if a member has one of the votes, and the others that are there are
// no majority.
func needs(number id.Shard, voters []id.Member, who id.Member, there map[id.Member]bool) error {
	left := slices.DeleteFunc(slices.Clone(voters), func(m id.Member) bool { return !there[m] })
	switch {
	case !slices.Contains(voters, who) || len(left) > len(voters)/2:
		return nil
	case len(voters) == 1:
		return router.Errorf(router.InvalidRequest, "", "the only replica of %s is on the node, and its data would be lost: start the node if it is down, and drain it first",
			replicas.Name(number))
	default:
		return router.Errorf(router.InvalidRequest, "", "group %d needs the node's vote: %d of its other %d voters serve; start the node if it is down, and drain the node first",
			number, len(left), len(voters)-1)
	}
}

// oneReplica says what a cluster with one replica of each shard lacks.
const oneReplica = "with one replica the death of a node stops its shards until it is back, also for its restart at an upgrade; " +
	"the loss of its disk loses what was written since the last backup; a damaged replica can't be rebuilt"

// SetReplicas sets the number of replicas that each shard should have. With fewer nodes each
// shard has one on every node, and gets the others when nodes join. The shards then change a
// few at a time; Status shows the progress. One replica must be forced.
func (p *Port) SetReplicas(ctx context.Context, o wire.ReplicasOrder) (a wire.ReplicasAnswer, err error) {
	if o.Replicas != 1 && o.Replicas != 3 && o.Replicas != 5 {
		return a, router.Errorf(router.InvalidRequest, "", "a shard has 1, 3 or 5 replicas: an even number survives no more deaths than the odd one below it")
	}
	if err := p.cfg.Router.SyncMeta(ctx); err != nil {
		return a, err
	}
	cluster, founded := p.cfg.Replicas.Meta().Cluster()
	if !founded {
		return a, router.Errorf(router.Unavailable, "", "the cluster is not founded yet: try again when facet status shows its nodes")
	}
	a.Was, a.Replicas = cluster.WantedReplicas(), o.Replicas
	if o.Replicas == 1 && a.Was > 1 && !o.Force {
		return a, router.Errorf(router.InvalidRequest, "", "%s; give --force if that is wanted", oneReplica)
	}
	for _, r := range p.cfg.Replicas.Meta().Nodes() {
		if r.State == metafsm.NodeActive {
			a.Nodes++
		}
	}
	return a, p.cfg.Router.SetReplicas(ctx, metafsm.SetReplicas{Replicas: o.Replicas})
}

var nodeStates = map[string]metafsm.NodeState{
	wire.StateActive: metafsm.NodeActive, wire.StateDraining: metafsm.NodeDraining, wire.StateRemoved: metafsm.NodeRemoved,
}

// PutBack carries out a write again that members of a shard have lost.
func (p *Port) PutBack(ctx context.Context, o wire.WriteOrder) (wire.WriteAnswer, error) {
	status, err := p.cfg.Router.PutBack(ctx, o.Shard, o.Command)
	return wire.WriteAnswer{Outcome: status.String()}, err
}

// alive returns the present member of a node, as gossip shows it.
func (p *Port) alive(who id.Node) (id.Member, bool) {
	m, there := p.cfg.Gossip.Node(who)
	return m.Member, there
}

// holdsSome reports whether the map gives a replica to a member of the node.
func (p *Port) holdsSome(who id.Node) bool {
	for m := range p.cfg.Placement.Holders() {
		if node, err := m.Node(); err == nil && node == who {
			return true
		}
	}
	return false
}

// MoveShard moves the vote of one node in a shard to another node. It refuses a move that
// the plan would undo.
func (p *Port) MoveShard(ctx context.Context, o wire.ShardOrder) error {
	if err := p.cfg.Router.SyncMeta(ctx); err != nil {
		return err
	}
	now := p.cfg.Replicas.Meta().Shards()
	i := slices.IndexFunc(now.Shards, func(v metafsm.ShardVoters) bool { return v.Shard == o.Shard })
	if i < 0 {
		return router.Errorf(router.NotFound, "", "there is no shard %d", o.Shard)
	}
	at := &now.Shards[i]
	from := slices.IndexFunc(at.Voters, func(m id.Member) bool { node, err := m.Node(); return err == nil && node == o.From })
	to, alive := p.alive(o.To)
	switch active := slices.ContainsFunc(p.cfg.Replicas.Meta().Nodes(), func(r metafsm.Node) bool { return r.Member == to && r.State == metafsm.NodeActive }); {
	case at.Moving:
		return router.Errorf(router.InvalidRequest, "", "shard %d is on the move already", o.Shard)
	case from < 0:
		return router.Errorf(router.InvalidRequest, "", "node %s has no vote in shard %d", o.From, o.Shard)
	case !alive || !active:
		return router.Errorf(router.InvalidRequest, "", "node %s does not answer or is about to leave", o.To)
	case slices.Contains(at.Voters, to):
		return router.Errorf(router.InvalidRequest, "", "node %s has a vote in shard %d", o.To, o.Shard)
	}
	if !at.Moved && !p.cfg.Placement.Founded(ctx, *at) {
		return router.Errorf(router.InvalidRequest, "", "shard %d has no leader yet; try again", o.Shard)
	}
	leaves := at.Voters[from]
	cluster, _ := p.cfg.Replicas.Meta().Cluster()
	seats, heirs := p.cfg.Placement.Seats()
	plan := func() []id.Member {
		return metafsm.Replan(now.Shards, seats, cluster.WantedReplicas(), heirs)[i].Voters
	}
	goes := func(list []id.Member) func(id.Member) bool {
		return func(m id.Member) bool { return !slices.Contains(list, m) }
	}
	kept := slices.DeleteFunc(slices.Clone(at.Voters), goes(plan())) // without the members that leave anyway
	before := slices.Clone(at.Voters)
	at.Voters[from] = to
	kept = append(slices.DeleteFunc(kept, func(m id.Member) bool { return m == leaves }), to)
	if slices.ContainsFunc(kept, goes(plan())) {
		return router.Errorf(router.InvalidRequest, "", "the cluster would move it back: replicas or zones would be spread less evenly")
	}
	at.Leaving, at.Moving = append(at.Leaving, leaves), true
	at.From, at.Began = before, time.Now().UnixMilli()
	return p.cfg.Router.PutShards(ctx, metafsm.PutShards{Previous: now.Epoch, Shards: now.Shards})
}

// moves returns the shards on the move, by the map and the nodes' own reports.
func moves(shards metafsm.ShardMap, nodes []wire.Member) []wire.Move {
	list := []wire.Move{}
	replica := func(who id.Node, number id.Shard) (wire.GroupStatus, bool) {
		for _, m := range nodes {
			for _, g := range m.Groups {
				if m.ID == who && g.Group == number {
					return g, true
				}
			}
		}
		return wire.GroupStatus{}, false
	}
	for _, at := range shards.Shards {
		if !at.Moving {
			continue
		}
		m := wire.Move{Shard: at.Shard, To: []id.Node{}, From: []id.Node{}}
		for _, v := range at.Voters {
			who, err := v.Node()
			if err != nil {
				continue
			}
			if g, ok := replica(who, at.Shard); !ok || g.Role == "non-voter" {
				m.To = append(m.To, who)
				m.Behind = max(m.Behind, g.Lag)
			}
		}
		for _, v := range at.Leaving {
			if who, err := v.Node(); err == nil {
				m.From = append(m.From, who)
			}
		}
		list = append(list, m)
	}
	return list
}
