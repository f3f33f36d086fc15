package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"facet/engine/score"
	"facet/internal/id"
	"facet/node/transport"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
)

// groups are the Raft groups that live on this node: meta always, and the shards
// that meta's map gives to it.
type groups struct {
	dir     string
	self    id.Member
	mux     *transport.Mux
	resolve func(id.Member) (string, error)
	timing  raftfsm.Timing
	table   *score.Table
	log     *slog.Logger
	fatal   func(error)

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
	g.metaState = metafsm.New()
	group, err := g.open(id.Meta, g.metaState)
	g.meta = group
	return err
}

func (g *groups) open(number id.Shard, state raftfsm.Machine) (*raftfsm.Group, error) {
	stream, err := g.mux.Group(number)
	if err != nil {
		return nil, fmt.Errorf("open group %d: %w", number, err)
	}
	group, err := raftfsm.Open(raftfsm.Config{
		Group: number, Self: g.self, Dir: filepath.Join(g.dir, fmt.Sprintf("group-%d", number)),
		Stream: stream, Resolve: g.resolve, Timing: g.timing,
		Log: g.log.With("group", number), Fatal: func(err error) { g.fatal(fmt.Errorf("group %d: %w", number, err)) },
	}, state)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open group %d: %w", number, err), stream.Close())
	}
	return group, nil
}

// host opens the shards of meta's map that belong here and are not open yet.
func (g *groups) host() error {
	for _, first := range g.metaState.Shards().Shards {
		number := first.Shard
		if !slices.Contains(first.Voters, g.self) {
			continue
		}
		if _, open := g.hosted(number); open {
			continue
		}
		state := shardfsm.New(g.table)
		group, err := g.open(number, state)
		if err != nil {
			return err
		}
		voters := make([]raftfsm.Server, 0, len(first.Voters))
		for _, m := range first.Voters {
			voters = append(voters, raftfsm.Server{Member: m, Voter: true})
		}
		g.mu.Lock()
		g.shards[number] = hosted{group, state}
		g.mu.Unlock()
		if err := group.Bootstrap(voters); err != nil {
			return fmt.Errorf("found group %d: %w", number, err)
		}
	}
	return nil
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
		return g.metaState.Shards().Voters(number)
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

// handOver gives this node's leaderships to others, so that a stop costs no
// election.
func (g *groups) handOver(ctx context.Context) {
	var work sync.WaitGroup
	for _, number := range append([]id.Shard{id.Meta}, g.numbers()...) {
		group, ok := g.Group(number)
		if !ok || !group.IsLeader() {
			continue
		}
		work.Go(func() {
			if err := group.Transfer(ctx, ""); err != nil && !errors.Is(err, raftfsm.ErrNotMember) { // alone: nobody to hand over to
				g.log.Warn("leadership was not handed over", "group", number, "err", err)
			}
		})
	}
	work.Wait()
}

// close closes all groups.
func (g *groups) close() error {
	var errs []error
	for _, number := range g.numbers() {
		h, _ := g.hosted(number)
		errs = append(errs, h.group.Close())
	}
	if g.meta != nil {
		errs = append(errs, g.meta.Close())
	}
	return errors.Join(errs...)
}
