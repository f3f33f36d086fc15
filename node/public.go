package node

import (
	"context"
	"fmt"

	"facet/node/httpapi"
	"facet/node/limits"
)

// Bodies of requests may take this share of the memory that the process may take, within
// these bounds.
const (
	bodiesShare    = 16
	bodiesBytesMin = 64 << 20
	bodiesBytesMax = 800 << 20
)

func bodiesBytes(memory int64) int {
	return int(min(max(memory/bodiesShare, bodiesBytesMin), bodiesBytesMax))
}

// openPublic opens the HTTPS port. It answers from the first moment on: as long
// as the node does not belong to a cluster, with an error that says so.
func (n *Node) openPublic(ctx context.Context) (err error) {
	n.api, err = httpapi.New(httpapi.Config{
		Service: n.router, TLS: n.keys.Server().ServerConfig(), Region: n.cfg.Region, Origins: n.cfg.CORS, Log: n.log,
		Meter:   answered{n.meters},
		Crowded: limits.Crowded(n.cfg.Extractor),
		Miss:    n.searchMiss,
		Limits:  httpapi.Limits{BodiesBytes: bodiesBytes(limits.SystemMemory()), TenantRate: n.cfg.TenantRate, ApplicationRate: n.cfg.ApplicationRate},
	})
	if err != nil {
		return err
	}
	if n.public, err = n.cfg.Network.Listen(ctx, n.cfg.PublicAddress); err != nil {
		return fmt.Errorf("open public port: %w", err)
	}
	n.work.Go(func() {
		if err := n.api.Serve(n.public); err != nil && n.ctx.Err() == nil {
			n.fail(fmt.Errorf("serve public port: %w", err))
		}
	})
	n.work.Go(func() { n.keys.Run(n.ctx) })
	return nil
}
