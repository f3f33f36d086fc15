package calls

import (
	"context"
	"log/slog"
	"sync"

	"facet/internal/requestlog"
	"facet/internal/trace"
)

// Caller carries out methods at the leader or at a replica of a group, on this node
// or on a peer, and serves them to peers.
type Caller struct {
	groups  Groups
	peers   Peers
	log     *slog.Logger
	tracer  *trace.Tracer
	leaders *leaders
	spread  *spread
	hedges  *hedges
	meter   Meter
	methods map[string]handler

	mu     sync.Mutex     // guards closed, and the start of reads
	reads  sync.WaitGroup // tries of reads; those without an answer that counts may outlast their call
	closed bool

	// slowLines bounds the lines about slow answers, leaderless those about groups without a leader.
	slowLines, leaderless *requestlog.Bound
}

// Config has the parts that a Caller uses.
type Config struct {
	Groups Groups
	Peers  Peers
	Log    *slog.Logger
	// Tracer continues the traces of peers. It may be nil.
	Tracer *trace.Tracer
	Meter  Meter // nil counts no hedges
}

type noMeter struct{}

func (noMeter) Hedged()   {}
func (noMeter) HedgeWon() {}

// New returns a Caller without methods.
func New(cfg Config) *Caller {
	if cfg.Meter == nil {
		cfg.Meter = noMeter{}
	}
	return &Caller{
		groups: cfg.Groups, peers: cfg.Peers, log: cfg.Log, tracer: cfg.Tracer, methods: map[string]handler{},
		leaders: newLeaders(cfg.Groups, cfg.Peers.Self()), spread: newSpread(cfg.Groups, cfg.Peers.Self()), hedges: newHedges(), meter: cfg.Meter,
		slowLines: requestlog.NewBound(), leaderless: requestlog.NewBound(),
	}
}

// Close waits for the reads that outlast their call. Calls may still come, from requests that had no
// time to finish when the node stopped.
func (c *Caller) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.reads.Wait()
}

// read carries out a try of a read in a goroutine that the Caller owns, or here once it is closed.
func (c *Caller) read(try func()) {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.reads.Go(try)
	}
	c.mu.Unlock()
	if closed {
		try()
	}
}

// handler carries out one method for a peer.
type handler interface {
	// one carries it out for the group of an Envelope.
	one(ctx context.Context, c *Caller, body []byte) ([]byte, error)
	// many carries it out for several groups at once.
	many(ctx context.Context, c *Caller, q grouped) ([]groupAnswer, error)
}
