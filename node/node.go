package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"facet/internal/id"
	"facet/internal/requestlog"
	"facet/node/admin"
	"facet/node/backup"
	"facet/node/checks"
	"facet/node/datadir"
	"facet/node/httpapi"
	"facet/node/keys"
	"facet/node/limits"
	"facet/node/membership"
	"facet/node/metrics"
	"facet/node/peer"
	"facet/node/placement"
	"facet/node/replicas"
	"facet/node/transport"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/shard/kernel"
)

// Node is one process of a cluster. Open it, wait for Ready, and Close it.
type Node struct {
	cfg     Config
	log     *slog.Logger
	member  id.Member
	id      id.Node
	keys    *keys.Keys
	held    *datadir.Registry
	backups *backup.Service

	mux      *transport.Mux
	gossip   *membership.Membership
	client   *transport.Client
	server   *transport.Server
	peers    *peer.Peers
	replicas *replicas.Replicas
	methods  map[string]func(context.Context, []byte) ([]byte, error) // that parts answer
	// records are meta's, once it is open.
	records atomic.Pointer[metafsm.Machine]
	router  *router.Router
	api     *httpapi.Server
	admin   *admin.Port
	public  net.Listener
	bulk    *bulk

	registry  *prometheus.Registry
	meters    *metrics.Work
	limits    *limits.Limits
	checks    *checks.Checks
	placement *placement.Placement
	sizes     *replicas.Sizes
	warmer    *replicas.Warmer

	closing atomic.Bool // Close was called

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	ready     chan struct{}
	readyOnce sync.Once
	done      chan struct{}
	failure   sync.Once
	err       error // set before done is closed
}

// Open starts a node. It returns when the ports are open; Ready tells when the
// node belongs to a cluster and serves. ctx bounds the opening only.
func Open(ctx context.Context, cfg Config) (_ *Node, err error) {
	cfg, err = cfg.complete()
	if err != nil {
		return nil, err
	}
	cfg.Log = slog.New(requestlog.Handler(cfg.Log.Handler()))
	cfg.Extractor = limits.NewQueue(cfg.Extractor)
	who, err := datadir.Open(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if err := datadir.CheckLevel(cfg.Dir, cfg.level()); err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, log: cfg.Log, id: who.Node, member: who.Member(), held: datadir.NewRegistry(cfg.Dir, who),
		ready: make(chan struct{}), done: make(chan struct{}),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	n.keys, err = keys.Open(keys.Config{
		Node: n.id, Self: n.member, Name: cfg.Name, Certificates: cfg.Certificates,
		ClusterKeyFile: cfg.ClusterKeyFile, GossipKeyFile: cfg.GossipKeyFile, Log: n.log,
	})
	if err != nil {
		return nil, err
	}
	n.openMetrics()
	if err := n.openPeers(ctx); err != nil {
		return nil, err
	}
	n.checks = checks.New(checks.Config{
		Every: cfg.CheckEvery, Self: n.member, Software: wire.Version + " " + revision(), Replicas: n.replicas, Peers: n.peers, Log: n.log,
	})
	n.limits = limits.New(limits.Config{Memory: cfg.Memory, Used: n.replicas.Memory, DiskReserve: cfg.DiskReserve, Dir: cfg.Dir, Log: n.log})
	n.router = router.New(router.Config{
		Groups: n.replicas, Peers: n.peers, Extractor: metered{cfg.Extractor, n.meters}, Table: cfg.Table, Master: n.keys.Master(), Log: n.log,
		Bulk: cfg.Bucket != "", Memory: n.limits, Meter: n.meters,
	})
	n.keys.Join(keys.Cluster{Replicas: n.replicas, Records: n.router, Peers: n.peers}, n.gossip.ChangeKeys)
	n.placement = placement.New(placement.Config{
		Node: n.id, Self: n.member, Name: cfg.Name, Zone: cfg.Zone, Pack: cfg.Pack, Level: cfg.level(), Away: cfg.Away,
		Expect: cfg.Expect, Shards: cfg.Shards, Copies: cfg.Replicas, SlotsPerShard: cfg.SlotsPerShard,
		KeyCheck: n.keys.KeyCheck, HasKey: n.keys.HasKey,
		Replicas: n.replicas, Gossip: n.gossip, Records: n.router, Peers: n.peers, Log: n.log,
	})
	n.backups = backup.Open(backup.Config{
		Self: n.member, Version: wire.Version, Master: n.keys.Master(), To: cfg.BackupTo, Every: cfg.BackupEvery, Keep: cfg.BackupKeep,
		Serving: n.serving, Replicas: n.replicas, Records: n.router, Peers: n.peers, Log: n.log,
	})
	n.warmer, n.sizes = replicas.NewWarmer(n.replicas, n.router, n.noteReady), replicas.NewSizes(n.replicas)
	if err := n.openServers(ctx); err != nil {
		return nil, err
	}
	if n.bulk, err = openBulk(cfg, n.router, n.meters.File); err != nil {
		return nil, err
	}
	n.work.Go(n.run)
	n.work.Go(func() { n.warmer.Run(n.ctx) })
	n.work.Go(func() { n.watchAccess(n.ctx) })
	if cfg.BackupTo != "" {
		n.work.Go(func() { n.backups.Run(n.ctx) })
	}
	n.work.Go(func() { n.sizes.Run(n.ctx) })
	n.work.Go(func() { n.limits.Run(n.ctx) })
	n.work.Go(func() { n.checks.Run(n.ctx) })
	return n, nil
}

// Ready is closed when the cluster is founded and this node serves.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Done is closed when the node had to stop by itself; Err says why.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err says why the node stopped by itself, once Done is closed.
func (n *Node) Err() error {
	select {
	case <-n.done:
		return n.err
	default:
		return nil
	}
}

// ID gives the node's id.
func (n *Node) ID() id.Node { return n.id }

// fail notes that the node can't go on.
func (n *Node) fail(err error) {
	n.failure.Do(func() {
		n.log.Error("the node can't go on", "err", err)
		n.err = err
		close(n.done)
	})
}

// openPeers opens the port between nodes and what speaks through it, and meta.
func (n *Node) openPeers(ctx context.Context) (err error) {
	n.mux, err = transport.Open(ctx, transport.Config{
		Network: n.cfg.Network, Addr: n.cfg.PeerAddress, Advertise: n.cfg.PeerAdvertise,
		TLS: n.keys.Node().PeerConfig(), Refuse: n.refusePeer, Log: n.log,
	})
	if err != nil {
		return err
	}
	n.gossip, err = membership.Open(ctx, membership.Config{
		Self: n.meta(id.Cluster{}), Mux: n.mux, Seeds: n.cfg.Seeds, Keys: n.keys.GossipSecrets(),
		File: filepath.Join(n.cfg.Dir, "peers"), Log: n.log,
	})
	if err != nil {
		return err
	}
	n.client = transport.OpenClient(n.mux)
	n.peers = peer.New(n.member, n.client, n.resolve)
	arena := kernel.NewArena(0)
	if n.cfg.Spectrum != nil {
		if err := arena.Suit(n.cfg.Spectrum); err != nil {
			return fmt.Errorf("spectrum of the model pack: %w", err)
		}
	}
	if n.cfg.SearchMiss > 0 {
		if err := arena.Probable(n.cfg.SearchMiss); err != nil {
			return fmt.Errorf("bound of searches: %w", err)
		}
		n.log.Warn("searches may lose a hit, as the setting search-bound permits", "probability", n.cfg.SearchMiss)
	}
	n.replicas, err = replicas.Open(replicas.Config{
		Dir: n.cfg.Dir, Registry: n.held, Level: n.cfg.level(), Self: n.member, Mux: n.mux, Peers: n.peers, Resolve: n.resolve,
		Sync:     func(ctx context.Context) error { return n.router.SyncMeta(ctx) },
		DiskFull: func() bool { return n.limits.DiskFull() }, Fatal: n.fail,
		Timing: n.cfg.Timing, EraseWithin: n.cfg.EraseWithin, Table: n.cfg.Table, Arena: arena, Meters: n.meters, Log: n.log,
	})
	if err != nil {
		return err
	}
	n.records.Store(n.replicas.Meta())
	return nil
}

// openServers opens the ports that others call.
func (n *Node) openServers(ctx context.Context) error {
	err := n.openPublic(ctx)
	if err != nil {
		return err
	}
	n.readState()
	n.admin, err = admin.Open(ctx, admin.Config{
		Network: n.cfg.Network, Address: n.cfg.AdminAddress,
		Node: n.id, Self: n.member, Name: n.cfg.Name, Pack: n.cfg.Pack, PublicURL: n.cfg.PublicURL, Peer: n.mux.Advertise(),
		SearchMiss: n.cfg.SearchMiss, Err: n.Err, Serving: n.serving, Alarms: n.alarms, IsRemoved: n.isRemoved, Fail: n.fail,
		Metrics: n.registry, Router: n.router, Replicas: n.replicas, Gossip: n.gossip, Peers: n.peers,
		Placement: n.placement, Keys: n.keys, Backups: n.backups, Log: n.log,
	})
	if err != nil {
		return err
	}
	listener, err := n.mux.Peers()
	if err != nil {
		return err
	}
	n.methods = map[string]func(context.Context, []byte) ([]byte, error){}
	maps.Copy(n.methods, n.replicas.Methods())
	maps.Copy(n.methods, n.keys.Methods())
	maps.Copy(n.methods, n.checks.Methods())
	maps.Copy(n.methods, n.backups.Methods())
	maps.Copy(n.methods, n.placement.Methods())
	maps.Copy(n.methods, n.admin.Methods())
	n.server = transport.OpenServer(transport.ServerConfig{Listener: listener, Handler: n.servePeer, Log: n.log})
	return nil
}

// resolve gives the address of a member: gossip's, or the last that was known. A removed
// node is not called.
func (n *Node) resolve(m id.Member) (string, error) {
	if m == n.member {
		return n.mux.Advertise(), nil
	}
	if who, err := m.Node(); err == nil && n.isRemoved(who) {
		return "", fmt.Errorf("%s: %w", m, transport.ErrRemoved)
	}
	if address, ok := n.gossip.Address(m); ok {
		return address, nil
	}
	return "", fmt.Errorf("the address of %s is not known", m)
}

// run founds or joins the cluster and then keeps it.
func (n *Node) run() {
	if err := n.placement.Found(n.ctx); err != nil {
		if n.ctx.Err() == nil {
			n.fail(err)
		}
		return
	}
	n.stewardRun(n.ctx)
}

// announce tells gossip which cluster this node belongs to, and marks the node
// ready once all its groups have a leader.
func (n *Node) announce() {
	cluster, founded := n.replicas.Meta().Cluster()
	if !founded {
		return
	}
	if n.gossip.Self().Cluster != cluster.ID {
		if err := n.gossip.Update(n.meta(cluster.ID)); err != nil {
			n.log.Warn("gossip does not say which cluster this is", "err", err)
		}
	}
	n.noteReady()
}

// noteReady closes Ready once the node serves.
func (n *Node) noteReady() {
	if n.serving() == nil {
		n.readyOnce.Do(func() {
			cluster, _ := n.replicas.Meta().Cluster()
			n.log.Info("serving", "cluster", cluster.ID, "url", n.cfg.PublicURL)
			close(n.ready)
		})
	}
}

// serving says what keeps this node from serving, or nil.
func (n *Node) serving() error {
	if n.closing.Load() {
		return errors.New("the node is stopping")
	}
	if err := n.replicas.Led(); err != nil {
		return err
	}
	if !n.warmer.Warmed() {
		return errors.New("not all templates are open yet")
	}
	return n.Err()
}

// meta is what this node says of itself in gossip.
func (n *Node) meta(cluster id.Cluster) membership.Meta {
	return membership.Meta{
		Member: n.member, Address: n.mux.Advertise(), PublicURL: n.cfg.PublicURL,
		AdminAddress: n.cfg.AdminAddress, Zone: n.cfg.Zone, Weight: 1, Pack: placement.PackHint(n.cfg.Pack), Version: wire.Version, Level: placement.RecordLevel(n.cfg.level()), Cluster: cluster, SearchMiss: n.cfg.SearchMiss,
	}
}

// searchMiss is the largest probability with which a node of the cluster may lose a hit: any of
// them may have had a part in a search.
func (n *Node) searchMiss() float64 {
	most := n.cfg.SearchMiss
	for _, m := range n.gossip.Members() {
		most = max(most, m.SearchMiss)
	}
	return most
}

// handOverTimeout bounds the wait for others to take this node's leaderships: it takes
// milliseconds, unless there are none that have caught up. Half of what a stop may take
// is left to requests.
const handOverTimeout = 5 * time.Second

// Close hands this node's leaderships to others, lets requests finish as long as
// ctx permits, and closes everything. Until it has handed over the node answers as
// before, and then tells who leads: a stop costs no election and refuses no write.
//
// A node that can't go on closes at once: who has no disk can't hand over, and others
// elect as soon as its connections end.
func (n *Node) Close(ctx context.Context) error {
	n.closing.Store(true)
	n.replicas.Stopping()
	if n.Err() == nil {
		most := handOverTimeout
		if end, ok := ctx.Deadline(); ok {
			most = min(most, time.Until(end)/2)
		}
		handing, cancel := context.WithTimeout(ctx, most)
		n.replicas.HandOver(handing)
		cancel()
	} else {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		cancel() // nothing is waited for
	}
	var errs []error
	if n.api != nil {
		errs = append(errs, n.api.Close(ctx))
	}
	return errors.Join(append(errs, n.close())...)
}

// close closes what is open, in the opposite order of opening.
func (n *Node) close() error {
	n.cancel()
	n.work.Wait()
	var errs []error
	closing := func(open bool, close func() error) {
		if open {
			errs = append(errs, close())
		}
	}
	closing(n.bulk != nil, n.bulk.close)
	closing(n.backups != nil, n.backups.Close)
	closing(n.server != nil, n.server.Close)
	closing(n.admin != nil, n.admin.Close)
	closing(n.public != nil, func() error { n.public.Close(); return nil })
	closing(n.replicas != nil, n.replicas.Close)
	closing(n.router != nil, n.router.Close)
	closing(n.client != nil, n.client.Close)
	closing(n.gossip != nil, n.gossip.Close)
	closing(n.mux != nil, n.mux.Close)
	return errors.Join(errs...)
}

// Router gives what carries out requests: tests and tools call it directly.
func (n *Node) Router() *router.Router { return n.router }

// Backups gives what makes, verifies and restores backups.
func (n *Node) Backups() *backup.Service { return n.backups }

// Admin gives what carries out operators' orders.
func (n *Node) Admin() *admin.Port { return n.admin }

// Status is the cluster as this node sees it, with the account of each node that
// answers in time.
func (n *Node) Status(ctx context.Context) wire.Status { return n.admin.Status(ctx) }

// alarms says in words what is damaged or full on this node.
func (n *Node) alarms() []string {
	return slices.Concat(n.replicas.Alarms(), n.checks.Alarms(), n.limits.Alarms())
}
