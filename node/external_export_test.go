package node

import (
	"context"
	"encoding/binary"
	"errors"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/shard"
	"facet/shard/claim"
)

// ExternalHome returns the home shard of an external id, and its name.
func (n *Node) ExternalHome(gallery id.Gallery, externalID string) (id.Shard, shard.ExternalName, error) {
	key, generation, err := n.DataKey(gallery)
	if err != nil {
		return 0, shard.ExternalName{}, err
	}
	name := shard.NameExternal(key, gallery, generation, externalID)
	cluster, _ := n.replicas.Meta().Cluster()
	return id.Shard(metafsm.Jump(binary.BigEndian.Uint64(name[:8]), cluster.Shards) + 1), name, nil
}

// LeaveClaim claims an external id for a subject on the leader of its home, as a node does that dies
// before it registers the subject. ok is false if the leader is elsewhere.
func (n *Node) LeaveClaim(ctx context.Context, gallery id.Gallery, externalID string, subject id.Subject) (ok bool, err error) {
	home, name, err := n.ExternalHome(gallery, externalID)
	if err != nil {
		return false, err
	}
	g, here := n.replicas.Group(home)
	if !here || !g.IsLeader() {
		return false, nil
	}
	_, generation, err := n.DataKey(gallery)
	if err != nil {
		return false, err
	}
	raw, err := g.Propose(ctx, shardfsm.ClaimOp.Encode(shardfsm.Claim{
		Gallery: gallery, Generation: generation, Changes: []claim.Change{{Name: name, Subject: subject}},
	}))
	if err != nil {
		return false, err
	}
	a, err := shardfsm.ClaimOp.Answer(raw)
	if err == nil && (a.Status != shardfsm.Done || a.Holders[0].Subject != subject) {
		err = errors.New("the external id is taken")
	}
	return err == nil, err
}

// ClaimsHere counts the claims on this node's replicas of all shards.
func (n *Node) ClaimsHere() (count int) {
	for _, s := range n.router.Shards() {
		if m, here := n.replicas.Shard(s); here {
			count += m.Claims().Len()
		}
	}
	return count
}
