package node

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"facet/node/httpapi"
	"facet/node/limits"
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

// openPublic opens the HTTPS port. Until the node belongs to a cluster, the port answers
// with an error that says so.
func openPublic(ctx context.Context, n *Node) (stop func() error, err error) {
	n.api, err = httpapi.New(httpapi.Config{
		Service: n.router, TLS: n.keys.Server().ServerConfig(), Region: n.cfg.Region, Origins: n.cfg.CORS, Log: n.log,
		Health: n.cfg.Health, Canonical: n.cfg.Canonical, MustSign: n.cfg.MustSign,
		Meter:   answered{n.meters},
		Crowded: limits.Crowded(n.cfg.Extractor),
		Miss:    n.searchMiss,
		Limits: httpapi.Limits{
			BodyBytes: n.cfg.BodyBytes, BodiesBytes: bodiesBytes(limits.SystemMemory()),
			TenantRate: n.cfg.TenantRate, ApplicationRate: n.cfg.ApplicationRate,
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
