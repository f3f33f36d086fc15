package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
)

const (
	// replicaTimeout bounds the wait for a node's word on its replica.
	replicaTimeout = time.Second
	// replicaBehind is how many entries a replica that has caught up may be behind.
	replicaBehind = 100
)

// replica is a node's own word on its replica of a group.
type replica struct {
	// Member is who answers. Calls go by a node's id and address: another member of the
	// same node, with another data directory, may be there by now.
	Member id.Member `json:"member,omitempty"`
	// Epoch is that of the shard map that the node goes by; Mine tells that the map
	// has the node among the group's voters.
	Epoch uint64 `json:"epoch"`
	Mine  bool   `json:"mine"`
	// Open tells that the replica runs, and is not about to stop; Applied how far it
	// has come.
	Open bool `json:"open"`
	// Out tells that it was taken out of service and has no state again yet.
	Out     bool   `json:"out,omitempty"`
	Applied uint64 `json:"applied"`
	// Leads tells that a quorum has just confirmed the node as the group's leader;
	// Commit and Servers are then the group's.
	Leads   bool             `json:"leads"`
	Commit  uint64           `json:"commit"`
	Servers []raftfsm.Server `json:"servers"`
}

// ready tells whether the replica may be given a vote in a group whose leader goes by
// the map of epoch and has committed up to commit.
func (r replica) ready(epoch, commit uint64) bool {
	return r.Open && !r.Out && r.Mine && r.Epoch >= epoch && r.Applied+replicaBehind >= commit
}

// ownReplica is this node's word on its replica of a group. Leadership is looked
// into where confirm asks for it.
func (n *Node) ownReplica(ctx context.Context, number id.Shard, confirm bool) replica {
	shards := n.groups.metaState.Shards()
	at, _ := shards.Shard(number)
	r := replica{Member: n.member, Epoch: shards.Epoch, Mine: slices.Contains(at.Voters, n.member)}
	_, r.Out = n.groups.outages.get(number)
	group, ok := n.groups.Group(number)
	if !ok {
		return r
	}
	r.Open, r.Applied = !n.closing.Load(), group.Applied()
	if !confirm || !group.IsLeader() {
		return r
	}
	index, err := group.ReadIndex(ctx)
	if err == nil {
		err = group.WaitApplied(ctx, index)
	}
	if err == nil {
		r.Servers, _, err = group.Servers()
	}
	r.Leads, r.Commit, r.Applied = err == nil, index, group.Applied()
	return r
}

// replicaQuery asks for a node's word.
type replicaQuery struct {
	Group   id.Shard `json:"group"`
	Confirm bool     `json:"confirm"`
}

// askReplica asks a member for its word on its replica of a group.
func (n *Node) askReplica(ctx context.Context, m id.Member, q replicaQuery) (replica, error) {
	ctx, cancel := context.WithTimeout(ctx, replicaTimeout)
	defer cancel()
	if m == n.member {
		return n.ownReplica(ctx, q.Group, q.Confirm), nil
	}
	var r replica
	body, err := json.Marshal(q)
	if err != nil {
		return r, fmt.Errorf("encode a question about group %d: %w", q.Group, err)
	}
	answer, err := n.peers.Call(ctx, m, methodReplica, body)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return r, fmt.Errorf("read %s's word on group %d: %w", m, q.Group, err)
	}
	// Release 0.1.0 does not say who answers.
	if r.Member != m && (r.Member != "" || n.groups.metaState.Level() >= metafsm.LevelReplicaMember) {
		return replica{}, fmt.Errorf("%s was asked about group %d, and %s answered", m, q.Group, r.Member)
	}
	return r, nil
}

// serveReplica answers askReplica.
func (n *Node) serveReplica(ctx context.Context, body []byte) ([]byte, error) {
	var q replicaQuery
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fmt.Errorf("read a question about a group: %w", err)
	}
	return json.Marshal(n.ownReplica(ctx, q.Group, q.Confirm))
}

// leading gives the word of the confirmed leader of a group among members.
func (n *Node) leading(ctx context.Context, number id.Shard, members []id.Member) (replica, bool) {
	for _, m := range members {
		if r, err := n.askReplica(ctx, m, replicaQuery{number, true}); err == nil && r.Leads {
			return r, true
		}
	}
	return replica{}, false
}

// caughtUp counts the members whose replica of a group is at most replicaBehind
// entries behind commit.
func (n *Node) caughtUp(ctx context.Context, number id.Shard, commit uint64, members []id.Member) int {
	count := 0
	for _, m := range members {
		r, err := n.askReplica(ctx, m, replicaQuery{Group: number})
		if err == nil && r.Open && r.Applied+replicaBehind >= commit {
			count++
		}
	}
	return count
}
