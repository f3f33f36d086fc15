package placement

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

// KeepRecords does the work of meta's leader: it founds the cluster's record and its map,
// takes nodes in and keeps the shards in their places. On any other node it only forgets
// since when nodes are missing. So a new leader starts to count when it becomes the leader.
func (p *Placement) KeepRecords(ctx context.Context) error {
	if !p.cfg.Replicas.MetaGroup().IsLeader() {
		clear(p.missed)
		return nil
	}
	meta := p.cfg.Replicas.Meta()
	if _, founded := meta.Cluster(); !founded {
		if err := p.foundRecord(ctx); err != nil {
			return err
		}
	}
	cluster, founded := meta.Cluster()
	if !founded {
		return nil
	}
	zones := map[id.Member]string{}
	for _, m := range p.cfg.Gossip.Members() {
		zones[m.Member] = m.Zone
		who, err := m.Member.Node()
		if err != nil || p.isRemoved(who) || m.Pack != PackHint(cluster.Pack) || !m.Cluster.IsZero() && m.Cluster != cluster.ID ||
			m.Level < meta.Level() {
			continue
		}
		if err := p.takeIn(ctx, m.Member); err != nil {
			return err
		}
	}
	if meta.Shards().Epoch > 0 {
		return errors.Join(p.keepPlaces(ctx), p.raiseLevel(ctx), p.cfg.Records.EnsureSigner(ctx))
	}
	members := p.cfg.Replicas.Members(id.Meta)
	p.cfg.Log.InfoContext(ctx, "placing shards", "shards", cluster.Shards, "nodes", len(members), "replicas", cluster.Replicas)
	seats := make([]metafsm.Seat, 0, len(members))
	for _, m := range members {
		seats = append(seats, metafsm.Seat{Member: m, Zone: zones[m]})
	}
	return p.propose(ctx, metafsm.PutShardsOp.Encode(metafsm.PutShards{Shards: metafsm.Place(seats, cluster.Shards, cluster.Replicas)}))
}

// foundRecord proposes the cluster's record. Only the first proposal counts.
func (p *Placement) foundRecord(ctx context.Context) error {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return fmt.Errorf("make a cluster id: %w", err)
	}
	return p.propose(ctx, metafsm.FoundOp.Encode(metafsm.Found{Cluster: metafsm.Cluster{
		ID:       id.Cluster{UUID: id.Random(random)},
		Shards:   p.cfg.Shards,
		Replicas: min(p.cfg.Copies, len(p.cfg.Replicas.Members(id.Meta))),
		Wanted:   p.cfg.Copies,
		Pack:     p.cfg.Pack,
		KeyCheck: p.cfg.KeyCheck(),

		SlotsPerShard: uint32(p.cfg.SlotsPerShard),
		Created:       time.Now().UnixMilli(),
	}}))
}

// takeIn adds a node to meta's members without a vote, unless it is one already.
func (p *Placement) takeIn(ctx context.Context, m id.Member) error {
	servers, index, err := p.cfg.Replicas.MetaGroup().Servers()
	if err != nil {
		return err
	}
	for _, s := range servers {
		if s.Member == m {
			return nil
		}
	}
	p.cfg.Log.InfoContext(ctx, "taking a node in", "node", m)
	return p.cfg.Replicas.MetaGroup().AddNonvoter(ctx, m, index)
}

func (p *Placement) propose(ctx context.Context, cmd []byte) error {
	_, err := p.cfg.Replicas.MetaGroup().Propose(ctx, cmd)
	return err
}

// Register puts this node's record into meta if it is missing or outdated.
func (p *Placement) Register(ctx context.Context) error {
	if _, founded := p.cfg.Replicas.Meta().Cluster(); !founded || recorded(p) {
		return nil
	}
	return p.cfg.Records.PutNode(ctx, metafsm.Node{
		ID: p.cfg.Node, Member: p.cfg.Self, Name: p.cfg.Name, Zone: p.cfg.Zone, Level: p.cfg.Level, Joined: time.Now().UnixMilli(),
	})
}

// recorded reports whether meta has the record of this node as it should be.
func recorded(p *Placement) bool {
	return slices.ContainsFunc(p.cfg.Replicas.Meta().Nodes(), func(r metafsm.Node) bool {
		return r.Member == p.cfg.Self && r.Name == p.cfg.Name && r.Zone == p.cfg.Zone && r.Level == p.cfg.Level
	})
}

// CheckFounding returns an error if the cluster was founded with another model pack, whose
// templates can't be compared with this node's, has another cluster key, or took this node in
// with forms that it does not read.
func (p *Placement) CheckFounding(ctx context.Context) error {
	cluster, founded := p.cfg.Replicas.Meta().Cluster()
	switch {
	case !founded:
		return nil
	case cluster.Pack != p.cfg.Pack:
		return &PackError{cluster.Pack, p.cfg.Pack}
	case !p.cfg.HasKey(cluster.KeyCheck):
		return errors.New("this node's cluster key is not the cluster's: copy the key file of another node")
	case recorded(p):
		return nil
	}
	return p.checkLevel(ctx)
}

// PackError is returned for a node whose model pack is not the cluster's.
type PackError struct {
	Cluster string // identity of the cluster's pack, or its first 16 digits
	Own     string
}

// Error names both packs.
func (e *PackError) Error() string {
	return fmt.Sprintf("this cluster was founded with model pack %.12s, and this node has %.12s: "+
		"templates of different packs can't be compared; start it with the cluster's pack", e.Cluster, e.Own)
}
