package node

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"facet/internal/id"
	"facet/node/admin"
	"facet/node/cert"
	"facet/node/keys"
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

// access says who may ask what of this node.
type access struct {
	*loop.Loop
	keys *keys.Keys
	mux  *transport.Mux
	log  *slog.Logger
	// records are meta's, once it is open; port is the operators', once Run begins.
	records atomic.Pointer[metafsm.Machine]
	port    *admin.Port
}

// isRemoved reports whether a node was removed, as far as this one knows.
func (a *access) isRemoved(who id.Node) bool {
	records := a.records.Load()
	if records == nil {
		return false // it opens: Run looks at all streams when it has opened
	}
	r, known := records.Node(who)
	return known && r.State == metafsm.NodeRemoved
}

// refusePeer returns why there may be no stream with a node, or nil (transport.Config.Refuse).
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

// mayAsk returns why the node that sent a request may not make it, or nil.
func (a *access) mayAsk(ctx context.Context, method string, body []byte) error {
	who, ok := transport.Caller(ctx)
	record, known := a.records.Load().Node(who)
	switch {
	case method == placement.MethodMembership:
		return nil // by its answer a removed node learns what it is
	case known && record.State == metafsm.NodeRemoved:
		return router.Errorf(router.Forbidden, "", "node %s was removed from the cluster", who)
	case ok && known:
		return nil
	case method == placement.MethodFounders || router.Joins(who, method, body):
		return nil
	default:
		return &router.Error{
			Kind: router.Unavailable, Message: fmt.Sprintf("the node that was asked has no record of node %s", who), RetryAfter: controllerTimeout,
		}
	}
}

// Run cuts the connections of those who may have none any more: of a removed node
// within two seconds of the record of it, and of who showed a certificate of an authority
// that has just been given up. It ends with ctx.
func (a *access) Run(ctx context.Context) {
	defer a.Start()()
	tick := time.NewTicker(accessTick)
	defer tick.Stop()
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
		case <-tick.C:
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
	a.log.Info("the authorities changed: connections of those that are not trusted any more were cut", "nodes", peers, "operators", operators)
}
