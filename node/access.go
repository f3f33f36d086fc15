package node

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"facet/internal/id"
	"facet/internal/tick"
	"facet/node/admin"
	"facet/node/cert"
	"facet/node/holder"
	"facet/node/keys"
	"facet/node/loop"
	"facet/node/membership"
	"facet/node/placement"
	"facet/node/rollback"
	"facet/node/transport"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/cluster"
)

// A node decides by its own replica of meta and by the authorities that it trusts now what
// another node may do:
//
//	the other's record  streams                         requests
//	active, draining    all                             all
//	none                all but relayed ones            founding, membership, its identity, its own record, lost state
//	removed             requests; open ones are cut     membership, one on each stream
//
// A relayed stream counts as one of the node at its origin, on every node that it passes.
//
// A node that has just registered may have no record on a node that is behind. The refusal
// is then Unavailable, and the node asks again.
const (
	// accessInterval is how often Run checks whether the trusted authorities have changed.
	accessInterval = time.Second
	// cutAfter is how long the streams of a removed node stay open, so that the answer to
	// the order of its removal arrives. New streams are refused at once.
	cutAfter = 500 * time.Millisecond
	// recordWait is after what time a node asks again that nobody has a record of.
	recordWait = 5 * time.Second
)

// access decides what each other node may request from this node.
type access struct {
	*loop.Loop
	keys    *keys.Keys
	mux     *transport.Mux
	log     *slog.Logger
	records atomic.Pointer[metafsm.Machine] // nil until meta is open
	gossip  *membership.Membership          // set before records
	port    *admin.Port                     // set before Run
}

// isRemoved reports whether this node's replica of meta records a node as removed.
func (a *access) isRemoved(who id.Node) bool {
	records := a.records.Load()
	if records == nil {
		return false // Run checks all streams once meta is open
	}
	r, known := records.Node(who)
	return known && r.State == metafsm.NodeRemoved
}

// refusePeer returns the error with which this node refuses a connection with another node,
// or nil (transport.Config.Refuse).
func (a *access) refusePeer(who id.Node, leaf *x509.Certificate) error {
	switch {
	case !a.keys.Node().Trusts(leaf):
		return fmt.Errorf("%w: its authority is not trusted any more", cert.ErrStranger)
	case a.isRemoved(who):
		return fmt.Errorf("node %s: %w", who, transport.ErrRemoved)
	default:
		return nil
	}
}

// relayTarget returns the address of the node to, to which this node relays a stream of the
// node from (transport.Config.Relay). Both must have a record and not be removed.
func (a *access) relayTarget(from, to id.Node) (string, error) {
	records := a.records.Load()
	if records == nil {
		return "", errors.New("this node has no records yet")
	}
	for _, who := range []id.Node{from, to} {
		if r, known := records.Node(who); !known || r.State == metafsm.NodeRemoved {
			return "", fmt.Errorf("node %s is not in the cluster", who)
		}
	}
	m, present := a.gossip.Node(to)
	if !present {
		return "", fmt.Errorf("node %s is not present", to)
	}
	return m.Address, nil
}

// mayAsk returns why the node that sent a request may not make it, or nil.
func (a *access) mayAsk(ctx context.Context, method string, body []byte) error {
	who, ok := transport.Caller(ctx)
	record, known := a.records.Load().Node(who)
	switch {
	case method == placement.MethodMembership:
		return nil // a removed node learns from the answer that it was removed
	case known && record.State == metafsm.NodeRemoved:
		return router.Errorf(router.Forbidden, "", "node %s was removed from the cluster", who)
	case ok && known:
		return nil
	case method == placement.MethodFounders || method == holder.MethodClaim || method == rollback.MethodExchange || cluster.Joins(who, method, body):
		return nil
	default:
		return &router.Error{
			Kind: router.Unavailable, Message: fmt.Sprintf("the node that was asked has no record of node %s", who), RetryAfter: recordWait,
		}
	}
}

// Run cuts the connections of a removed node within two seconds after the record of the
// removal has arrived. It also cuts the connections whose certificate is of an authority
// that was just retired. It ends with ctx.
func (a *access) Run(ctx context.Context) {
	defer a.Start()()
	trusted := a.keys.Node().Authorities()
	for {
		changed := a.records.Load().Changed()
		a.cutRemoved()
		a.Done(nil)
		now := a.keys.Node().Authorities()
		if !slices.EqualFunc(trusted, now, (*x509.Certificate).Equal) {
			a.cutDistrusted()
		}
		trusted = now
		select {
		case <-changed:
			if loop.Pause(ctx, cutAfter) != nil {
				return
			}
		case <-time.After(tick.Until(accessInterval)):
		case <-ctx.Done():
			return
		}
	}
}

func (a *access) cutRemoved() {
	if count := a.mux.Cut(func(who id.Node, _ *x509.Certificate) bool { return a.isRemoved(who) }); count > 0 {
		a.log.Info("streams with removed nodes were cut", "count", count)
	}
}

func (a *access) cutDistrusted() {
	peers := a.mux.Cut(func(_ id.Node, leaf *x509.Certificate) bool { return !a.keys.Node().Trusts(leaf) })
	operators := a.port.Cut(func(leaf *x509.Certificate) bool { return !a.keys.Node().Trusts(leaf) })
	a.log.Info("the authorities changed: connections with certificates of retired ones were cut", "nodes", peers, "operators", operators)
}
