package node

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

const (
	// movesMax is how many shards are on the move at once: a replica that catches up
	// costs its peers disk and network.
	movesMax = 2
	// AwayDefault is how long a node may be missed before its replicas are made anew
	// elsewhere.
	AwayDefault = 10 * time.Minute
)

// presence remembers since when nodes are missed, on meta's leader.
type presence struct{ missed map[id.Member]time.Time }

// seats gives the members that may hold replicas, and who takes over from those that
// may not any more.
func (n *Node) seats(p *presence) ([]metafsm.Seat, map[id.Member]id.Member) {
	zones := map[id.Member]string{n.member: n.cfg.Zone} // of those who are there
	for _, m := range n.gossip.Members() {
		zones[m.Member] = m.Zone
	}
	nodes := withFounders(n.groups.metaState.Nodes(), n.groups.metaState.Shards().Shards, zones)
	members := map[id.Node]id.Member{}
	for _, r := range nodes {
		members[r.ID] = r.Member
	}
	var seats []metafsm.Seat
	heirs := map[id.Member]id.Member{}
	for _, r := range nodes {
		if r.State != metafsm.NodeActive {
			if heir, ok := members[r.Heir]; ok {
				heirs[r.Member] = heir
			}
			continue
		}
		seat := metafsm.Seat{Member: r.Member, Zone: r.Zone}
		if _, alive := zones[r.Member]; alive {
			delete(p.missed, r.Member)
		} else {
			since, known := p.missed[r.Member]
			if !known {
				since = time.Now()
				p.missed[r.Member] = since
			}
			seat.Missed, seat.Away = true, time.Since(since) >= n.cfg.Away
		}
		seats = append(seats, seat)
	}
	return seats, heirs
}

// withFounders gives meta's records of nodes, and one for each voter of the map who has
// none: founders are given shards before they have put in their records, and one that
// takes longer must not be taken for gone.
func withFounders(records []metafsm.Node, shards []metafsm.ShardVoters, zones map[id.Member]string) []metafsm.Node {
	known := map[id.Node]bool{}
	for _, r := range records {
		known[r.ID] = true
	}
	all := slices.Clone(records)
	for _, at := range shards {
		for _, m := range at.Voters {
			if node, err := m.Node(); err == nil && !known[node] {
				known[node] = true
				all = append(all, metafsm.Node{ID: node, Member: m, Zone: zones[m], State: metafsm.NodeActive})
			}
		}
	}
	return all
}

// keepPlaces moves shards to where the plan wants them, a few at a time. It runs on
// meta's leader.
func (n *Node) keepPlaces(ctx context.Context, p *presence) error {
	cluster, _ := n.groups.metaState.Cluster()
	now := n.groups.metaState.Shards()
	if now.Epoch == 0 {
		return nil
	}
	seats, heirs := n.seats(p)
	arrived := false
	shards := slices.Clone(now.Shards)
	for i, at := range shards {
		if at.Moving && n.hasMoved(ctx, at) {
			shards[i].Moving, shards[i].Leaving = false, nil
			n.log.Info("a shard has moved", "group", at.Shard, "voters", at.Voters)
			arrived = true
		}
	}
	plan := metafsm.Replan(shards, seats, cluster.WantedReplicas(), heirs)
	next, _ := metafsm.Next(shards, plan, seats, movesMax)
	for i, at := range shards {
		if !at.Moved && next[i].Moving && !at.Moving && !n.founded(ctx, at) {
			next[i] = at
		}
	}
	if arrived || !reflect.DeepEqual(next, shards) {
		if err := n.propose(ctx, metafsm.PutShardsOp.Encode(metafsm.PutShards{Previous: now.Epoch, Shards: next})); err != nil {
			return fmt.Errorf("change the shard map: %w", err)
		}
	}
	return n.keepMetaVoters(ctx, seats)
}

// founded tells whether a group has begun. Its first voters found it by the map, so the
// map must not move it before: then nobody would.
func (n *Node) founded(ctx context.Context, at metafsm.ShardVoters) bool {
	leader, ok := n.leading(ctx, at.Shard, at.Voters)
	return ok && len(leader.Servers) > 0
}

// hasMoved tells whether a group's members are its wanted voters and nobody else.
func (n *Node) hasMoved(ctx context.Context, at metafsm.ShardVoters) bool {
	leader, ok := n.leading(ctx, at.Shard, at.Holders())
	if !ok || len(leader.Servers) != len(at.Voters) {
		return false
	}
	for _, s := range leader.Servers {
		if !s.Voter || !slices.Contains(at.Voters, s.Member) {
			return false
		}
	}
	return true
}

// keepMetaVoters keeps as many voters of meta as there should be, on nodes that are
// not to leave, and takes removed nodes out of meta once they hold nothing. One change
// at a time.
func (n *Node) keepMetaVoters(ctx context.Context, seats []metafsm.Seat) error {
	group := n.groups.meta
	servers, index, err := group.Servers()
	if err != nil || index == 0 {
		return err
	}
	var members []metaMember
	for _, s := range servers {
		members = append(members, metaMember{s.Member, s.Voter})
	}
	switch step := nextMetaStep(members, seats, n.removed(), n.holders()); step.kind {
	case metaPromote:
		commit := group.Status().Commit
		voters := []id.Member{step.member}
		for _, m := range members {
			if m.voter {
				voters = append(voters, m.member)
			}
		}
		if n.caughtUp(ctx, id.Meta, commit, voters[:1]) == 0 {
			return nil // it has still to catch up
		}
		if err := n.enough(ctx, id.Meta, commit, voters); err != nil {
			return err
		}
		n.log.Info("a node becomes a voter of meta", "node", step.member)
		return group.AddVoter(ctx, step.member, index)
	case metaDemote, metaRemove:
		if step.member == n.member {
			return group.Transfer(ctx, "")
		}
		n.log.Info("a node leaves meta", "node", step.member, "stays", step.kind == metaDemote)
		if step.kind == metaDemote {
			return group.Demote(ctx, step.member, index)
		}
		return group.Remove(ctx, step.member, index)
	default:
		return nil
	}
}

// removed gives the members of nodes that were removed.
func (n *Node) removed() map[id.Member]bool {
	gone := map[id.Member]bool{}
	for _, r := range n.groups.metaState.Nodes() {
		if r.State == metafsm.NodeRemoved {
			gone[r.Member] = true
		}
	}
	return gone
}

// holders gives the members that may have a replica of a shard.
func (n *Node) holders() map[id.Member]bool {
	holding := map[id.Member]bool{}
	for _, at := range n.groups.metaState.Shards().Shards {
		for _, m := range at.Holders() {
			holding[m] = true
		}
	}
	return holding
}

// metaMember is a member of meta.
type metaMember struct {
	member id.Member
	voter  bool
}

// metaStep is a change of meta's members.
type metaStep struct {
	kind   metaStepKind
	member id.Member
}

type metaStepKind uint8

const (
	metaStay metaStepKind = iota
	metaPromote
	metaDemote
	metaRemove
)

// nextMetaStep gives the next change on the way to the members that meta should have:
// votersMax voters, or the largest odd number that is not more than the nodes. A voter
// that is to leave goes when as many others vote; one that is away goes only if
// another has taken its place, or if an odd number of others, at least three, is left.
func nextMetaStep(members []metaMember, seats []metafsm.Seat, removed, holders map[id.Member]bool) metaStep {
	seat := map[id.Member]metafsm.Seat{}
	for _, s := range seats {
		seat[s.Member] = s
	}
	zones := map[string]int{}
	var good, bad, spare []id.Member
	for _, m := range members {
		s, ok := seat[m.member]
		switch {
		case m.voter && ok && !s.Away:
			good = append(good, m.member)
			zones[s.Zone]++
		case m.voter:
			bad = append(bad, m.member)
		case ok && !s.Missed && !s.Away:
			spare = append(spare, m.member)
		}
	}
	want := min(votersMax, len(good)+len(spare))
	if want > 2 {
		want -= 1 - want%2
	}
	if len(good) < want {
		return metaStep{metaPromote, slices.MinFunc(spare, func(a, b id.Member) int { return zones[seat[a].Zone] - zones[seat[b].Zone] })}
	}
	for _, m := range bad {
		_, known := seat[m]
		switch {
		case !known && removed[m] && !holders[m]:
			return metaStep{metaRemove, m}
		case !known && len(good) > 0, len(good) >= votersMax, len(good) >= 3 && (len(good)+len(bad))%2 == 0:
			return metaStep{metaDemote, m}
		}
	}
	for _, m := range members {
		if !m.voter && removed[m.member] && !holders[m.member] {
			return metaStep{metaRemove, m.member}
		}
	}
	return metaStep{}
}

// errFew says that the nodes that would be left are too few.
var errFew = errors.New("the nodes that are left are too few for the present number of replicas")

// mayLeave fails if a node's leave would lower the number of a shard's replicas, or
// leave fewer nodes than voters.
func (n *Node) mayLeave(who id.Node) error {
	left := 0
	for _, r := range n.groups.metaState.Nodes() {
		if r.ID != who && r.State == metafsm.NodeActive {
			left++
		}
	}
	most := 0
	for _, at := range n.groups.metaState.Shards().Shards {
		most = max(most, len(at.Voters))
	}
	if left < most {
		return fmt.Errorf("%w: %d nodes for %d", errFew, left, most)
	}
	return nil
}
