package replicas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
)

// handOverTimeout bounds the wait for another leader instead of a damaged replica.
const handOverTimeout = 2500 * time.Millisecond

// methodDemote asks a group's leader to take a member's vote.
const methodDemote = "node.demote"

// Repair makes the next step of each damaged replica here. A replica whose files are
// damaged, or whose state is not the majority's, is made anew from its peers. It has voted and acknowledged with what is thrown away, so it
// may not come back as a voter (docs/decisions/0007-self-checks.md):
//
//  1. its group is closed, and a file says that it must stay so;
//  2. the group's leader takes its vote, if a majority of the others has caught up;
//  3. when a confirmed leader says that it has none, its folder is set aside and it
//     is opened on an empty one, without founding anything;
//  4. with state again the file goes, and once it has caught up the leader gives it
//     back its vote.
func (r *Replicas) Repair(ctx context.Context) {
	o := r.outages
	all := o.all()
	for _, number := range slices.Sorted(maps.Keys(all)) {
		if err := r.mend(ctx, number, all[number]); err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn("a replica stays out of service", "group", number, "err", err)
		}
	}
	keep := r.cfg.EraseWithin
	if keep == 0 {
		keep = raftfsm.EraseWithinDefault
	}
	if err := o.clear(keep / 2); err != nil {
		r.cfg.Log.Warn("a group that was set aside is still there", "err", err)
	}
}

func (r *Replicas) mend(ctx context.Context, number id.Shard, why outage) error {
	h, open := r.hosted(number)
	if why.reopened {
		if !open || !h.group.HasState() {
			return nil
		}
		r.cfg.Log.Info("a replica has state again", "group", number)
		return r.outages.end(number, why)
	}
	if open {
		r.handOverDamaged(ctx, number, h)
		if err := r.takeOut(number, h); err != nil {
			r.cfg.Log.Warn("a damaged replica was closed", "group", number, "err", err)
		}
	}
	if why.full {
		if r.cfg.DiskFull() || time.Since(why.At) < outRetry {
			return nil
		}
		return r.outages.end(number, why) // and host opens it
	}
	at, _ := r.state.Shards().Shard(number)
	if !r.mine(at) {
		if err := r.cfg.Sync(ctx); err != nil {
			return err
		}
		if at, _ = r.state.Shards().Shard(number); !r.mine(at) {
			_, err := r.outages.setAside(Folder(r.cfg.Dir, number))
			return errors.Join(err, r.outages.end(number, why))
		}
	}
	votes, leader, err := r.voteOf(ctx, at)
	if err != nil {
		return err
	}
	if votes {
		return r.askDemotion(ctx, leader, number)
	}
	return r.reopen(number)
}

// handOverDamaged hands a diverged replica's leadership to another; one with damaged files
// has lost it.
func (r *Replicas) handOverDamaged(ctx context.Context, number id.Shard, h hosted) {
	if !h.group.IsLeader() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handOverTimeout)
	defer cancel()
	if err := h.group.Transfer(ctx, ""); err != nil {
		r.cfg.Log.Warn("a diverged replica's leadership was not handed over", "group", number, "err", err)
	}
}

// takeOut closes a replica and leaves its files.
func (r *Replicas) takeOut(number id.Shard, h hosted) error {
	r.mu.Lock()
	delete(r.shards, number)
	r.mu.Unlock()
	r.cfg.Meters.Dropped(number)
	return r.shut(h)
}

// reopen sets a replica's files aside and opens it on nothing but the segments that are
// sound, so that its leader need not send those that it has, too.
func (r *Replicas) reopen(number id.Shard) error {
	aside, err := r.outages.setAside(Folder(r.cfg.Dir, number))
	if err != nil {
		return err
	}
	if err := raftfsm.Prepare(Folder(r.cfg.Dir, number)); err != nil {
		return err
	}
	if n, err := raftfsm.SalvageSegments(aside, Folder(r.cfg.Dir, number)); err != nil {
		r.cfg.Log.Warn("not all sound segments of a damaged replica were kept: they are sent again", "group", number, "err", err)
	} else if n > 0 {
		r.cfg.Log.Info("the sound segments of a damaged replica were kept", "group", number, "segments", n)
	}
	if err := r.OpenEmpty(number); err != nil {
		return err
	}
	r.cfg.Log.Info("a replica is made anew from its peers", "group", number)
	r.outages.reopened(number)
	return nil
}

// OpenEmpty opens a replica that waits for the leader to send it the group's state.
func (r *Replicas) OpenEmpty(number id.Shard) error {
	state := r.newShard()
	group, err := r.open(number, state)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shards[number] = hosted{group, state}
	return nil
}

// voteOf asks a shard's confirmed leader whether this node votes there.
func (r *Replicas) voteOf(ctx context.Context, at metafsm.ShardVoters) (votes bool, leader id.Member, err error) {
	for _, m := range at.Holders() {
		if m == r.cfg.Self {
			continue
		}
		w, err := r.Ask(ctx, m, Query{at.Shard, true})
		if err != nil || !w.Leads {
			continue
		}
		return slices.Contains(w.Servers, raftfsm.Server{Member: r.cfg.Self, Voter: true}), m, nil
	}
	return false, "", fmt.Errorf("%s has no leader that answers", Name(at.Shard))
}

// demotion asks a group's leader to take a member's vote.
type demotion struct {
	Group  id.Shard  `json:"group"`
	Member id.Member `json:"member"`
}

func (r *Replicas) askDemotion(ctx context.Context, leader id.Member, number id.Shard) error {
	ctx, cancel := context.WithTimeout(ctx, wordTimeout)
	defer cancel()
	return r.cfg.Peers.Ask(ctx, leader, methodDemote, demotion{number, r.cfg.Self}, nil)
}

// serveDemote takes the vote of a member whose replica is damaged, if the others can
// do without it.
func (r *Replicas) serveDemote(ctx context.Context, body []byte) ([]byte, error) {
	var d demotion
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, fmt.Errorf("read a demotion: %w", err)
	}
	h, open := r.hosted(d.Group)
	if !open {
		return nil, fmt.Errorf("group %d is not open", d.Group)
	}
	servers, index, err := h.group.Servers()
	if err != nil {
		return nil, err
	}
	rest := VotersBut(servers, d.Member)
	if len(rest) == 0 {
		return nil, fmt.Errorf("group %d has no other voter", d.Group)
	}
	if err := r.Enough(ctx, d.Group, h.group.Status().Commit, rest); err != nil {
		return nil, err
	}
	r.cfg.Log.Warn("a damaged replica loses its vote until it is made anew", "group", d.Group, "node", d.Member)
	return nil, h.group.Demote(ctx, d.Member, index)
}

// VotersBut returns the voters among servers without m.
func VotersBut(servers []raftfsm.Server, m id.Member) []id.Member {
	var rest []id.Member
	for _, s := range servers {
		if s.Voter && s.Member != m {
			rest = append(rest, s.Member)
		}
	}
	return rest
}
