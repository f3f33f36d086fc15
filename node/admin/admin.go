package admin

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"facet/internal/id"
	"facet/node/cert"
	"facet/node/loop"
	"facet/node/membership"
	"facet/node/transport"
	"facet/node/wire"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
)

// Replicas are the groups that live on this node.
type Replicas interface {
	Meta() *metafsm.Machine
	MetaGroup() *raftfsm.Group
	All() []id.Shard
	Group(number id.Shard) (*raftfsm.Group, bool)
	Shard(number id.Shard) (*shardfsm.Machine, bool)
	Members(number id.Shard) []id.Member
}

// Gossip knows which nodes are there.
type Gossip interface {
	Members() []membership.Member
}

// Peers calls other nodes.
type Peers interface {
	Call(ctx context.Context, to id.Member, method string, body []byte) ([]byte, error)
}

// Placement decides which nodes hold which shards.
type Placement interface {
	Seats() ([]metafsm.Seat, map[id.Member]id.Member)
	Steps(now, plan []metafsm.ShardVoters) []wire.PlanStep
	AtOnce() int
	Founded(ctx context.Context, at metafsm.ShardVoters) bool
	MayLeave(who id.Node) error
	Holders() map[id.Member]bool
}

// Keys are what nodes trust each other by.
type Keys interface {
	Node() *cert.Source
	Credentials() *wire.Credentials
	Certificates(ctx context.Context, o wire.CertificateOrder) (wire.CertificateAnswer, error)
	Rotate(ctx context.Context, o wire.RingOrder) (wire.RingAnswer, error)
}

// Backups are made, verified and restored one at a time.
type Backups interface {
	StartBackup(q wire.BackupOrder) bool
	StartVerify(q wire.BackupQuery) bool
	StartRestore(q wire.RestoreOrder) bool
	Progress(thing string) wire.BackupProgress
	List(ctx context.Context, q wire.BackupQuery) ([]wire.Listed, error)
	Erasures(ctx context.Context, q wire.BackupQuery) ([]wire.Erasure, error)
}

// Config is what the port tells of this node, and whom it asks to carry orders out.
type Config struct {
	Network transport.Network
	Address string

	Node                        id.Node
	Self                        id.Member
	Name, Pack, PublicURL, Peer string
	SearchMiss                  float64

	// Err returns why the node can't go on, Serving what keeps it from serving.
	Err, Serving func() error
	// Alarms says in words what is damaged or full here.
	Alarms func() []string
	// Parts returns how the parts of the node are doing.
	Parts func() []loop.State
	// IsRemoved reports whether a node was removed from the cluster.
	IsRemoved func(id.Node) bool
	// Fail is told why the port can't go on.
	Fail func(error)

	Metrics   prometheus.Gatherer
	Router    *router.Router
	Replicas  Replicas
	Gossip    Gossip
	Peers     Peers
	Placement Placement
	Keys      Keys
	Backups   Backups
	Log       *slog.Logger
}

// Port serves operators: liveness, readiness and metrics to whoever reaches the port, the
// rest to holders of the cluster's admin certificate, and some of it to those of a status
// certificate. Its methods are safe for concurrent use.
type Port struct {
	cfg  Config
	http http.Server
	work sync.WaitGroup

	mu    sync.Mutex // guards conns
	conns map[*tls.Conn]struct{}
}

// Methods are the requests of other nodes that the port answers.
func (p *Port) Methods() map[string]func(context.Context, []byte) ([]byte, error) {
	return map[string]func(context.Context, []byte) ([]byte, error){
		methodStatus: func(context.Context, []byte) ([]byte, error) { return json.Marshal(p.Own()) },
	}
}
