package replicas

import (
	"context"
	"fmt"
	"slices"

	"facet/internal/id"
	"facet/node/peer"
	"facet/raftfsm"
)

const (
	// replicaBehind is the most entries that a replica may lag and still count as caught
	// up.
	replicaBehind = 100

	methodReplica = "node.replica"
)

// Word is a node's report on its replica of a group.
type Word struct {
	// Member is the member that answers. It may not be the member that was asked: if the node
	// has a new data directory, it is a new member at the same address.
	Member id.Member `json:"member,omitempty"`
	// Epoch is the epoch of the node's shard map. Mine reports whether that map lists the
	// node among the group's voters.
	Epoch uint64 `json:"epoch"`
	Mine  bool   `json:"mine"`
	// Open reports whether the replica runs and is not about to stop.
	Open bool `json:"open"`
	// Out reports whether the replica was taken out of service and has no state again yet.
	Out bool `json:"out,omitempty"`
	// Applied is the index of the last entry that the replica has applied.
	Applied uint64 `json:"applied"`
	// Leads reports whether a quorum has just confirmed the node as the group's leader. Only
	// then Commit and Servers are set, to the group's commit index and members.
	Leads   bool             `json:"leads"`
	Commit  uint64           `json:"commit"`
	Servers []raftfsm.Server `json:"servers"`
}

// Ready reports whether the replica may get a vote in a group whose leader has the map of
// this epoch and has committed up to commit.
func (w Word) Ready(epoch, commit uint64) bool {
	return w.Open && !w.Out && w.Mine && w.Epoch >= epoch && w.CaughtUp(commit)
}

// CaughtUp reports whether the replica has state and is at most replicaBehind entries behind
// commit. An empty replica gives no vote in an election, even if the group is short.
func (w Word) CaughtUp(commit uint64) bool {
	return w.Open && w.Applied > 0 && w.Applied+replicaBehind >= commit
}

// own returns this node's Word. If q asks for it, own first confirms that this node leads.
func (r *Replicas) own(ctx context.Context, q Query) (Word, error) {
	shards := r.state.Shards()
	at, _ := shards.Shard(q.Group)
	w := Word{Member: r.cfg.Self, Epoch: shards.Epoch, Mine: slices.Contains(at.Voters, r.cfg.Self), Out: r.Out(q.Group)}
	group, ok := r.Group(q.Group)
	if !ok {
		return w, nil
	}
	w.Open, w.Applied = !r.stopping.Load(), group.Applied()
	if !q.Confirm || !group.IsLeader() {
		return w, nil
	}
	index, err := group.ReadIndex(ctx)
	if err == nil {
		err = group.WaitApplied(ctx, index)
	}
	if err == nil {
		w.Servers, _, err = group.Servers()
	}
	w.Leads, w.Commit, w.Applied = err == nil, index, group.Applied()
	return w, nil
}

// Query asks for a node's Word on a group. Confirm asks a leader to confirm its leadership
// with a quorum.
type Query struct {
	Group   id.Shard `json:"group"`
	Confirm bool     `json:"confirm"`
}

// Ask returns a member's Word.
func (r *Replicas) Ask(ctx context.Context, m id.Member, q Query) (w Word, err error) {
	ctx, cancel := context.WithTimeout(ctx, peer.AnswerTimeout)
	defer cancel()
	if m == r.cfg.Self {
		return r.own(ctx, q)
	}
	if err := r.cfg.Peers.Ask(ctx, m, methodReplica, q, &w); err != nil {
		return w, err
	}
	if w.Member != m {
		return Word{}, fmt.Errorf("%s was asked about group %d, and %s answered", m, q.Group, w.Member)
	}
	return w, nil
}

// Methods returns the handlers of the requests that the replicas answer to other nodes.
func (r *Replicas) Methods() map[string]peer.Handler {
	return map[string]peer.Handler{
		methodReplica: peer.Answers(r.own),
		methodDemote:  peer.Obeys(Repairer{r}.demote),
		methodErasure: peer.Answers(Erasures{r}.own),
		methodBeats:   takes(r.beats),
		methodProofs:  proves(r.proofs),
	}
}

// Leading asks members for the group's confirmed leader and returns its Word.
func (r *Replicas) Leading(ctx context.Context, number id.Shard, members []id.Member) (Word, bool) {
	for _, m := range members {
		if w, err := r.Ask(ctx, m, Query{number, true}); err == nil && w.Leads {
			return w, true
		}
	}
	return Word{}, false
}

// CaughtUp returns how many of members have caught up with commit.
func (r *Replicas) CaughtUp(ctx context.Context, number id.Shard, commit uint64, members []id.Member) int {
	count := 0
	for _, m := range members {
		if w, err := r.Ask(ctx, m, Query{Group: number}); err == nil && w.CaughtUp(commit) {
			count++
		}
	}
	return count
}

// Enough returns an error unless a majority of voters has caught up with commit.
func (r *Replicas) Enough(ctx context.Context, number id.Shard, commit uint64, voters []id.Member) error {
	if have, quorum := r.CaughtUp(ctx, number, commit, voters), len(voters)/2+1; have < quorum {
		return fmt.Errorf("%d of %d voters have caught up, and it takes %d", have, len(voters), quorum)
	}
	return nil
}
