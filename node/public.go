package node

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"

	"facet/internal/id"
	"facet/node/httpapi"
	"facet/node/limits"
	"facet/raftfsm/metafsm"
)

// Bodies of requests may take 1/bodiesShare of limits.SystemMemory, within these bounds.
const (
	bodiesShare    = 16
	bodiesBytesMin = 64 << 20
	bodiesBytesMax = 800 << 20
)

func bodiesBytes(memory int64) int {
	return int(min(max(memory/bodiesShare, bodiesBytesMin), bodiesBytesMax))
}

// quota returns what this node grants a tenant. The tenant's own value of a quota comes
// first, then the setting of the node, then the default.
func (n *Node) quota(who id.Tenant) httpapi.Quota {
	meta := n.replicas.Meta()
	requests, own := meta.Most(who, metafsm.QuotaRequests)
	searches, _ := meta.Most(who, metafsm.QuotaSearches)
	q := httpapi.Quota{Requests: httpapi.Rate{PerSecond: float64(requests)}, Searches: int(searches)}
	if rate := n.api.Rules().TenantRate; !own && rate.PerSecond > 0 {
		q.Requests = rate
	}
	return q
}

// openPublic opens the HTTPS port. Until the node belongs to a cluster, the port answers
// with an error that says so.
func openPublic(ctx context.Context, n *Node) (stop func() error, err error) {
	public, err := url.Parse(n.cfg.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("read the public URL: %w", err)
	}
	n.api, err = httpapi.New(httpapi.Config{
		Port:    public.Port(),
		Service: n.router, TLS: n.keys.Server().ServerConfig(), Region: n.cfg.Region, Rules: n.cfg.rules(), Log: n.log,
		Meter:   answered{n.meters},
		Used:    n.keyUses.Used,
		Audit:   n.recorder,
		Crowded: limits.Crowded(n.cfg.Extractor),
		Quota:   n.quota,
		Tracer:  n.tracer,
		Limits: httpapi.Limits{
			BodyBytes: n.cfg.BodyBytes, BodiesBytes: bodiesBytes(limits.SystemMemory()),
		},
	})
	if err != nil {
		return nil, err
	}
	listener, err := n.cfg.Network.Listen(ctx, n.cfg.PublicAddress)
	if err != nil {
		return nil, fmt.Errorf("open public port: %w", err)
	}
	var work sync.WaitGroup
	var stopping atomic.Bool
	work.Go(func() {
		if err := n.api.Serve(listener); err != nil && !stopping.Load() {
			n.fail(fmt.Errorf("serve public port: %w", err))
		}
	})
	return func() error {
		stopping.Store(true)
		_ = listener.Close() // n.api has closed it, unless the start failed
		work.Wait()
		return nil
	}, nil
}
