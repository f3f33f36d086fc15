package replicas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"facet/internal/id"
	"facet/node/peer"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
)

// handOverTimeout is how long a damaged leader waits for another member to take over.
const handOverTimeout = 2500 * time.Millisecond

// methodDemote asks a group's leader to take away a member's vote.
const methodDemote = "node.demote"

// Repairer rebuilds the damaged replicas of a node from their peers: those whose files are
// damaged and those whose state differs from the majority's. A damaged replica has voted
// and acknowledged entries that it may have lost, so it must not come back as a voter
// (docs/decisions/0007-self-checks.md):
//
//  1. The node closes the replica and writes a file that keeps it closed.
//  2. The group's leader takes its vote once a majority of the others has caught up.
//  3. When a confirmed leader reports that it has no vote, the node sets its folder aside
//     and opens it on a new folder with the sound segments only. It does not bootstrap the
//     group.
//  4. When it has state again, the node removes the file. When it has caught up, the
//     leader returns its vote.
type Repairer struct{ *Replicas }

// Step makes the next step of each damaged replica.
func (r Repairer) Step(ctx context.Context) {
	all := r.outages.all()
	for _, number := range slices.Sorted(maps.Keys(all)) {
		if err := r.repair(ctx, number, all[number]); err != nil && ctx.Err() == nil {
			r.cfg.Log.WarnContext(ctx, "a replica stays out of service", "group", number, "err", err)
		}
	}
	keep := cmp.Or(r.cfg.EraseWithin, raftfsm.EraseWithinDefault)
	if err := r.outages.clear(keep / 2); err != nil {
		r.cfg.Log.WarnContext(ctx, "a group that was set aside is still there", "err", err)
	}
}

// repair makes the next step for one replica that is out of service. why is its outage.
func (r Repairer) repair(ctx context.Context, number id.Shard, why outage) error {
	h, open := r.hosted(number)
	if why.reopened {
		if !open || !h.group.HasState() {
			return nil
		}
		r.cfg.Log.InfoContext(ctx, "a replica has state again", "group", number)
		return r.outages.end(number, why)
	}
	if open {
		r.handOverDamaged(ctx, number, h)
		if err := r.takeOut(number, h); err != nil {
			r.cfg.Log.WarnContext(ctx, "a damaged replica was closed", "group", number, "err", err)
		}
	}
	if why.full {
		if r.cfg.DiskFull() || time.Since(why.At) < outRetry {
			return nil
		}
		return r.outages.end(number, why) // Host then opens it
	}
	at, _ := r.state.Shards().Shard(number)
	if !r.mine(at) {
		if err := r.cfg.Sync(ctx); err != nil {
			return err
		}
		if at, _ = r.state.Shards().Shard(number); !r.mine(at) {
			_, err := r.outages.setAside(Folder(r.cfg.Dir, number), why)
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
	return r.reopen(number, why)
}

// handOverDamaged hands a diverged replica's leadership to another member. A replica with
// damaged files does not lead any more.
func (r Repairer) handOverDamaged(ctx context.Context, number id.Shard, h hosted) {
	if !h.group.IsLeader() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handOverTimeout)
	defer cancel()
	if err := h.group.Transfer(ctx, ""); err != nil {
		r.cfg.Log.WarnContext(ctx, "a diverged replica's leadership was not handed over", "group", number, "err", err)
	}
}

// reopen sets a replica's files aside and opens it on its sound segments only. The leader
// then sends the rest of its state.
func (r Repairer) reopen(number id.Shard, why outage) error {
	aside, err := r.outages.setAside(Folder(r.cfg.Dir, number), why)
	if err != nil {
		return err
	}
	if err := r.cfg.Marks.Begin(number); err != nil {
		return err
	}
	if err := raftfsm.Prepare(Folder(r.cfg.Dir, number)); err != nil {
		return err
	}
	if n, err := raftfsm.SalvageSegments(aside, Folder(r.cfg.Dir, number)); err != nil {
		r.cfg.Log.Warn("not all sound segments of a damaged replica were kept: its leader sends them again", "group", number, "err", err)
	} else if n > 0 {
		r.cfg.Log.Info("the sound segments of a damaged replica were kept", "group", number, "segments", n)
	}
	if err := r.OpenEmpty(number); err != nil {
		return err
	}
	r.cfg.Log.Info("a replica is being rebuilt from its peers", "group", number)
	r.outages.reopened(number)
	return nil
}

// voteOf asks a shard's confirmed leader whether this node votes there.
func (r Repairer) voteOf(ctx context.Context, at metafsm.ShardVoters) (votes bool, leader id.Member, err error) {
	if onlyOn(r.cfg.Self, at) {
		return false, "", fmt.Errorf("%s has no other replica", Name(at.Shard))
	}
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

// demotion is the request of methodDemote.
type demotion struct {
	Group  id.Shard  `json:"group"`
	Member id.Member `json:"member"`
}

func (r Repairer) askDemotion(ctx context.Context, leader id.Member, number id.Shard) error {
	ctx, cancel := context.WithTimeout(ctx, peer.AnswerTimeout)
	defer cancel()
	return r.cfg.Peers.Ask(ctx, leader, methodDemote, demotion{number, r.cfg.Self}, nil)
}

// demote takes the vote of a member whose replica is damaged, if a majority of the other
// voters has caught up.
func (r Repairer) demote(ctx context.Context, d demotion) error {
	h, open := r.hosted(d.Group)
	if !open {
		return fmt.Errorf("group %d is not open", d.Group)
	}
	servers, index, err := h.group.Servers()
	if err != nil {
		return err
	}
	rest := VotersBut(servers, d.Member)
	if len(rest) == 0 {
		return fmt.Errorf("group %d has no other voter", d.Group)
	}
	if err := r.Enough(ctx, d.Group, h.group.Status().Commit, rest); err != nil {
		return err
	}
	r.cfg.Log.WarnContext(ctx, "a damaged replica loses its vote until it is rebuilt", "group", d.Group, "node", d.Member)
	return h.group.Demote(ctx, d.Member, index)
}

// VotersBut returns the voters among servers except m.
func VotersBut(servers []raftfsm.Server, m id.Member) []id.Member {
	var rest []id.Member
	for _, s := range servers {
		if s.Voter && s.Member != m {
			rest = append(rest, s.Member)
		}
	}
	return rest
}
