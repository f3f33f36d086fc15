package cluster

import (
	"log/slog"
	"time"

	"facet/internal/id"
	"facet/internal/trace"
	"facet/router"
	"facet/router/calls"
	"facet/shard/seal"
)

// Config contains the parts that a cluster uses.
type Config struct {
	Groups router.Groups
	Peers  router.Peers
	Master *seal.Master
	Log    *slog.Logger
	Tracer *trace.Tracer // nil continues no trace
	Meter  calls.Meter
	Clock  router.Clock     // nil trusts the system's clock
	Acted  func(router.Act) // nil forgets what the cluster has done by itself
}

// New returns a cluster that serves the requests of peers about groups.
func New(cfg Config) *Cluster {
	c := &Cluster{
		Groups: cfg.Groups, Peers: cfg.Peers, Master: cfg.Master, Log: cfg.Log, Clock: cfg.Clock, Acted: cfg.Acted, follows: map[id.Shard]*Rounds{},
		Calls: calls.New(calls.Config{Groups: cfg.Groups, Peers: cfg.Peers, Log: cfg.Log, Tracer: cfg.Tracer, Meter: cfg.Meter}),
	}
	c.sync.Run = c.syncMeta
	if c.Acted == nil {
		c.Acted = func(router.Act) {}
	}
	if c.Clock == nil {
		c.Clock = systemClock{}
	}
	calls.Add(c.Calls, c, metaPropose, metaIndex, GroupPoint, shardWiden)
	return c
}

// Close waits for the reads and rounds that are still running. The caller makes no further calls.
func (r *Cluster) Close() {
	r.Calls.Close()
	r.sync.Close()
	r.followMu.Lock()
	defer r.followMu.Unlock()
	for _, f := range r.follows {
		f.Close()
	}
}

// systemClock trusts the system's clock.
type systemClock struct{}

func (systemClock) Now() time.Time             { return time.Now() }
func (systemClock) Trusted() (time.Time, bool) { return time.Now(), true }
