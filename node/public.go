package node

import (
	"context"
	"fmt"

	"facet/node/httpapi"
	"facet/raftfsm/metafsm"

	"facet/internal/id"
)

// openPublic opens the HTTPS port. It answers from the first moment on: as long
// as the node does not belong to a cluster, with an error that says so.
func (n *Node) openPublic(ctx context.Context) error {
	source, err := n.certificate("server")
	if err != nil {
		return err
	}
	n.api, err = httpapi.New(httpapi.Config{
		Service: n.router, TLS: source.ServerConfig(), Region: n.cfg.Region, Origins: n.cfg.CORS, Log: n.log,
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

// place plans which members hold which shards.
func place(members []id.Member, cluster metafsm.Cluster) []metafsm.ShardVoters {
	seats := make([]metafsm.Seat, 0, len(members))
	for _, m := range members {
		seats = append(seats, metafsm.Seat{Member: m})
	}
	return metafsm.Place(seats, cluster.Shards, cluster.Replicas)
}
