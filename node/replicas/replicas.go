package replicas

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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

// Peers asks other nodes.
type Peers interface {
	// Ask sends the question q to a member and reads the answer into a, unless a is nil.
	Ask(ctx context.Context, to id.Member, method string, q, a any) error
}

// Marks keeps what the members of groups have acknowledged (rollback.Table).
type Marks interface {
	Marks(number id.Shard) raftfsm.Marks
	// Begin gives the replica that this node is about to make a new life.
	Begin(number id.Shard) error
	// Wake reports that a group was opened.
	Wake()
}

// Config configures the replicas of a node.
type Config struct {
	Dir      string
	Registry *datadir.Registry // of Dir
	// Level is the highest level that this node's software knows (metafsm.Level).
	Level   uint32
	Self    id.Member
	Mux     *transport.Mux
	Peers   Peers
	Beats   Peers // for heartbeats: requests may use up the connections of the other one
	Resolve func(id.Member) (string, error)
	// Holder decides which process acts for a member.
	Holder raftfsm.Holder
	// Sync brings this node's replica of meta up to date.
	Sync func(context.Context) error
	// DiskFull reports whether the disk still has too little space for a replica.
	DiskFull func() bool
	// Fatal ends the node because of an error.
	Fatal func(error)
	Marks Marks

	Timing      raftfsm.Timing
	EraseWithin time.Duration // raftfsm.Config.EraseWithin
	Table       *score.Table
	Arena       *kernel.Arena // of all shards' templates; Close closes it
	Meters      *metrics.Work
	Log         *slog.Logger
}

// Replicas are the Raft groups that live on this node: meta always, and the shards that
// meta's map gives to it. Its methods are safe for concurrent use.
type Replicas struct {
	cfg Config
	// noted is the level that the data directory records. The node may write files in the forms
	// of that level.
	noted    atomic.Uint32
	stopping atomic.Bool
	outages  *outages
	checks   chan struct{} // raftfsm.Config.Checks: one at a time, and none before all templates are open
	orders   orders
	beats    *raftfsm.Beats
	proofs   *raftfsm.Proofs

	meta  *raftfsm.Group
	state *metafsm.Machine // meta's

	// mu guards shards. It is never held across a call into a group.
	mu     sync.RWMutex
	shards map[id.Shard]hosted
}

// hosted is one shard's replica.
type hosted struct {
	group *raftfsm.Group
	state *shardfsm.Machine
}

// Open opens this node's replica of meta. It closes c.Arena if it fails.
func Open(c Config) (*Replicas, error) {
	r := &Replicas{
		cfg: c, state: metafsm.NewKnowing(c.Level), checks: make(chan struct{}, 1), beats: newBeats(c.Beats, c.Timing), shards: map[id.Shard]hosted{},
	}
	r.proofs = newProofs(c.Peers)
	r.checks <- struct{}{} // until a Warmer calls first
	var err error
	if r.outages, err = openOutages(c.Dir); err == nil {
		r.meta, err = r.open(id.Meta, r.state)
	}
	if err != nil {
		r.beats.Close()
		r.proofs.Close()
		return nil, errors.Join(unlessRebuilt(err), c.Arena.Close())
	}
	return r, nil
}

// unlessRebuilt adds to an error of meta's replica what to do, because a node can't rebuild
// that one.
func unlessRebuilt(err error) error {
	if errors.Is(err, raftfsm.ErrGone) {
		return fmt.Errorf("%w: %s", err, rejoin)
	}
	if _, rewritten := errors.AsType[*raftfsm.RewriteError](err); rewritten {
		return fmt.Errorf("%w: KEEP the data directory of this node; it has records of the cluster that the other nodes have lost; "+
			"see FacetHistoryRewritten in docs/operations.md", err)
	}
	return err
}

// open opens a replica on its folder. It registers a new replica first. It returns
// raftfsm.ErrGone for a registered replica that has no log any more.
func (r *Replicas) open(number id.Shard, state raftfsm.Machine) (*raftfsm.Group, error) {
	if !r.cfg.Registry.Has(number) {
		if err := r.cfg.Marks.Begin(number); err != nil {
			return nil, err
		}
		if err := raftfsm.Prepare(Folder(r.cfg.Dir, number)); err != nil {
			return nil, err
		}
		if err := r.cfg.Registry.Add(number); err != nil {
			return nil, err
		}
	}
	stream, err := r.cfg.Mux.Group(number)
	if err != nil {
		return nil, fmt.Errorf("open group %d: %w", number, err)
	}
	group, err := raftfsm.Open(raftfsm.Config{
		Group: number, Self: r.cfg.Self, Dir: Folder(r.cfg.Dir, number), Prepared: true,
		Stream: stream, Resolve: r.cfg.Resolve, Holder: r.cfg.Holder, Beats: r.beats, Proofs: r.proofs, Timing: r.cfg.Timing, EraseWithin: r.cfg.EraseWithin, Checks: r.checks,
		Proposed: r.cfg.Meters.Proposed(number), Marks: r.cfg.Marks.Marks(number),
		Log: r.cfg.Log.With("group", number), Fatal: func(err error) { r.Damage(number, err) },
	}, state)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open group %d: %w", number, err), stream.Close())
	}
	return group, nil
}

// Host opens the replicas that meta's map gives to this node, and closes and erases the
// replicas that it gives to others. It brings the map up to date first, because a node that
// has just started may have an old map. By an old map the node could bootstrap a group that
// has moved, or erase a replica that it has since been given.
func (r *Replicas) Host(ctx context.Context) error {
	for _, at := range r.state.Shards().Shards {
		if r.Out(at.Shard) {
			continue // the Repairer opens it
		}
		_, open := r.hosted(at.Shard)
		mine := r.mine(at)
		if open == mine && (mine || !r.cfg.Registry.Has(at.Shard)) {
			continue
		}
		var err error
		if mine {
			err = r.openShard(ctx, at.Shard)
		} else if err = r.cfg.Sync(ctx); err == nil {
			err = r.drop(at.Shard)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Complete reports whether every replica that the map gives to this node is open or out of
// service.
func (r *Replicas) Complete() bool {
	for _, at := range r.state.Shards().Shards {
		if _, open := r.hosted(at.Shard); r.mine(at) && !open && !r.Out(at.Shard) {
			return false
		}
	}
	return true
}

// mine reports whether the map lets this node hold a replica of the shard.
func (r *Replicas) mine(at metafsm.ShardVoters) bool {
	return slices.Contains(at.Holders(), r.cfg.Self)
}

// openShard opens this node's replica of a shard. A replica without state bootstraps its
// group, or waits until the leader adds it.
func (r *Replicas) openShard(ctx context.Context, number id.Shard) error {
	state := r.newShard()
	group, err := r.open(number, state)
	if err != nil {
		r.Damage(number, err)
		return err
	}
	h := hosted{group, state}
	if !group.HasState() {
		if err := r.cfg.Sync(ctx); err != nil {
			return errors.Join(err, r.shut(h))
		}
		at, _ := r.state.Shards().Shard(number)
		if !r.mine(at) {
			return errors.Join(r.shut(h), r.remove(number))
		}
		if err := r.bootstrap(group, at); err != nil {
			return errors.Join(err, r.shut(h))
		}
	}
	r.host(number, h)
	return nil
}

// host makes an open replica known.
func (r *Replicas) host(number id.Shard, h hosted) {
	r.mu.Lock()
	r.shards[number] = h
	r.mu.Unlock()
	r.cfg.Marks.Wake()
}

// takeOut closes a replica and keeps its files.
func (r *Replicas) takeOut(number id.Shard, h hosted) error {
	r.mu.Lock()
	delete(r.shards, number)
	r.mu.Unlock()
	r.cfg.Meters.Dropped(number)
	return r.shut(h)
}

// OpenEmpty opens a replica without bootstrapping its group: the leader sends it the state.
func (r *Replicas) OpenEmpty(number id.Shard) error {
	state := r.newShard()
	group, err := r.open(number, state)
	if err != nil {
		return err
	}
	r.host(number, hosted{group, state})
	return nil
}

// newShard returns an empty state machine for a shard's replica.
func (r *Replicas) newShard() *shardfsm.Machine {
	return shardfsm.New(r.cfg.Table, r.cfg.Arena)
}

// bootstrap founds a group that has never moved, if this node is one of its first voters.
func (r *Replicas) bootstrap(group *raftfsm.Group, at metafsm.ShardVoters) error {
	if at.Moved || !slices.Contains(at.Voters, r.cfg.Self) {
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

func (r *Replicas) shut(h hosted) error {
	err := h.group.Close()
	h.state.Shard().Close()
	return err
}

// drop closes and erases this node's replica of a shard that the map gives to others.
func (r *Replicas) drop(number id.Shard) error {
	if at, _ := r.state.Shards().Shard(number); r.mine(at) {
		return nil // by the newer map
	}
	r.cfg.Log.Info("this node no longer holds a shard", "group", number)
	var err error
	if h, open := r.hosted(number); open { // not open after a crash between here and remove
		err = r.takeOut(number, h)
	}
	if err == nil {
		err = r.remove(number)
	}
	if err != nil {
		return fmt.Errorf("drop group %d: %w", number, err)
	}
	return nil
}

// remove erases a replica's files and then its entry in the registry.
func (r *Replicas) remove(number id.Shard) error {
	if err := os.RemoveAll(Folder(r.cfg.Dir, number)); err != nil {
		return err
	}
	return r.cfg.Registry.Forget(number)
}

// Damage takes a replica out of service because of err. It ends the node if the replica is
// meta's, or if the files can't be relied on after err.
func (r *Replicas) Damage(number id.Shard, err error) {
	if fatal := r.outages.note(number, err); fatal != nil {
		r.cfg.Fatal(fmt.Errorf("group %d: %w", number, fatal))
		return
	}
	r.cfg.Log.Error("a replica is out of service", "group", number, "err", err)
}

// Folder returns the folder of a group's files in a data directory.
func Folder(dir string, number id.Shard) string {
	return filepath.Join(dir, fmt.Sprintf("group-%d", number))
}

func (r *Replicas) hosted(number id.Shard) (hosted, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	h, ok := r.shards[number]
	return h, ok
}

// Numbers returns the shards that live here, ascending.
func (r *Replicas) Numbers() []id.Shard {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.shards))
}

// All returns meta and the shards that live here, ascending.
func (r *Replicas) All() []id.Shard { return append([]id.Shard{id.Meta}, r.Numbers()...) }

// Group returns the replica of a group on this node (router.Groups).
func (r *Replicas) Group(number id.Shard) (*raftfsm.Group, bool) {
	if number == id.Meta {
		return r.meta, true
	}
	h, ok := r.hosted(number)
	return h.group, ok
}

// Led returns why this node can't serve yet, or nil: the cluster is not founded, or a group
// here has no leader.
func (r *Replicas) Led() error {
	if _, founded := r.state.Cluster(); !founded {
		return errors.New("the cluster is not founded yet")
	}
	if r.state.Shards().Epoch == 0 {
		return errors.New("the shards are not placed yet")
	}
	// Until meta has a record of this node, others know neither its name nor its zone.
	if !slices.ContainsFunc(r.state.Nodes(), func(n metafsm.Node) bool { return n.Member == r.cfg.Self }) {
		return errors.New("the cluster has no record of this node yet")
	}
	for _, number := range r.All() {
		group, ok := r.Group(number)
		if !ok {
			return fmt.Errorf("group %d is not open", number)
		}
		if _, led := group.Leader(); !led {
			return fmt.Errorf("group %d has no leader", number)
		}
	}
	return nil
}

// Out reports whether a replica here is out of service.
func (r *Replicas) Out(number id.Shard) bool {
	_, out := r.outages.get(number)
	return out
}

// OutCount returns how many replicas here are out of service.
func (r *Replicas) OutCount() int { return len(r.outages.all()) }

// RewrittenCount returns how many groups here have committed entries that other members
// have replaced, until an operator has removed their folders.
func (r *Replicas) RewrittenCount() int { return r.outages.rewritten() }

// Alarms describes the replicas that are out of service here and the folders set aside.
func (r *Replicas) Alarms() []string {
	return r.outages.alarms(func(number id.Shard) bool {
		at, _ := r.state.Shards().Shard(number)
		return onlyOn(r.cfg.Self, at)
	})
}

// onlyOn reports whether the map gives a shard to this member and no other.
func onlyOn(m id.Member, at metafsm.ShardVoters) bool {
	holders := at.Holders()
	return len(holders) == 1 && holders[0] == m
}

// Arena returns the memory of all templates here.
func (r *Replicas) Arena() *kernel.Arena { return r.cfg.Arena }

// NotedLevel returns the level that the data directory records.
func (r *Replicas) NotedLevel() uint32 { return r.noted.Load() }

// NoteLevel records the cluster's level in the data directory.
func (r *Replicas) NoteLevel() error {
	noted, err := datadir.NoteLevel(r.cfg.Dir, r.state.Level())
	if err == nil {
		r.noted.Store(noted)
	}
	return err
}

// MetaGroup returns the replica of meta.
func (r *Replicas) MetaGroup() *raftfsm.Group { return r.meta }

// Meta returns meta's state machine (router.Groups).
func (r *Replicas) Meta() *metafsm.Machine { return r.state }

// Shard returns the state machine of a shard's replica here (router.Groups).
func (r *Replicas) Shard(number id.Shard) (*shardfsm.Machine, bool) {
	h, ok := r.hosted(number)
	return h.state, ok
}

// Members returns the members that may hold a group (router.Groups).
func (r *Replicas) Members(number id.Shard) []id.Member {
	if number != id.Meta {
		at, _ := r.state.Shards().Shard(number)
		return at.Holders()
	}
	servers, _, err := r.meta.Servers()
	if err != nil {
		return nil
	}
	list := make([]id.Member, 0, len(servers))
	for _, s := range servers {
		list = append(list, s.Member)
	}
	return list
}

// Stopping makes this node report its replicas as not open, because the node is about to
// stop.
func (r *Replicas) Stopping() { r.stopping.Store(true) }

// HandOver hands all leaderships of this node to other members, so that a stop costs no
// election. It returns when other members lead or ctx ends. Call Stopping first.
func (r *Replicas) HandOver(ctx context.Context) {
	var work sync.WaitGroup
	for _, number := range r.All() {
		group, ok := r.Group(number)
		if !ok {
			continue
		}
		work.Go(func() {
			if err := group.Resign(ctx); err != nil && !errors.Is(err, raftfsm.ErrNotMember) { // the only member has nobody to hand over to
				r.cfg.Log.WarnContext(ctx, "leadership was not handed over", "group", number, "err", err)
			}
		})
	}
	work.Wait()
}

// Memory estimates the bytes that the events of all replicas here take, and the templates of
// subjects in galleries that want them.
func (r *Replicas) Memory() (bytes int64) {
	for _, number := range r.Numbers() {
		if h, open := r.hosted(number); open {
			// A gallery that wants means since a moment ago has none yet.
			h.state.Shard().Average(r.state.SubjectTemplates)
			bytes += h.state.Shard().Memory()
		}
	}
	return bytes
}

// Close closes all groups.
func (r *Replicas) Close() error {
	var work sync.WaitGroup
	numbers := r.Numbers()
	errs := make([]error, len(numbers), len(numbers)+2)
	for i, number := range numbers {
		h, _ := r.hosted(number)
		work.Go(func() { errs[i] = r.shut(h) })
	}
	work.Wait()
	errs = append(errs, r.meta.Close(), r.cfg.Arena.Close())
	r.beats.Close()
	r.proofs.Close()
	return errors.Join(errs...)
}
