package node

import (
	"context"
	"fmt"

	"facet/node/httpapi"
)

// openPublic opens the HTTPS port. It answers from the first moment on: as long
// as the node does not belong to a cluster, with an error that says so.
func (n *Node) openPublic(ctx context.Context) error {
	source, err := n.certificate("server")
	if err != nil {
		return err
	}
	n.serverCert = source
	n.api, err = httpapi.New(httpapi.Config{
		Service: n.router, TLS: source.ServerConfig(), Region: n.cfg.Region, Origins: n.cfg.CORS, Log: n.log,
		Meter:  answered{n.meters},
		Limits: httpapi.Limits{TenantRate: n.cfg.TenantRate, ApplicationRate: n.cfg.ApplicationRate},
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
	return nil
}
