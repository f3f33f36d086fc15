package placement

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"facet/internal/id"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
)

// movesMax is the most shards on the move at once. A replica that catches up costs its
// peers disk and network.
const movesMax = 2

// Seats returns the members that may hold replicas. It also returns the heir of each member
// that must leave, if that member has one. It treats no member as away.
func (p *Placement) Seats() ([]metafsm.Seat, map[id.Member]id.Member) {
	return p.seats(map[id.Member]time.Time{})
}

// seats does the work of Seats, but treats a node as away when it has been missing for
// the time of SetAway. missed has the time since when each node is missing; seats updates it.
func (p *Placement) seats(missed map[id.Member]time.Time) ([]metafsm.Seat, map[id.Member]id.Member) {
	zones := map[id.Member]string{p.cfg.Self: p.cfg.Zone} // of the members that are present
	for _, m := range p.cfg.Gossip.Members() {
		zones[m.Member] = m.Zone
	}
	nodes := withFounders(p.cfg.Replicas.Meta().Nodes(), p.cfg.Replicas.Meta().Shards().Shards, zones)
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
			delete(missed, r.Member)
		} else {
			since, known := missed[r.Member]
			if !known {
				since = time.Now()
				missed[r.Member] = since
			}
			seat.Missed, seat.Away = true, time.Since(since) >= time.Duration(p.away.Load())
		}
		seats = append(seats, seat)
	}
	return seats, heirs
}

// withFounders returns meta's records of nodes. It adds a made-up record for each voter in
// the map that has no record: founders get shards before they have registered, and a founder
// that registers late must not count as gone.
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

// keepPlaces changes the map so that at most movesMax shards are on their way to their
// planned places. It runs on meta's leader.
func (p *Placement) keepPlaces(ctx context.Context) error {
	cluster, _ := p.cfg.Replicas.Meta().Cluster()
	now := p.cfg.Replicas.Meta().Shards()
	if now.Epoch == 0 {
		return nil
	}
	if slices.ContainsFunc(now.Shards, func(at metafsm.ShardVoters) bool { return at.Moving }) {
		// A leader before this one may have ended a move, which is then not this one's to record.
		if err := p.cfg.Records.SyncMeta(ctx); err != nil {
			return err
		}
		now = p.cfg.Replicas.Meta().Shards()
	}
	seats, heirs := p.seats(p.missed)
	shards, ends := p.arrive(ctx, now.Shards)
	plan := metafsm.Replan(shards, seats, cluster.WantedReplicas(), heirs)
	stay(plan, shards, p.present())
	next, _ := metafsm.Next(shards, plan, seats, movesMax)
	for i, at := range shards {
		if !at.Moved && next[i].Moving && !at.Moving && !p.Founded(ctx, at) {
			next[i] = at
		}
	}
	arrived := len(ends) > 0
	ends = append(ends, p.begin(shards, next)...)
	if arrived || !reflect.DeepEqual(next, shards) {
		if err := putShards(ctx, p, metafsm.PutShards{Previous: now.Epoch, Shards: next}, ends); err != nil {
			return fmt.Errorf("change the shard map: %w", err)
		}
	}
	return p.keepMetaVoters(ctx, seats)
}

// stay takes the shards out of the plan whose groups have no majority at present. Nobody
// could carry out their moves, and movesMax of them would keep all others from moving.
func stay(plan, now []metafsm.ShardVoters, present map[id.Member]bool) {
	for i, at := range now {
		here := 0
		for _, m := range at.Voters {
			if present[m] {
				here++
			}
		}
		if !at.Moving && here <= len(at.Voters)/2 {
			plan[i] = at
		}
	}
}

// present returns the members that gossip shows, and this one.
func (p *Placement) present() map[id.Member]bool {
	here := map[id.Member]bool{p.cfg.Self: true}
	for _, m := range p.cfg.Gossip.Members() {
		here[m.Member] = true
	}
	return here
}

// Founded reports whether a shard's group was bootstrapped. Only the first voters in the map
// bootstrap it, and only before its first move. So the shard must not move earlier.
func (p *Placement) Founded(ctx context.Context, at metafsm.ShardVoters) bool {
	leader, ok := p.cfg.Replicas.Leading(ctx, at.Shard, at.Voters)
	return ok && len(leader.Servers) > 0
}

// hasMoved reports whether a group's members are exactly its wanted voters.
func (p *Placement) hasMoved(ctx context.Context, at metafsm.ShardVoters) bool {
	leader, ok := p.cfg.Replicas.Leading(ctx, at.Shard, at.Holders())
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

// removed returns the members of nodes that were removed.
func (p *Placement) removed() map[id.Member]bool {
	gone := map[id.Member]bool{}
	for _, r := range p.cfg.Replicas.Meta().Nodes() {
		if r.State == metafsm.NodeRemoved {
			gone[r.Member] = true
		}
	}
	return gone
}

// Holders returns the members that may hold a replica of some shard.
func (p *Placement) Holders() map[id.Member]bool {
	holding := map[id.Member]bool{}
	for _, at := range p.cfg.Replicas.Meta().Shards().Shards {
		for _, m := range at.Holders() {
			holding[m] = true
		}
	}
	return holding
}

// errFew is returned when too few nodes would remain.
var errFew = errors.New("the nodes that are left are too few for the number of replicas")

// MayLeave returns an error if shards would have fewer replicas without the node: fewer
// active nodes would remain than replicas are wanted.
func (p *Placement) MayLeave(who id.Node) error {
	active, left := 0, 0
	for _, r := range p.cfg.Replicas.Meta().Nodes() {
		if r.State != metafsm.NodeActive {
			continue
		}
		active++
		if r.ID != who {
			left++
		}
	}
	cluster, _ := p.cfg.Replicas.Meta().Cluster()
	if most := min(cluster.WantedReplicas(), active); left < most {
		return fmt.Errorf("%w: %d nodes for %d", errFew, left, most)
	}
	return nil
}

// without returns the nodes of the members that are not in others.
func without(members, others []id.Member) []id.Node {
	list := []id.Node{}
	for _, m := range members {
		if node, err := m.Node(); err == nil && !slices.Contains(others, m) {
			list = append(list, node)
		}
	}
	return list
}

// Steps returns the differences between the map now and a plan.
func (*Placement) Steps(now, plan []metafsm.ShardVoters) []wire.PlanStep {
	steps := []wire.PlanStep{}
	for i, at := range now {
		s := wire.PlanStep{Shard: at.Shard, From: without(at.Voters, plan[i].Voters), To: without(plan[i].Voters, at.Voters)}
		if len(s.From)+len(s.To) > 0 {
			steps = append(steps, s)
		}
	}
	return steps
}

// AtOnce returns the most shards that are on the move at the same time.
func (*Placement) AtOnce() int { return movesMax }
