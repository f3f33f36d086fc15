package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

const (
	// stewardPause is how often the steward looks whether something is to be done.
	stewardPause = 500 * time.Millisecond
	// stewardTimeout bounds one step.
	stewardTimeout = 5 * time.Second
	// leaderRest is how long a group keeps its leader before this node offers the
	// leadership to the member that the map names first.
	leaderRest = 5 * time.Second
)

// stewardRun does what this node owes the cluster's records: on meta's leader it
// founds the records and takes nodes in; on every node it opens the groups that
// the map gives to it and gives leaderships to those whom the map names first.
// It ends when ctx does.
func (n *Node) stewardRun(ctx context.Context) {
	tick := time.NewTicker(stewardPause)
	defer tick.Stop()
	led := map[id.Shard]time.Time{}
	present := &presence{missed: map[id.Member]time.Time{}}
	for {
		changed := n.groups.metaState.Changed()
		if err := n.stewardStep(ctx, led, present); err != nil && ctx.Err() == nil {
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

func (n *Node) stewardStep(ctx context.Context, led map[id.Shard]time.Time, present *presence) error {
	ctx, cancel := context.WithTimeout(ctx, stewardTimeout)
	defer cancel()
	if n.groups.meta.IsLeader() {
		if err := n.keepRecords(ctx, present); err != nil {
			return err
		}
	} else {
		clear(present.missed) // a leader that comes to it later counts anew
	}
	if err := errors.Join(n.checkFounding(), n.checkStanding(ctx)); err != nil {
		n.fail(err)
		return err
	}
	noted, err := noteLevel(n.cfg.Dir, n.groups.metaState.Level())
	if err != nil {
		return err
	}
	n.groups.noted.Store(noted)
	n.mendReplicas(ctx)
	if err := n.groups.host(ctx, n.router.SyncMeta); err != nil {
		return err
	}
	if err := n.register(ctx); err != nil {
		return err
	}
	n.moveReplicas(ctx)
	n.offerLeaderships(ctx, led)
	n.announce()
	return nil
}

// keepRecords founds the cluster's record and its map, takes nodes in, and keeps the
// shards where they belong.
func (n *Node) keepRecords(ctx context.Context, present *presence) error {
	meta := n.groups.metaState
	if _, founded := meta.Cluster(); !founded {
		if err := n.foundRecord(ctx); err != nil {
			return err
		}
	}
	cluster, founded := meta.Cluster()
	if !founded {
		return nil
	}
	zones := map[id.Member]string{}
	for _, m := range n.gossip.Members() {
		zones[m.Member] = m.Zone
		who, err := m.Member.Node()
		if err != nil || n.isRemoved(who) || m.Pack != packHint(cluster.Pack) || !m.Cluster.IsZero() && m.Cluster != cluster.ID ||
			max(1, m.Level) < meta.Level() {
			continue
		}
		if err := n.takeIn(ctx, m.Member); err != nil {
			return err
		}
	}
	if meta.Shards().Epoch > 0 {
		return errors.Join(n.router.Sweep(ctx), n.keepPlaces(ctx, present), n.raiseLevel(ctx))
	}
	members := n.groups.Members(id.Meta)
	n.log.Info("placing shards", "shards", cluster.Shards, "nodes", len(members), "replicas", cluster.Replicas)
	seats := make([]metafsm.Seat, 0, len(members))
	for _, m := range members {
		seats = append(seats, metafsm.Seat{Member: m, Zone: zones[m]})
	}
	return n.propose(ctx, metafsm.PutShardsOp.Encode(metafsm.PutShards{Shards: metafsm.Place(seats, cluster.Shards, cluster.Replicas)}))
}

// foundRecord proposes the record that makes these nodes a cluster. Only the
// first proposal counts.
func (n *Node) foundRecord(ctx context.Context) error {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return fmt.Errorf("make a cluster id: %w", err)
	}
	return n.propose(ctx, metafsm.FoundOp.Encode(metafsm.Found{Cluster: metafsm.Cluster{
		ID:       id.Cluster{UUID: id.Random(random)},
		Shards:   n.cfg.Shards,
		Replicas: min(n.cfg.Replicas, len(n.groups.Members(id.Meta))),
		Wanted:   n.cfg.Replicas,
		Pack:     n.cfg.Pack,
		KeyCheck: n.keyCheck(),

		SlotsPerShard: uint32(n.cfg.SlotsPerShard),
		Created:       time.Now().UnixMilli(),
	}}))
}

// takeIn adds a node to meta when it is not there: as a member that receives the
// log and has no vote.
func (n *Node) takeIn(ctx context.Context, m id.Member) error {
	servers, index, err := n.groups.meta.Servers()
	if err != nil {
		return err
	}
	for _, s := range servers {
		if s.Member == m {
			return nil
		}
	}
	n.log.Info("taking a node in", "node", m)
	return n.groups.meta.AddNonvoter(ctx, m, index)
}

func (n *Node) propose(ctx context.Context, cmd []byte) error {
	_, err := n.groups.meta.Propose(ctx, cmd)
	return err
}

// register puts this node's own record into meta when it is missing or old.
func (n *Node) register(ctx context.Context) error {
	level := recordLevel(n.cfg.level())
	known := slices.ContainsFunc(n.groups.metaState.Nodes(), func(r metafsm.Node) bool {
		return r.Member == n.member && r.Name == n.cfg.Name && r.Zone == n.cfg.Zone && r.Level == level
	})
	if _, founded := n.groups.metaState.Cluster(); !founded || known {
		return nil
	}
	return n.router.PutNode(ctx, metafsm.Node{
		ID: n.id, Member: n.member, Name: n.cfg.Name, Zone: n.cfg.Zone, Level: level, Joined: time.Now().UnixMilli(),
	})
}

// recorded tells whether meta has a record of this node: until then others know neither
// its name nor its zone.
func (n *Node) recorded() bool {
	return slices.ContainsFunc(n.groups.metaState.Nodes(), func(r metafsm.Node) bool { return r.Member == n.member })
}

// checkFounding refuses to serve a cluster that was founded with another model
// pack, whose templates can't be compared with ours, or with another cluster key.
func (n *Node) checkFounding() error {
	cluster, founded := n.groups.metaState.Cluster()
	switch {
	case !founded:
		return nil
	case cluster.Pack != n.cfg.Pack:
		return otherPack(cluster.Pack, n.cfg.Pack)
	case !n.hasKey(cluster.KeyCheck):
		return errors.New("this node's cluster key is not the cluster's: copy the key file of another node")
	}
	return nil
}

// otherPack says why a node with the pack own can't serve in a cluster.
func otherPack(cluster, own string) error {
	return fmt.Errorf("this cluster was founded with model pack %.12s, and this node has %.12s: "+
		"templates of different packs can't be compared; start it with the cluster's pack", cluster, own)
}

// offerLeaderships hands a group that this node leads to the member that the map
// names first, when that one is there and has caught up, and the group has been at
// rest. While a leadership is handed over nothing is written: to one that does not
// answer it must not even be offered.
func (n *Node) offerLeaderships(ctx context.Context, led map[id.Shard]time.Time) {
	for _, first := range n.groups.metaState.Shards().Shards {
		number := first.Shard
		group, ok := n.groups.Group(number)
		if !ok || !group.IsLeader() {
			delete(led, number)
			continue
		}
		since, noted := led[number]
		if !noted {
			led[number] = time.Now()
			continue
		}
		wanted := first.Voters[0]
		if wanted == n.member || time.Since(since) < leaderRest {
			continue
		}
		led[number] = time.Now()
		r, err := n.askReplica(ctx, wanted, replicaQuery{Group: number})
		if err != nil || !r.Open || r.Applied+replicaBehind < group.Status().Commit {
			continue
		}
		if err := group.Transfer(ctx, wanted); err != nil {
			n.log.Warn("leadership was not handed over", "group", number, "err", err)
		}
	}
}
