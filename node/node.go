package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"facet/internal/id"
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
	"facet/router"
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
	router   *router.Router
	api      *httpapi.Server
	admin    *admin.Port
	access   *access

	registry  *prometheus.Registry
	meters    *metrics.Work
	limits    *limits.Limits
	checks    *checks.Checks
	placement *placement.Placement
	sizes     *replicas.Sizes
	warmer    *replicas.Warmer

	closing atomic.Bool // Close was called

	stops []func() error // of the parts that have been started, in that order

	mu    sync.Mutex // guards loops
	loops []runner   // that have been started

	ready     chan struct{}
	readyOnce sync.Once
	done      chan struct{}
	failure   sync.Once
	err       error // set before done is closed
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

// ID returns the node's id.
func (n *Node) ID() id.Node { return n.id }

// fail notes that the node can't go on.
func (n *Node) fail(err error) {
	n.failure.Do(func() {
		n.log.Error("the node can't go on", "err", err)
		n.err = err
		close(n.done)
	})
}

// resolve returns the address of a member: gossip's, or the last that was known. A removed
// node is not called.
func (n *Node) resolve(m id.Member) (string, error) {
	if m == n.member {
		return n.mux.Advertise(), nil
	}
	if who, err := m.Node(); err == nil && n.access.isRemoved(who) {
		return "", fmt.Errorf("%s: %w", m, transport.ErrRemoved)
	}
	if address, ok := n.gossip.Address(m); ok {
		return address, nil
	}
	return "", fmt.Errorf("the address of %s is not known", m)
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
	return errors.Join(n.api.Close(ctx), n.stop())
}

// Router returns what carries out requests: tests and tools call it directly.
func (n *Node) Router() *router.Router { return n.router }

// Backups returns what makes, verifies and restores backups.
func (n *Node) Backups() *backup.Service { return n.backups }

// Admin returns what carries out operators' orders.
func (n *Node) Admin() *admin.Port { return n.admin }

// Status is the cluster as this node sees it, with the account of each node that
// answers in time.
func (n *Node) Status(ctx context.Context) wire.Status { return n.admin.Status(ctx) }

// alarms says in words what is damaged or full on this node.
func (n *Node) alarms() []string {
	return slices.Concat(n.replicas.Alarms(), n.checks.Alarms(), n.limits.Alarms())
}
