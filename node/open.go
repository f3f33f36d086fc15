package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"facet/internal/id"
	"facet/internal/requestlog"
	"facet/node/admin"
	"facet/node/audit"
	"facet/node/backup"
	"facet/node/checks"
	"facet/node/clock"
	"facet/node/datadir"
	"facet/node/expirer"
	"facet/node/holder"
	"facet/node/keys"
	"facet/node/keyuse"
	"facet/node/limits"
	"facet/node/links"
	"facet/node/loop"
	"facet/node/membership"
	"facet/node/merger"
	"facet/node/peer"
	"facet/node/placement"
	"facet/node/replicas"
	"facet/node/rollback"
	"facet/node/tracing"
	"facet/node/transport"
	"facet/node/wire"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/routing"
	"facet/shard/kernel"
)

// part is one part of a node. Its name is unique, and the loop's name if it runs a loop. start returns a
// function that stops it, or nil if there is nothing to stop.
type part struct {
	name  string
	start func(ctx context.Context, n *Node) (stop func() error, err error)
}

// parts lists the parts in the order of their start. They stop in the reverse order. A
// part's goroutines have ended when its stop returns.
var parts = []part{
	{"credentials", openKeys},
	{"metrics", opens(openMetrics)},
	{"traces", openTraces},
	{"port of nodes", openMux},
	{"gossip", openGossip},
	{"client of nodes", openClient},
	{"holder", openHolder},
	{"replicas", openReplicas},
	{"router", openRouter},
	{"limits, checks and placement", opens(newParts)},
	{"rollbacks", runs(func(n *Node) runner { return n.detector })},
	{"audit", runs(func(n *Node) runner { return n.recorder })},
	{"service of backups", openBackups},
	{"port of clients", openPublic},
	{"readings", opens(readState)},
	{"port of operators", openAdmin},
	{"server of nodes", openServer},
	{"identity", runs(func(n *Node) runner { return n.holder })},
	{"links", runs(func(n *Node) runner { return n.links })},
	{"bulk", openBulk},
	{"comparisons", openComparisons},
	{"keys", runs(func(n *Node) runner { return n.keys })},
	{"controller", runs(func(n *Node) runner { return newController(n) })},
	{"purges", runs(func(n *Node) runner { return placement.NewPurger(n.replicas.MetaGroup(), n.router) })},
	{"claims", runs(func(n *Node) runner {
		return placement.NewScrubber(cmp.Or(n.cfg.EraseWithin, raftfsm.EraseWithinDefault), n.router)
	})},
	{"merges", runs(func(n *Node) runner { return merger.New(n.router) })},
	{"expiry", runs(func(n *Node) runner { return n.expirer })},
	{"uses of keys", runs(func(n *Node) runner { return n.keyUses })},
	{"audit logs", runs(func(n *Node) runner { return n.keeper })},
	{"rounds of erasure", runs(func(n *Node) runner { return newRounds(n) })},
	{"warmer", runs(func(n *Node) runner { return n.warmer })},
	{"room", runs(func(n *Node) runner { return n.room })},
	{"codes", runs(func(n *Node) runner { return n.codes })},
	{"access", runs(func(n *Node) runner { return n.access })},
	{"backup", openSchedule},
	{"sizes", runs(func(n *Node) runner { return n.sizes })},
	{"limits", runs(func(n *Node) runner { return n.limits })},
	{"checks", runs(func(n *Node) runner { return n.checks })},
}

// runner is a part with a loop.
type runner interface {
	Run(ctx context.Context)
	State() loop.State
}

// opens returns a start function for a part that has nothing to stop.
func opens(open func(n *Node)) func(context.Context, *Node) (func() error, error) {
	return func(_ context.Context, n *Node) (func() error, error) {
		open(n)
		return nil, nil
	}
}

// runs returns a start function that runs a loop until the part is stopped.
func runs(of func(n *Node) runner) func(context.Context, *Node) (func() error, error) {
	return func(_ context.Context, n *Node) (func() error, error) {
		r := of(n)
		n.mu.Lock()
		n.loops = append(n.loops, r)
		n.mu.Unlock()
		ctx, cancel := context.WithCancel(context.Background())
		var work sync.WaitGroup
		work.Go(func() { r.Run(ctx) })
		return func() error {
			cancel()
			work.Wait()
			return nil
		}, nil
	}
}

// Open starts a node and returns when its ports are open. Ready closes when the node belongs
// to a cluster and serves. ctx limits only the time of Open.
func Open(ctx context.Context, cfg Config) (*Node, error) {
	return open(ctx, cfg, func(string) {})
}

// open does the work of Open. Before it starts a part, it calls starts with the part's name.
func open(ctx context.Context, cfg Config, starts func(name string)) (*Node, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	cfg.Log = slog.New(requestlog.Handler(cfg.Log.Handler()))
	cfg.Extractor = limits.NewQueue(cfg.Extractor)
	who, err := datadir.Open(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if err := datadir.CheckLevel(cfg.Dir, cfg.Level); err != nil {
		return nil, err
	}
	if _, err := datadir.NoteLevel(cfg.Dir, metafsm.LevelFirst); err != nil {
		return nil, err
	}
	table, err := rollback.Open(cfg.Dir, who.Member(), cfg.Log)
	if err != nil {
		return nil, err
	}
	n := &Node{
		marks: table, cfg: cfg, log: cfg.Log, id: who.Node, member: who.Member(), held: datadir.NewRegistry(cfg.Dir, who),
		ready: make(chan struct{}), done: make(chan struct{}),
	}
	for _, p := range parts {
		starts(p.name)
		err := ctx.Err()
		if err == nil {
			var stop func() error
			stop, err = p.start(ctx, n)
			if stop != nil {
				n.stops = append(n.stops, stop)
			}
		}
		if err != nil {
			return nil, errors.Join(err, n.stop())
		}
	}
	return n, nil
}

// stop stops the parts that were started, the last one first.
func (n *Node) stop() error {
	var errs []error
	for _, stop := range slices.Backward(n.stops) {
		errs = append(errs, stop())
	}
	n.stops = nil
	return errors.Join(errs...)
}

// states returns the states of the node's loops.
func (n *Node) states() []loop.State {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []loop.State
	for _, l := range n.loops {
		list = append(list, l.State())
	}
	return list
}

func openKeys(ctx context.Context, n *Node) (stop func() error, err error) {
	n.keys, err = keys.Open(ctx, keys.Config{
		Node: n.id, Self: n.member, Name: n.cfg.Name, Certificates: n.cfg.Certificates,
		Cluster: keys.SourceOf(n.cfg.ClusterKeyFile, n.cfg.CredentialsDir, n.cfg.ClusterKeyCommand),
		Gossip:  keys.SourceOf(n.cfg.GossipKeyFile, n.cfg.CredentialsDir, n.cfg.GossipKeyCommand),
		Log:     n.log,
	})
	return nil, err
}

func openTraces(ctx context.Context, n *Node) (stop func() error, err error) {
	if n.cfg.TracesTo == "" {
		return nil, nil
	}
	n.tracing, err = tracing.Open(ctx, tracing.Config{
		URL: n.cfg.TracesTo, Ratio: n.cfg.TracesRatio, Node: n.id, Name: n.cfg.Name, Version: wire.Version, Log: n.log,
	})
	if err != nil {
		return nil, err
	}
	n.tracer = n.tracing.Tracer()
	return n.tracing.Close, nil
}

func openMux(ctx context.Context, n *Node) (stop func() error, err error) {
	n.access = &access{Loop: loop.New("access"), keys: n.keys, log: n.log}
	n.mux, err = transport.Open(ctx, transport.Config{
		Network: n.cfg.Network, Addr: n.cfg.PeerAddress, Advertise: n.cfg.PeerAdvertise,
		TLS: n.keys.Node().PeerConfig(), Refuse: n.access.refusePeer, Relay: n.access.relayTarget, Log: n.log,
	})
	if err != nil {
		return nil, err
	}
	n.access.mux = n.mux
	return n.mux.Close, nil
}

func openGossip(ctx context.Context, n *Node) (stop func() error, err error) {
	n.gossip, err = membership.Open(ctx, membership.Config{
		Self: n.meta(id.Cluster{}), Mux: n.mux, Seeds: n.cfg.Seeds, Keys: n.keys.GossipSecrets(),
		File: filepath.Join(n.cfg.Dir, "peers"), Log: n.log,
	})
	if err != nil {
		return nil, err
	}
	return n.gossip.Close, nil
}

func openClient(_ context.Context, n *Node) (stop func() error, err error) {
	n.client = transport.OpenClient(n.mux)
	n.peers = peer.New(n.member, n.client, n.resolve)
	beats := transport.OpenClient(n.mux)
	n.beats = peer.New(n.member, beats, n.resolve)
	return func() error { return errors.Join(beats.Close(), n.client.Close()) }, nil
}

func openHolder(_ context.Context, n *Node) (stop func() error, err error) {
	n.holder, err = holder.Open(holder.Config{
		Dir: n.cfg.Dir, Self: n.member, Address: n.mux.Advertise(), Peers: peer.New(n.member, n.client, n.locate),
		Members: n.others, Voters: func() []id.Member { return n.replicas.MetaGroup().Electors() }, Fail: n.fail, Log: n.log,
	})
	return nil, err
}

// others returns the members that gossip shows, and those of meta.
func (n *Node) others() []id.Member {
	list := n.replicas.Members(id.Meta)
	for _, m := range n.gossip.Members() {
		list = append(list, m.Member)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func openReplicas(ctx context.Context, n *Node) (stop func() error, err error) {
	arena := kernel.NewArena(0)
	if n.cfg.Spectrum != nil {
		if err := arena.Suit(n.cfg.Spectrum); err != nil {
			return arena.Close, fmt.Errorf("spectrum of the model pack: %w", err)
		}
	}
	n.replicas, err = replicas.Open(replicas.Config{
		Dir: n.cfg.Dir, Registry: n.held, Level: n.cfg.Level, Self: n.member, Mux: n.mux, Peers: n.peers, Beats: n.beats, Resolve: n.resolve, Holder: n.holder,
		Sync:     func(ctx context.Context) error { return n.router.SyncMeta(ctx) },
		DiskFull: func() bool { return n.limits.DiskFull() }, Fatal: n.fail, Marks: n.marks,
		Timing: n.cfg.Timing, EraseWithin: n.cfg.EraseWithin, Table: n.cfg.Table, Arena: arena, Meters: n.meters, Log: n.log,
	})
	if err != nil {
		return nil, err
	}
	n.access.gossip = n.gossip
	n.access.records.Store(n.replicas.Meta())
	return n.replicas.Close, nil
}

func openRouter(_ context.Context, n *Node) (stop func() error, err error) {
	n.limits = limits.New(limits.Config{Memory: n.cfg.Memory, Used: func() int64 { return eventBytes(n) }, DiskReserve: n.cfg.DiskReserve, Dir: n.cfg.Dir, Log: n.log})
	n.clock = clock.New(clock.Config{Node: n.id, Nodes: n.clocks, Wall: n.cfg.Wall})
	n.router = routing.New(routing.Config{
		Groups: n.replicas, Peers: n.peers, Extractor: metered{n.cfg.Extractor, n.meters}, Table: n.cfg.Table, Master: n.keys.Master(), Log: n.log,
		Turn: limits.Turns(n.cfg.Extractor), Bulk: n.cfg.Bucket != "", Memory: n.limits, Tracer: n.tracer, Meter: n.meters, Clock: n.clock,
		Acted: func(a router.Act) { recordAct(n, a) },
	})
	n.expirer = expirer.New(n.router)
	n.keyUses = keyuse.New(n.router)
	n.recorder, err = audit.New(audit.Config{Log: n.router, Folder: filepath.Join(n.cfg.Dir, "audit"), Logger: n.log})
	if err != nil {
		return n.router.Close, fmt.Errorf("open the audit spool: %w", err)
	}
	n.keeper = audit.NewKeeper(n.router, n.clock.Trusted, n.recorder.Correct)
	n.keys.Join(keys.Cluster{Replicas: n.replicas, Records: n.router, Peers: n.peers, Acted: func(a router.Act) { recordAct(n, a) }}, n.gossip.ChangeKeys)
	return n.router.Close, nil
}

// eventBytes estimates the memory that events and checks of lists take.
func eventBytes(n *Node) int64 { return n.replicas.Memory() + n.router.CheckMemory() }

func newParts(n *Node) {
	n.checks = checks.New(checks.Config{
		Every: n.cfg.CheckEvery, Self: n.member, Software: wire.Version + " " + wire.Revision(), Replicas: n.replicas, Peers: n.peers, Log: n.log,
	})
	n.detector = rollback.New(rollback.Config{
		Table: n.marks, Self: n.member, Replicas: n.replicas, Peers: n.peers, Members: n.gossip.Members, Holds: n.holder.Holds, Fatal: n.fail,
		Log: n.log,
	})
	n.placement = placement.New(placement.Config{
		Node: n.id, Self: n.member, Name: n.cfg.Name, Zone: n.cfg.Zone, Pack: n.cfg.Pack, Level: n.cfg.Level, Away: n.cfg.Away,
		Expect: n.cfg.Expect, Shards: n.cfg.Shards, Copies: n.cfg.Replicas, SlotsPerShard: n.cfg.SlotsPerShard,
		KeyCheck: n.keys.KeyCheck, HasKey: n.keys.HasKey,
		Replicas: n.replicas, Gossip: n.gossip, Records: n.router, Peers: n.peers, Acted: func(a router.Act) { recordAct(n, a) }, Log: n.log,
	})
	n.links = links.New(links.Config{Node: n.id, Mux: n.mux, Present: n.gossip.Members, Name: n.nameOf, Wall: n.clock.Wall, Heard: n.clock.Heard, Log: n.log})
	n.warmer, n.sizes = replicas.NewWarmer(n.replicas, n.router, n.noteReady), replicas.NewSizes(n.replicas)
	n.codes = replicas.NewCodes(n.replicas, n.warmer, n.cfg.CodesLeast)
	n.room = replicas.NewRoom(n.replicas, n.warmer, func() int64 { return eventBytes(n) }, n.limits.Budget)
}

func openBackups(_ context.Context, n *Node) (stop func() error, err error) {
	n.backups = backup.Open(backup.Config{
		Self: n.member, Name: n.cfg.Name, Version: wire.Version, Master: n.keys.Master(), To: n.cfg.BackupTo, Every: n.cfg.BackupEvery, Keep: n.cfg.BackupKeep,
		Serving: n.serving, Replicas: n.replicas, Records: n.router, Peers: n.peers,
		Acted: func(a router.Act) { recordAct(n, a) }, Log: n.log,
	})
	return n.backups.Close, nil
}

func openSchedule(ctx context.Context, n *Node) (stop func() error, err error) {
	if n.cfg.BackupTo == "" {
		return nil, nil
	}
	return runs(func(n *Node) runner { return n.backups })(ctx, n)
}

func openAdmin(ctx context.Context, n *Node) (stop func() error, err error) {
	n.admin, err = admin.Open(ctx, admin.Config{
		Network: n.cfg.Network, Address: n.cfg.AdminAddress,
		Node: n.id, Self: n.member, Name: n.cfg.Name, Pack: n.cfg.Pack, PublicURL: n.cfg.PublicURL, Peer: n.mux.Advertise(),
		Err: n.Err, Serving: n.serving, Alarms: n.alarms, CutLinks: n.links.Cut, Parts: n.states, IsRemoved: n.access.isRemoved, Fail: n.fail,
		Metrics: n.registry, Router: n.router, Replicas: n.replicas, Gossip: n.gossip, Peers: n.peers,
		Placement: n.placement, Keys: n.keys, Backups: n.backups, Audit: n.recorder, Log: n.log, RecentLog: n.cfg.RecentLog, Settings: n.cfg.Settings,
	})
	if err != nil {
		return nil, err
	}
	n.access.port = n.admin
	return n.admin.Close, nil
}

func openServer(_ context.Context, n *Node) (stop func() error, err error) {
	listener, err := n.mux.Peers()
	if err != nil {
		return nil, err
	}
	n.methods = map[string]peer.Handler{}
	for _, of := range []map[string]peer.Handler{
		n.holder.Methods(), n.replicas.Methods(), n.keys.Methods(), n.checks.Methods(), n.backups.Methods(), n.placement.Methods(), n.admin.Methods(),
		n.links.Methods(), n.detector.Methods(),
	} {
		maps.Copy(n.methods, of)
	}
	n.server = transport.OpenServer(transport.ServerConfig{Listener: listener, Handler: n.servePeer, Log: n.log})
	return n.server.Close, nil
}
