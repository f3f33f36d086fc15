package routing

import (
	"log/slog"

	"facet/internal/id"
	"facet/internal/trace"
	"facet/router"
	"facet/router/calls"
	"facet/shard/seal"
)

// clusterConfig contains the parts that a cluster uses.
type clusterConfig struct {
	Groups router.Groups
	Peers  router.Peers
	Master *seal.Master
	Log    *slog.Logger
	Tracer *trace.Tracer // nil continues no trace
	Meter  calls.Meter
	Clock  router.Clock     // nil trusts the system's clock
	Acted  func(router.Act) // nil forgets what the cluster has done by itself
}

// newCluster returns a cluster that serves the requests of peers about groups.
func newCluster(cfg clusterConfig) *cluster {
	c := &cluster{
		groups: cfg.Groups, peers: cfg.Peers, master: cfg.Master, log: cfg.Log, clock: cfg.Clock, acted: cfg.Acted, follows: map[id.Shard]*calls.Rounds{},
		calls: calls.New(calls.Config{Groups: cfg.Groups, Peers: cfg.Peers, Log: cfg.Log, Tracer: cfg.Tracer, Meter: cfg.Meter}),
	}
	c.sync.Run = c.syncMeta
	if c.acted == nil {
		c.acted = func(router.Act) {}
	}
	if c.clock == nil {
		c.clock = systemClock{}
	}
	calls.Add(c.calls, c, metaPropose)
	calls.Add(c.calls, c, metaIndex)
	calls.Add(c.calls, c, groupPoint)
	calls.Add(c.calls, c, shardWiden)
	return c
}

// Close waits for the reads and rounds that are still running. The caller makes no further calls.
func (r *cluster) Close() {
	r.calls.Close()
	r.sync.Close()
	r.followMu.Lock()
	defer r.followMu.Unlock()
	for _, f := range r.follows {
		f.Close()
	}
}

// systemClock trusts the system's clock.
type systemClock struct{}
