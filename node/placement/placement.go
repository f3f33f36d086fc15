package placement

import (
	"context"
	"log/slog"
	"time"

	"facet/internal/id"
	"facet/node/membership"
	"facet/node/replicas"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
)

// Requests of other nodes that Placement answers.
const (
	MethodFounders   = "node.founders"
	MethodMembership = "node.standing"
)

// VotersMax is how many members of meta vote at most; others hold it without a vote.
const VotersMax = 5

// Replicas are the groups that live on this node.
type Replicas interface {
	Meta() *metafsm.Machine
	MetaGroup() *raftfsm.Group
	Group(number id.Shard) (*raftfsm.Group, bool)
	Members(number id.Shard) []id.Member
	Ask(ctx context.Context, m id.Member, q replicas.Query) (replicas.Word, error)
	Leading(ctx context.Context, number id.Shard, members []id.Member) (replicas.Word, bool)
	CaughtUp(ctx context.Context, number id.Shard, commit uint64, members []id.Member) int
	Enough(ctx context.Context, number id.Shard, commit uint64, voters []id.Member) error
}

// Gossip knows which nodes are there.
type Gossip interface {
	Members() []membership.Member
}

// Records changes meta (router.Router).
type Records interface {
	SyncMeta(ctx context.Context) error
	PutNode(ctx context.Context, n metafsm.Node) error
	Sweep(ctx context.Context) error
}

// Peers asks other nodes.
type Peers interface {
	Ask(ctx context.Context, to id.Member, method string, q, a any) error
}

// Config says who this node is, and what the cluster is to be like.
type Config struct {
	Node       id.Node
	Self       id.Member
	Name, Zone string
	Pack       string
	// Level is the one that this node knows (metafsm.Level).
	Level uint32
	// Away is how long a node may be missed before its replicas are rebuilt on others.
	Away time.Duration
	// Expect is how many nodes found the cluster; Shards, Copies and SlotsPerShard are the
	// shape that it gets then.
	Expect, Shards, Copies, SlotsPerShard int
	// KeyCheck tells the cluster's key from others; HasKey reports whether this node has
	// the key of a check.
	KeyCheck func() []byte
	HasKey   func(check []byte) bool

	Replicas Replicas
	Gossip   Gossip
	Records  Records
	Peers    Peers
	Log      *slog.Logger
}

// Placement decides which nodes hold which shards, and moves them there. Found comes
// first; the other steps are called by one goroutine, one after the other.
type Placement struct {
	cfg    Config
	missed map[id.Member]time.Time // since when nodes are missed, on meta's leader
	led    map[id.Shard]time.Time  // since when this node leads groups, or offered to stop
}

// New returns the placement of a node.
func New(c Config) *Placement {
	return &Placement{cfg: c, missed: map[id.Member]time.Time{}, led: map[id.Shard]time.Time{}}
}

// Methods are the requests of other nodes that the placement answers.
func (p *Placement) Methods() map[string]func(context.Context, []byte) ([]byte, error) {
	return map[string]func(context.Context, []byte) ([]byte, error){
		MethodFounders:   p.serveFounders,
		MethodMembership: p.serveMembership,
	}
}

// PackHint returns as much of a pack's identity as gossip carries.
func PackHint(pack string) string { return pack[:min(len(pack), 16)] }
