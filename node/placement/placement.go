package placement

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"time"

	"facet/internal/id"
	"facet/node/membership"
	"facet/node/peer"
	"facet/node/replicas"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// Requests of other nodes that Placement answers.
const (
	MethodFounders   = "node.founders"
	MethodMembership = "node.standing"
)

// VotersMax is the most voters of meta. Further members receive its log without a vote.
const VotersMax = 5

// Replicas is the access to the groups on this node.
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

// Gossip lists the nodes that are present.
type Gossip interface {
	Members() []membership.Member
}

// Records changes meta (routing.Router).
type Records interface {
	SyncMeta(ctx context.Context) error
	PutNode(ctx context.Context, n metafsm.Node) error
	// EnsureSigner makes the cluster's signing key when it has none.
	EnsureSigner(ctx context.Context) error
}

// Peers asks other nodes.
type Peers interface {
	Ask(ctx context.Context, to id.Member, method string, q, a any) error
}

// Config describes this node and the shape of a cluster that it founds.
type Config struct {
	Node       id.Node
	Self       id.Member
	Name, Zone string
	Pack       string
	// Level is the highest level that this node's software knows (metafsm.Level).
	Level uint32
	// Away is how long a node may be missing before its replicas are rebuilt on others.
	Away time.Duration
	// Expect is the number of founders. A new cluster gets Shards, Copies (replicas of each
	// shard) and SlotsPerShard.
	Expect, Shards, Copies, SlotsPerShard int
	// KeyCheck returns a hash that identifies the cluster's key. HasKey reports whether this
	// node has the key with that hash.
	KeyCheck func() []byte
	HasKey   func(check []byte) bool

	Replicas Replicas
	Gossip   Gossip
	Records  Records
	Peers    Peers
	// Acted receives the ends of moves, for the cluster's audit log.
	Acted func(router.Act)
	Log   *slog.Logger
}

// Placement decides which nodes hold which shards, and moves them there. Call Found first.
// One goroutine calls the other steps.
type Placement struct {
	cfg    Config
	away   atomic.Int64            // of SetAway
	missed map[id.Member]time.Time // on meta's leader: when each missing node was first missed
	led    map[id.Shard]time.Time  // when this node began to lead a group, or last offered to hand it over
	// refused has the member that the last failed transfer of a group on the move was to.
	refused map[id.Shard]id.Member
}

// New returns a Placement; it has no goroutine.
func New(c Config) *Placement {
	p := &Placement{cfg: c, missed: map[id.Member]time.Time{}, led: map[id.Shard]time.Time{}, refused: map[id.Shard]id.Member{}}
	p.SetAway(c.Away)
	return p
}

// SetAway changes Config.Away. It is safe for concurrent use.
func (p *Placement) SetAway(d time.Duration) { p.away.Store(int64(d)) }

// Methods returns the handlers of the requests that the placement answers to other nodes.
func (p *Placement) Methods() map[string]peer.Handler {
	return map[string]peer.Handler{
		MethodFounders:   func(context.Context, []byte) ([]byte, error) { return json.Marshal(p.founders()) },
		MethodMembership: peer.Answers(p.membershipOf),
	}
}

// PackHint returns the first part of a pack's identity, which gossip carries.
func PackHint(pack string) string { return pack[:min(len(pack), 16)] }
