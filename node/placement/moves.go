package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// The cluster's audit log has the end of each move. Meta's leader records it once meta has the map in which the move
// has ended: of two leaders, one changes the map of an epoch.

// The outcomes of a move.
const (
	moveDone    = "done"
	moveGivenUp = "given up"
)

// arrive returns shards without the moves that are over, and the acts of their ends.
func (p *Placement) arrive(ctx context.Context, shards []metafsm.ShardVoters) (list []metafsm.ShardVoters, ends []router.Act) {
	list = slices.Clone(shards)
	for i, at := range list {
		if at.Moving && p.hasMoved(ctx, at) {
			list[i].Moving, list[i].Leaving, list[i].From, list[i].Began = false, nil, nil, 0
			p.cfg.Log.InfoContext(ctx, "a shard has moved", "group", at.Shard, "voters", at.Voters)
			ends = append(ends, moveEnd(p, at, moveDone))
		}
	}
	return list, ends
}

// begin sets when the moves of next begin that shards do not have. It returns the acts of those that are given up for
// another goal.
func (p *Placement) begin(shards, next []metafsm.ShardVoters) (ends []router.Act) {
	for i := range next {
		if next[i].Moving && len(next[i].From) > 0 && next[i].Began == 0 {
			next[i].Began = time.Now().UnixMilli()
			if shards[i].Moving {
				ends = append(ends, moveEnd(p, shards[i], moveGivenUp))
			}
		}
	}
	return ends
}

// putShards changes the map, and records the moves that this ends.
func putShards(ctx context.Context, p *Placement, c metafsm.PutShards, ends []router.Act) error {
	raw, err := p.cfg.Replicas.MetaGroup().Propose(ctx, metafsm.PutShardsOp.Encode(c))
	if err != nil {
		return err
	}
	a, err := metafsm.PutShardsOp.Answer(raw)
	if err == nil && a.Status == metafsm.Done {
		for _, end := range ends {
			p.cfg.Acted(end)
		}
	}
	return err
}

// moveEnd returns the act of a move's end.
func moveEnd(p *Placement, at metafsm.ShardVoters, outcome string) router.Act {
	reason := fmt.Sprintf("%s: shard %d, begun %s, from %s to %s",
		outcome, at.Shard, time.UnixMilli(at.Began).UTC().Format(time.RFC3339), names(p, at.From), names(p, at.Voters))
	return router.Act{Log: id.ClusterLog, Operation: "move a shard", Reason: reason}
}

// names returns the names of members.
func names(p *Placement, members []id.Member) string {
	var list []string
	for _, m := range members {
		name := string(m)
		if who, err := m.Node(); err == nil {
			if r, known := p.cfg.Replicas.Meta().Node(who); known {
				name = r.Name
			}
		}
		list = append(list, name)
	}
	return strings.Join(list, " ")
}
