package replicas

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
	// wordTimeout bounds the wait for a node's word on its replica.
	wordTimeout = time.Second
	// replicaBehind is how many entries a replica that has caught up may be behind.
	replicaBehind = 100

	methodReplica = "node.replica"
)

// Word is a node's own word on its replica of a group.
type Word struct {
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

// Ready reports whether the replica may be given a vote in a group whose leader goes by
// the map of epoch and has committed up to commit.
func (w Word) Ready(epoch, commit uint64) bool {
	return w.Open && !w.Out && w.Mine && w.Epoch >= epoch && w.CaughtUp(commit)
}

// CaughtUp reports whether the replica is at most replicaBehind entries behind commit.
func (w Word) CaughtUp(commit uint64) bool { return w.Open && w.Applied+replicaBehind >= commit }

// own is this node's word on its replica of a group. Leadership is looked into where
// confirm asks for it.
func (r *Replicas) own(ctx context.Context, number id.Shard, confirm bool) Word {
	shards := r.state.Shards()
	at, _ := shards.Shard(number)
	w := Word{Member: r.cfg.Self, Epoch: shards.Epoch, Mine: slices.Contains(at.Voters, r.cfg.Self)}
	_, w.Out = r.outages.get(number)
	group, ok := r.Group(number)
	if !ok {
		return w
	}
	w.Open, w.Applied = !r.stopping.Load(), group.Applied()
	if !confirm || !group.IsLeader() {
		return w
	}
	index, err := group.ReadIndex(ctx)
	if err == nil {
		err = group.WaitApplied(ctx, index)
	}
	if err == nil {
		w.Servers, _, err = group.Servers()
	}
	w.Leads, w.Commit, w.Applied = err == nil, index, group.Applied()
	return w
}

// Query asks for a node's word.
type Query struct {
	Group   id.Shard `json:"group"`
	Confirm bool     `json:"confirm"`
}

// Ask asks a member for its word on its replica of a group.
func (r *Replicas) Ask(ctx context.Context, m id.Member, q Query) (w Word, err error) {
	ctx, cancel := context.WithTimeout(ctx, wordTimeout)
	defer cancel()
	if m == r.cfg.Self {
		return r.own(ctx, q.Group, q.Confirm), nil
	}
	if err := r.cfg.Peers.Ask(ctx, m, methodReplica, q, &w); err != nil {
		return w, err
	}
	// Release 0.1.0 does not say who answers.
	if w.Member != m && (w.Member != "" || r.state.Level() >= metafsm.LevelReplicaMember) {
		return Word{}, fmt.Errorf("%s was asked about group %d, and %s answered", m, q.Group, w.Member)
	}
	return w, nil
}

// Methods are the requests of other nodes that the replicas answer.
func (r *Replicas) Methods() map[string]func(context.Context, []byte) ([]byte, error) {
	return map[string]func(context.Context, []byte) ([]byte, error){
		methodReplica: r.serveReplica,
		methodDemote:  Repairer{r}.serveDemote,
	}
}

// serveReplica answers Ask.
func (r *Replicas) serveReplica(ctx context.Context, body []byte) ([]byte, error) {
	var q Query
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fmt.Errorf("read a question about a group: %w", err)
	}
	return json.Marshal(r.own(ctx, q.Group, q.Confirm))
}

// Leading returns the word of the confirmed leader of a group among members.
func (r *Replicas) Leading(ctx context.Context, number id.Shard, members []id.Member) (Word, bool) {
	for _, m := range members {
		if w, err := r.Ask(ctx, m, Query{number, true}); err == nil && w.Leads {
			return w, true
		}
	}
	return Word{}, false
}

// CaughtUp counts the members whose replica of a group is at most replicaBehind entries
// behind commit.
func (r *Replicas) CaughtUp(ctx context.Context, number id.Shard, commit uint64, members []id.Member) int {
	count := 0
	for _, m := range members {
		if w, err := r.Ask(ctx, m, Query{Group: number}); err == nil && w.CaughtUp(commit) {
			count++
		}
	}
	return count
}

// Enough fails unless a majority of what would be a group's voters has caught up.
func (r *Replicas) Enough(ctx context.Context, number id.Shard, commit uint64, voters []id.Member) error {
	if have, quorum := r.CaughtUp(ctx, number, commit, voters), len(voters)/2+1; have < quorum {
		return fmt.Errorf("%d of %d voters have caught up, and it takes %d", have, len(voters), quorum)
	}
	return nil
}
