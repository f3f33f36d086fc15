package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
)

// A replica whose files are damaged, or whose state is not the majority's, is made
// anew from its peers. It has voted and acknowledged with what is thrown away, so it
// may not come back as a voter (docs/decisions/0007-self-checks.md):
//
//  1. its group is closed, and a file says that it must stay so;
//  2. the group's leader takes its vote, if a majority of the others has caught up;
//  3. when a confirmed leader says that it has none, its folder is set aside and it
//     is opened on an empty one, without founding anything;
//  4. with state again the file goes, and once it has caught up the leader gives it
//     back its vote.
//
// mendReplicas makes the next step of each.
func (n *Node) mendReplicas(ctx context.Context) {
	o := n.groups.outages
	all := o.all()
	for _, number := range slices.Sorted(maps.Keys(all)) {
		if err := n.mend(ctx, number, all[number]); err != nil && ctx.Err() == nil {
			n.log.Warn("a replica stays out of service", "group", number, "err", err)
		}
	}
	keep := n.cfg.EraseWithin
	if keep == 0 {
		keep = raftfsm.EraseWithinDefault
	}
	if err := o.clear(keep / 2); err != nil {
		n.log.Warn("a group that was set aside is still there", "err", err)
	}
}

func (n *Node) mend(ctx context.Context, number id.Shard, why outage) error {
	g := n.groups
	h, open := g.hosted(number)
	if why.reopened {
		if !open || !h.group.HasState() {
			return nil
		}
		n.log.Info("a replica has state again", "group", number)
		return g.outages.end(number, why)
	}
	if open {
		n.handOverDamaged(ctx, number, h)
		if err := g.takeOut(number, h); err != nil {
			n.log.Warn("a damaged replica was closed", "group", number, "err", err)
		}
	}
	if why.full {
		if n.limits.DiskFull() || time.Since(why.At) < outRetry {
			return nil
		}
		return g.outages.end(number, why) // and host opens it
	}
	at, _ := g.metaState.Shards().Shard(number)
	if !g.mine(at) {
		if err := n.router.SyncMeta(ctx); err != nil {
			return err
		}
		if at, _ = g.metaState.Shards().Shard(number); !g.mine(at) {
			_, err := g.outages.setAside(g.folder(number))
			return errors.Join(err, g.outages.end(number, why))
		}
	}
	votes, leader, err := n.voteOf(ctx, at)
	if err != nil {
		return err
	}
	if votes {
		return n.askDemotion(ctx, leader, number)
	}
	return g.reopen(number)
}

// handOverDamaged gives a diverged replica's leadership away; one with damaged files
// has lost it.
func (n *Node) handOverDamaged(ctx context.Context, number id.Shard, h hosted) {
	if !h.group.IsLeader() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stewardTimeout/2)
	defer cancel()
	if err := h.group.Transfer(ctx, ""); err != nil {
		n.log.Warn("a diverged replica's leadership was not handed over", "group", number, "err", err)
	}
}

// takeOut closes a replica and leaves its files.
func (g *groups) takeOut(number id.Shard, h hosted) error {
	g.mu.Lock()
	delete(g.shards, number)
	g.mu.Unlock()
	g.meters.Dropped(number)
	return g.shut(h)
}

// reopen sets a replica's files aside and opens it on nothing but the segments that are
// sound, so that its leader need not send those that it has, too.
func (g *groups) reopen(number id.Shard) error {
	aside, err := g.outages.setAside(g.folder(number))
	if err != nil {
		return err
	}
	if err := raftfsm.Prepare(g.folder(number)); err != nil {
		return err
	}
	if n, err := raftfsm.SalvageSegments(aside, g.folder(number)); err != nil {
		g.log.Warn("not all sound segments of a damaged replica were kept: they are sent again", "group", number, "err", err)
	} else if n > 0 {
		g.log.Info("the sound segments of a damaged replica were kept", "group", number, "segments", n)
	}
	state := g.newShard()
	group, err := g.open(number, state)
	if err != nil {
		return err
	}
	g.log.Info("a replica is made anew from its peers", "group", number)
	g.outages.reopened(number)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shards[number] = hosted{group, state}
	return nil
}

// voteOf asks a shard's confirmed leader whether this node votes there.
func (n *Node) voteOf(ctx context.Context, at metafsm.ShardVoters) (votes bool, leader id.Member, err error) {
	for _, m := range at.Holders() {
		if m == n.member {
			continue
		}
		r, err := n.askReplica(ctx, m, replicaQuery{at.Shard, true})
		if err != nil || !r.Leads {
			continue
		}
		return slices.Contains(r.Servers, raftfsm.Server{Member: n.member, Voter: true}), m, nil
	}
	return false, "", fmt.Errorf("%s has no leader that answers", nameOf(at.Shard))
}

// demotion asks a group's leader to take a member's vote.
type demotion struct {
	Group  id.Shard  `json:"group"`
	Member id.Member `json:"member"`
}

func (n *Node) askDemotion(ctx context.Context, leader id.Member, number id.Shard) error {
	return n.askPeer(ctx, leader, methodDemote, demotion{number, n.member}, nil)
}

// serveDemote takes the vote of a member whose replica is damaged, if the others can
// do without it.
func (n *Node) serveDemote(ctx context.Context, body []byte) ([]byte, error) {
	var d demotion
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, fmt.Errorf("read a demotion: %w", err)
	}
	h, open := n.groups.hosted(d.Group)
	if !open {
		return nil, fmt.Errorf("group %d is not open", d.Group)
	}
	servers, index, err := h.group.Servers()
	if err != nil {
		return nil, err
	}
	rest := votersBut(servers, d.Member)
	if len(rest) == 0 {
		return nil, fmt.Errorf("group %d has no other voter", d.Group)
	}
	if err := n.enough(ctx, d.Group, h.group.Status().Commit, rest); err != nil {
		return nil, err
	}
	n.log.Warn("a damaged replica loses its vote until it is made anew", "group", d.Group, "node", d.Member)
	return nil, h.group.Demote(ctx, d.Member, index)
}

// votersBut gives the voters among servers without m.
func votersBut(servers []raftfsm.Server, m id.Member) []id.Member {
	var rest []id.Member
	for _, s := range servers {
		if s.Voter && s.Member != m {
			rest = append(rest, s.Member)
		}
	}
	return rest
}

// returnVotes gives the members that lost their vote in a group at rest, which this
// node leads, the vote back once they have caught up.
func (n *Node) returnVotes(ctx context.Context, epoch uint64, at metafsm.ShardVoters, group *raftfsm.Group) error {
	servers, index, err := group.Servers()
	if err != nil {
		return err
	}
	voters, commit := votersBut(servers, ""), group.Status().Commit
	for _, s := range servers {
		if s.Voter || !slices.Contains(at.Voters, s.Member) {
			continue
		}
		r, err := n.askReplica(ctx, s.Member, replicaQuery{Group: at.Shard})
		if err != nil || !r.ready(epoch, commit) {
			continue
		}
		if err := n.enough(ctx, at.Shard, commit, append(slices.Clone(voters), s.Member)); err != nil {
			return err
		}
		n.log.Info("a replica was made anew and votes again", "group", at.Shard, "node", s.Member)
		return group.AddVoter(ctx, s.Member, index)
	}
	return nil
}
