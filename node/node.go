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
	"facet/internal/trace"
	"facet/node/admin"
	"facet/node/audit"
	"facet/node/backup"
	"facet/node/checks"
	"facet/node/clock"
	"facet/node/datadir"
	"facet/node/expirer"
	"facet/node/holder"
	"facet/node/httpapi"
	"facet/node/keys"
	"facet/node/keyuse"
	"facet/node/limits"
	"facet/node/links"
	"facet/node/membership"
	"facet/node/metrics"
	"facet/node/peer"
	"facet/node/placement"
	"facet/node/replicas"
	"facet/node/rollback"
	"facet/node/tracing"
	"facet/node/transport"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router/routing"
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
	beats    *peer.Peers // for heartbeats only
	holder   *holder.Holder
	replicas *replicas.Replicas
	methods  map[string]peer.Handler // the requests that parts answer
	router   *routing.Router
	api      *httpapi.Server
	admin    *admin.Port
	access   *access

	tracing   *tracing.Tracing // nil: no request is traced
	tracer    *trace.Tracer    // of tracing, or nil
	registry  *prometheus.Registry
	meters    *metrics.Work
	limits    *limits.Limits
	checks    *checks.Checks
	placement *placement.Placement
	marks     *rollback.Table
	detector  *rollback.Detector
	sizes     *replicas.Sizes
	warmer    *replicas.Warmer
	codes     *replicas.Codes
	room      *replicas.Room
	links     *links.Links
	clock     *clock.Clock
	expirer   *expirer.Expirer
	keyUses   *keyuse.Reporter
	recorder  *audit.Recorder
	keeper    *audit.Keeper

	closing atomic.Bool // Close was called

	stops []func() error // of the started parts, in the order of their start

	mu    sync.Mutex // guards loops
	loops []runner   // the started ones

	ready     chan struct{}
	readyOnce sync.Once
	done      chan struct{}
	failure   sync.Once
	err       error // set before done is closed
}

// Ready returns a channel that closes when the cluster is founded and this node serves.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Done returns a channel that closes when the node has failed. Err returns why. The caller
// still has to call Close.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns why the node has failed, or nil.
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

// fail records that the node can't continue.
func (n *Node) fail(err error) {
	n.failure.Do(func() {
		n.log.Error("the node can't continue", "err", err)
		n.err = err
		close(n.done)
	})
}

// resolve does the work of locate for a node that acts for its member.
func (n *Node) resolve(m id.Member) (string, error) {
	if err := n.holder.Err(); err != nil {
		return "", err
	}
	return n.locate(m)
}

// locate returns the present address of a member, or the last known one. It returns
// transport.ErrRemoved for a removed node.
func (n *Node) locate(m id.Member) (string, error) {
	if m == n.member {
		return n.mux.Advertise(), nil
	}
	if who, err := m.Node(); err == nil && n.access.isRemoved(who) {
		return "", fmt.Errorf("%s: %w", m, transport.ErrRemoved)
	}
	if address, ok := n.holder.Address(m); ok { // gossip may have that of another process
		return address, nil
	}
	if address, ok := n.gossip.Address(m); ok {
		return address, nil
	}
	return "", fmt.Errorf("the address of %s is not known", m)
}

// nameOf returns the name of a node, or its id if meta has no record of it.
func (n *Node) nameOf(who id.Node) string {
	if r, known := n.replicas.Meta().Node(who); known {
		return r.Name
	}
	return who.String()
}

// clocks returns the nodes whose clocks count.
func (n *Node) clocks() (list []id.Node) {
	for _, r := range n.replicas.Meta().Nodes() {
		if r.State != metafsm.NodeRemoved {
			list = append(list, r.ID)
		}
	}
	return list
}

// announce puts the cluster's id into gossip and calls noteReady.
func (n *Node) announce() {
	cluster, founded := n.replicas.Meta().Cluster()
	if !founded {
		return
	}
	if n.gossip.Self().Cluster != cluster.ID {
		if err := n.gossip.Update(n.meta(cluster.ID)); err != nil {
			n.log.Warn("the cluster's id can't be announced by gossip", "err", err)
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

// serving returns why this node does not serve, or nil.
func (n *Node) serving() error {
	if n.closing.Load() {
		return errors.New("the node is stopping")
	}
	if err := n.holder.Err(); err != nil {
		return err
	}
	if err := n.replicas.Led(); err != nil {
		return err
	}
	if !n.warmer.Warmed() {
		return errors.New(wire.OpeningTemplates)
	}
	return n.Err()
}

// meta returns this node's description of itself for gossip.
func (n *Node) meta(cluster id.Cluster) membership.Meta {
	return membership.Meta{
		Member: n.member, Address: n.mux.Advertise(), PublicURL: n.cfg.PublicURL,
		AdminAddress: n.cfg.AdminAddress, Zone: n.cfg.Zone, Weight: 1, Pack: placement.PackHint(n.cfg.Pack), Version: wire.Version, Level: n.cfg.Level, Cluster: cluster,
	}
}

// handOverTimeout is how long a stop waits until other nodes have taken this node's
// leaderships. That takes milliseconds unless no other replica has caught up. At least half
// of the time for a stop is left to requests.
const handOverTimeout = 5 * time.Second

// resolveTimeout bounds the look-up of the node's own address.
const resolveTimeout = time.Second

// Close hands this node's leaderships to other nodes, lets requests finish until ctx ends,
// and closes all parts. The node answers requests during the transfer, and afterwards names
// the new leaders. So a stop costs no election and no write.
//
// A failed node closes at once. Without its disk it can't hand over, and the others elect as
// soon as its connections end.
func (n *Node) Close(ctx context.Context) error {
	n.closing.Store(true)
	n.replicas.Stopping()
	failed := n.Err() != nil
	if !failed {
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
		cancel() // requests get no time
	}
	err := n.api.Close(ctx)
	if failed && errors.Is(err, context.Canceled) {
		err = nil // connections were open, and were cut
	}
	return errors.Join(err, n.stop())
}

// Router returns the router, for tests and tools that call it directly.
func (n *Node) Router() *routing.Router { return n.router }

// Backups returns the part that makes, verifies and restores backups.
func (n *Node) Backups() *backup.Service { return n.backups }

// Admin returns the port for operators.
func (n *Node) Admin() *admin.Port { return n.admin }

// Status describes the cluster as this node sees it (admin.Port.Status).
func (n *Node) Status(ctx context.Context) wire.Status { return n.admin.Status(ctx) }

// alarms describes, for operators, what is damaged, full, doubled or out of reach on this node. It waits
// at most a second for the name service.
func (n *Node) alarms() []string {
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	var lost []string
	if _, err := n.cfg.Network.Resolve(ctx, n.mux.Advertise()); err != nil {
		lost = append(lost, fmt.Sprintf("other nodes can't find this one at %s: %v: correct peer-advertise", n.mux.Advertise(), err))
	}
	return slices.Concat(lost, n.holder.Alarms(), n.replicas.Alarms(), n.checks.Alarms(), n.detector.Alarms(), n.limits.Alarms(), n.clock.Alarms())
}
