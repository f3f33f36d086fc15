package node

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"facet/internal/id"
	"facet/node/cert"
	"facet/node/loop"
	"facet/node/placement"
	"facet/node/transport"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// What a node may ask of another is decided by its record in meta, as the one that is asked
// has it, and by the authorities that are trusted now:
//
//	its record        streams                          requests
//	active, draining  all                              all
//	none              all                              founding, standing, its own record
//	removed           requests; open ones are cut      standing, one on each stream
//
// A node that signed up a moment ago may be unknown to one that is behind: what is refused
// for the lack of a record is refused as Unavailable, and asked again.
const (
	// accessTick is how often the authorities are looked at.
	accessTick = time.Second
	// cutAfter is how long the streams of a removed node are left open: the answer to the
	// order that removed it may be on its way. New ones are refused at once.
	cutAfter = 500 * time.Millisecond
)

// isRemoved reports whether a node was removed, as far as this one knows.
func (n *Node) isRemoved(who id.Node) bool {
	records := n.records.Load()
	if records == nil {
		return false // it opens: watchAccess looks at all streams when it has opened
	}
	r, known := records.Node(who)
	return known && r.State == metafsm.NodeRemoved
}

// refusePeer returns why there may be no stream with a node, or nil (transport.Config.Refuse).
func (n *Node) refusePeer(who id.Node, leaf *x509.Certificate) error {
	switch {
	case !n.keys.Node().Trusts(leaf):
		return fmt.Errorf("%w: its authority is not trusted any more", cert.ErrStranger)
	case n.isRemoved(who):
		return fmt.Errorf("node %s: %w", who, transport.ErrRemoved)
	default:
		return nil
	}
}

// mayAsk returns why the node that sent a request may not make it, or nil.
func (n *Node) mayAsk(ctx context.Context, method string, body []byte) error {
	who, ok := transport.Caller(ctx)
	record, known := n.replicas.Meta().Node(who)
	switch {
	case method == placement.MethodStanding:
		return nil // by its answer a removed node learns what it is
	case known && record.State == metafsm.NodeRemoved:
		return router.Errorf(router.Forbidden, "", "node %s was removed from the cluster", who)
	case ok && known:
		return nil
	case method == placement.MethodFounders || router.Joins(who, method, body):
		return nil
	default:
		return &router.Error{
			Kind: router.Unavailable, Message: fmt.Sprintf("the node that was asked has no record of node %s", who), RetryAfter: stewardTimeout,
		}
	}
}

// watchAccess cuts the connections of those who may have none any more: of a removed node
// within two seconds of the record of it, and of who showed a certificate of an authority
// that has just been given up. It ends with ctx.
func (n *Node) watchAccess(ctx context.Context) {
	tick := time.NewTicker(accessTick)
	defer tick.Stop()
	trusted := n.keys.Node().Authorities()
	for {
		changed := n.replicas.Meta().Changed()
		n.cutRemoved()
		now := n.keys.Node().Authorities()
		if !slices.EqualFunc(trusted, now, (*x509.Certificate).Equal) {
			n.cutDistrusted()
		}
		trusted = now
		select {
		case <-changed:
			if loop.Pause(ctx, cutAfter) != nil {
				return
			}
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (n *Node) cutRemoved() {
	if count := n.mux.Cut(func(who id.Node, _ *x509.Certificate) bool { return n.isRemoved(who) }); count > 0 {
		n.log.Info("streams with removed nodes were cut", "count", count)
	}
}

func (n *Node) cutDistrusted() {
	peers := n.mux.Cut(func(_ id.Node, leaf *x509.Certificate) bool { return !n.keys.Node().Trusts(leaf) })
	operators := n.admin.Cut(func(leaf *x509.Certificate) bool { return !n.keys.Node().Trusts(leaf) })
	n.log.Info("the authorities changed: connections of those that are not trusted any more were cut", "nodes", peers, "operators", operators)
}
