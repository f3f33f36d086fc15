package replicas

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"facet/internal/id"
	"facet/node/peer"
	"facet/raftfsm"
)

const (
	methodErasure = "node.erasure"

	// erasureGroupsMax is the most groups in a question about erasure.
	erasureGroupsMax = int(id.MaxShard) + 1
	// checkpointRest is the shortest time between two checkpoints that orders of rounds make in one
	// group.
	checkpointRest = 10 * time.Minute
	// orderWait is how long an order waits until the replicas have applied what they should erase. A
	// round that began earlier would delay the next.
	orderWait = time.Second
)

// ErasureQuery asks a node how far its replicas of groups have erased. Now orders rounds of those
// that have not erased as far as needed.
type ErasureQuery struct {
	Groups []ErasureNeeded `json:"groups"`
	Now    bool            `json:"now,omitempty"`
}

// ErasureNeeded is an index up to which the replicas of a group should have erased.
type ErasureNeeded struct {
	Group id.Shard `json:"group"`
	Index uint64   `json:"index"`
}

// Erasure is a node's report on its replica of a group, or on the files of an older one.
type Erasure struct {
	Group id.Shard `json:"group"`
	// Began and Ended are the times of the last round, zero without one since the node's start.
	// ErasedTo is raftfsm.Status.ErasedTo.
	Began    time.Time `json:"began,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	ErasedTo uint64    `json:"erased_to"`
	// Out reports that the replica is out of service: it makes no rounds.
	Out bool `json:"out,omitempty"`
	// Aside lists folders with an older state of the replica.
	Aside []string `json:"aside,omitempty"`
}

// orders limits the checkpoints of ordered rounds.
type orders struct {
	mu   sync.Mutex // guards last
	last map[id.Shard]time.Time
}

// due reports whether a checkpoint may be made, and then counts it.
func (o *orders) due(number id.Shard, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.last[number]) < checkpointRest {
		return false
	}
	if o.last == nil {
		o.last = map[id.Shard]time.Time{}
	}
	o.last[number] = now
	return true
}

// Erasures reports how far the replicas of nodes have erased, and orders rounds.
type Erasures struct{ *Replicas }

// Ask returns a member's reports. It has none of a group of which the node has no file.
func (r Erasures) Ask(ctx context.Context, m id.Member, q ErasureQuery) (list []Erasure, err error) {
	ctx, cancel := context.WithTimeout(ctx, peer.AnswerTimeout)
	defer cancel()
	if m == r.cfg.Self {
		return r.own(ctx, q)
	}
	return list, r.cfg.Peers.Ask(ctx, m, methodErasure, q, &list)
}

// own returns this node's reports.
func (r Erasures) own(ctx context.Context, q ErasureQuery) ([]Erasure, error) {
	if len(q.Groups) > erasureGroupsMax {
		return nil, fmt.Errorf("a question about %d groups", len(q.Groups))
	}
	ctx, cancel := context.WithTimeout(ctx, orderWait)
	defer cancel()
	list := []Erasure{}
	aside := slices.Sorted(maps.Keys(r.outages.set()))
	for _, needed := range q.Groups {
		number := needed.Group
		e := Erasure{Group: number, Out: r.Out(number)}
		for _, name := range aside {
			if strings.HasPrefix(name, fmt.Sprintf("group-%d.", number)) {
				e.Aside = append(e.Aside, name)
			}
		}
		if group, open := r.Group(number); open {
			s := group.Status()
			if q.Now && s.ErasedTo < needed.Index {
				r.order(ctx, group, needed)
			}
			if !s.Erased.IsZero() {
				e.Began, e.Ended, e.ErasedTo = s.Erased.Add(-s.EraseTook), s.Erased, s.ErasedTo
			}
		} else if !r.cfg.Registry.Has(number) && len(e.Aside) == 0 && !e.Out {
			continue
		}
		list = append(list, e)
	}
	return list, nil
}

// order orders a round. A replica makes no round while it has applied no command since the
// start of its node, so the leader adds one.
func (r Erasures) order(ctx context.Context, group *raftfsm.Group, needed ErasureNeeded) {
	if group.IsLeader() && r.orders.due(needed.Group, time.Now()) {
		if _, err := group.Checkpoint(ctx); err != nil {
			r.cfg.Log.WarnContext(ctx, "no checkpoint before an ordered round of erasure", "group", needed.Group, "err", err)
		}
	}
	if group.WaitApplied(ctx, needed.Index) == nil {
		group.EraseSoon()
	}
}

// set returns all folders that were set aside, by name, and when each was.
func (o *outages) set() map[string]time.Time {
	all := map[string]time.Time{}
	maps.Copy(all, o.aside())
	maps.Copy(all, o.marked(rewrittenMark))
	return all
}
