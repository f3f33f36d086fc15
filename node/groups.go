package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"facet/engine/score"
	"facet/internal/id"
	"facet/node/datadir"
	"facet/node/metrics"
	"facet/node/transport"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/shard/kernel"
)

// groups are the Raft groups that live on this node: meta always, and the shards
// that meta's map gives to it.
type groups struct {
	dir   string
	level uint32 // that this node knows
	// noted is the cluster's level, once the data directory says so: files of that level
	// may be written.
	noted   atomic.Uint32
	self    id.Member
	mux     *transport.Mux
	resolve func(id.Member) (string, error)
	timing  raftfsm.Timing
	erase   time.Duration // Config.EraseWithin
	table   *score.Table
	arena   *kernel.Arena // of all shards' templates
	log     *slog.Logger
	fatal   func(error)
	meters  *metrics.Work
	outages *outages
	held    *datadir.Registry
	checks  chan struct{} // raftfsm.Config.Checks

	meta      *raftfsm.Group
	metaState *metafsm.Machine

	// mu guards shards. Never held across a call into a group.
	mu     sync.RWMutex
	shards map[id.Shard]hosted
}

// hosted is one shard's replica.
type hosted struct {
	group *raftfsm.Group
	state *shardfsm.Machine
}

// openMeta opens this node's replica of meta.
func (g *groups) openMeta() error {
	o, err := openOutages(g.dir)
	if err != nil {
		return err
	}
	g.outages, g.metaState = o, metafsm.NewKnowing(g.level)
	group, err := g.open(id.Meta, g.metaState)
	if errors.Is(err, raftfsm.ErrGone) {
		err = fmt.Errorf("%w: without it this node can't go on under its old name; "+
			"empty its data directory, so that it joins as a new one, and remove the old one (facet node remove)", err)
	}
	g.meta = group
	return err
}

// open opens a replica on its folder. One of which there was none before is written
// down first; one that was written down and has no log any more is not opened
// (raftfsm.ErrGone).
func (g *groups) open(number id.Shard, state raftfsm.Machine) (*raftfsm.Group, error) {
	if !g.held.Has(number) {
		if err := raftfsm.Prepare(g.folder(number)); err != nil {
			return nil, err
		}
		if err := g.held.Add(number); err != nil {
			return nil, err
		}
	}
	stream, err := g.mux.Group(number)
	if err != nil {
		return nil, fmt.Errorf("open group %d: %w", number, err)
	}
	group, err := raftfsm.Open(raftfsm.Config{
		Group: number, Self: g.self, Dir: g.folder(number), Prepared: true,
		Stream: stream, Resolve: g.resolve, Timing: g.timing, EraseWithin: g.erase, Checks: g.checks,
		Proposed: g.meters.Proposed(number),
		Log:      g.log.With("group", number), Fatal: func(err error) { g.broke(number, err) },
	}, state)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open group %d: %w", number, err), stream.Close())
	}
	return group, nil
}

// host opens the replicas that meta's map gives to this node and closes and erases
// those that it gives to others. synced brings the map up to date: a node that has
// just started may go by an old one, and must neither found a group that others have
// long moved nor erase what it has been given since.
func (g *groups) host(ctx context.Context, synced func(context.Context) error) error {
	for _, at := range g.metaState.Shards().Shards {
		if _, out := g.outages.get(at.Shard); out {
			continue // mendReplicas sees to it
		}
		_, open := g.hosted(at.Shard)
		mine := g.mine(at)
		if open == mine && (mine || !g.held.Has(at.Shard)) {
			continue
		}
		var err error
		if mine {
			err = g.openShard(ctx, at.Shard, synced)
		} else if err = synced(ctx); err == nil {
			err = g.drop(at.Shard)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// complete tells whether all replicas are open that the map gives to this node, but for
// those out of service.
func (g *groups) complete() bool {
	for _, at := range g.metaState.Shards().Shards {
		_, out := g.outages.get(at.Shard)
		if _, open := g.hosted(at.Shard); g.mine(at) && !open && !out {
			return false
		}
	}
	return true
}

// mine tells whether this node may have a replica.
func (g *groups) mine(at metafsm.ShardVoters) bool { return slices.Contains(at.Holders(), g.self) }

// openShard opens this node's replica of a shard. One without any state belongs to a
// group that is to be founded, or waits for the leader to make it a member.
func (g *groups) openShard(ctx context.Context, number id.Shard, synced func(context.Context) error) error {
	state := g.newShard()
	group, err := g.open(number, state)
	if err != nil {
		g.broke(number, err)
		return err
	}
	h := hosted{group, state}
	if !group.HasState() {
		if err := synced(ctx); err != nil {
			return errors.Join(err, g.shut(h))
		}
		at, _ := g.metaState.Shards().Shard(number)
		if !g.mine(at) {
			return errors.Join(g.shut(h), g.remove(number))
		}
		if err := g.bootstrap(group, at); err != nil {
			return errors.Join(err, g.shut(h))
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shards[number] = h
	return nil
}

// newShard makes the machine of a shard's replica.
func (g *groups) newShard() *shardfsm.Machine {
	state := shardfsm.New(g.table, g.arena)
	state.Batch(func() bool { return g.noted.Load() >= metafsm.LevelBatches })
	return state
}

// bootstrap founds a group that never moved, if this node is one of its first voters.
func (g *groups) bootstrap(group *raftfsm.Group, at metafsm.ShardVoters) error {
	if at.Moved || !slices.Contains(at.Voters, g.self) {
		return nil
	}
	voters := make([]raftfsm.Server, 0, len(at.Voters))
	for _, m := range at.Voters {
		voters = append(voters, raftfsm.Server{Member: m, Voter: true})
	}
	if err := group.Bootstrap(voters); err != nil {
		return fmt.Errorf("found group %d: %w", at.Shard, err)
	}
	return nil
}

func (g *groups) shut(h hosted) error {
	err := h.group.Close()
	h.state.Shard().Close()
	return err
}

// drop closes this node's replica of a shard, which others hold now, and erases it.
func (g *groups) drop(number id.Shard) error {
	if at, _ := g.metaState.Shards().Shard(number); g.mine(at) {
		return nil // by the newer map
	}
	g.log.Info("this node no longer holds a shard", "group", number)
	var err error
	if h, open := g.hosted(number); open { // else a crash came between this and the next
		err = g.takeOut(number, h)
	}
	if err == nil {
		err = g.remove(number)
	}
	if err != nil {
		return fmt.Errorf("drop group %d: %w", number, err)
	}
	return nil
}

// remove erases a replica's files, and then forgets that there was one.
func (g *groups) remove(number id.Shard) error {
	if err := os.RemoveAll(g.folder(number)); err != nil {
		return err
	}
	return g.held.Forget(number)
}

// broke takes a replica out of service, or ends the node where that does not help.
func (g *groups) broke(number id.Shard, err error) {
	if fatal := g.outages.note(number, err); fatal != nil {
		g.fatal(fmt.Errorf("group %d: %w", number, fatal))
		return
	}
	g.log.Error("a replica is out of service", "group", number, "err", err)
}

// folder is where a group's files are.
func (g *groups) folder(number id.Shard) string {
	return filepath.Join(g.dir, fmt.Sprintf("group-%d", number))
}

func (g *groups) hosted(number id.Shard) (hosted, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	h, ok := g.shards[number]
	return h, ok
}

// numbers gives the shards that live here, ascending.
func (g *groups) numbers() []id.Shard {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var list []id.Shard
	for n := range g.shards {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// Group gives the replica of a group on this node (router.Groups).
func (g *groups) Group(number id.Shard) (*raftfsm.Group, bool) {
	if number == id.Meta {
		return g.meta, true
	}
	h, ok := g.hosted(number)
	return h.group, ok
}

// Meta gives meta's state machine (router.Groups).
func (g *groups) Meta() *metafsm.Machine { return g.metaState }

// Shard gives the state machine of a shard's replica here (router.Groups).
func (g *groups) Shard(number id.Shard) (*shardfsm.Machine, bool) {
	h, ok := g.hosted(number)
	return h.state, ok
}

// Members gives the members that may hold a group (router.Groups).
func (g *groups) Members(number id.Shard) []id.Member {
	if number != id.Meta {
		at, _ := g.metaState.Shards().Shard(number)
		return at.Holders()
	}
	servers, _, err := g.meta.Servers()
	if err != nil {
		return nil
	}
	list := make([]id.Member, 0, len(servers))
	for _, s := range servers {
		list = append(list, s.Member)
	}
	return list
}

// handOver gives this node's leaderships to others, at once and for good, so that a
// stop costs no election. It returns when the others lead, or ctx ends.
func (g *groups) handOver(ctx context.Context) {
	var work sync.WaitGroup
	for _, number := range append([]id.Shard{id.Meta}, g.numbers()...) {
		group, ok := g.Group(number)
		if !ok || group == nil {
			continue // Open failed before it
		}
		work.Go(func() {
			if err := group.Resign(ctx); err != nil && !errors.Is(err, raftfsm.ErrNotMember) { // alone: nobody to hand over to
				g.log.Warn("leadership was not handed over", "group", number, "err", err)
			}
		})
	}
	work.Wait()
}

// memory estimates what the events of all replicas here take.
func (g *groups) memory() (bytes int64) {
	for _, number := range g.numbers() {
		if h, open := g.hosted(number); open {
			bytes += h.state.Shard().Memory()
		}
	}
	return bytes
}

// close closes all groups.
func (g *groups) close() error {
	var work sync.WaitGroup
	numbers := g.numbers()
	errs := make([]error, len(numbers), len(numbers)+2)
	for i, number := range numbers {
		h, _ := g.hosted(number)
		work.Go(func() { errs[i] = g.shut(h) })
	}
	work.Wait()
	if g.meta != nil {
		errs = append(errs, g.meta.Close())
	}
	errs = append(errs, g.arena.Close())
	return errors.Join(errs...)
}
