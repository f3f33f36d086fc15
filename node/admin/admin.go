package admin

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"facet/internal/id"
	"facet/node/audit"
	"facet/node/cert"
	"facet/node/loop"
	"facet/node/membership"
	"facet/node/peer"
	"facet/node/receipt"
	"facet/node/replicas"
	"facet/node/transport"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router/routing"
)

// Placement decides which nodes hold which shards.
type Placement interface {
	Seats() ([]metafsm.Seat, map[id.Member]id.Member)
	Steps(now, plan []metafsm.ShardVoters) []wire.PlanStep
	AtOnce() int
	Founded(ctx context.Context, at metafsm.ShardVoters) bool
	MayLeave(who id.Node) error
	Holders() map[id.Member]bool
}

// Keys replaces certificates and shared keys.
type Keys interface {
	Node() *cert.Source
	Credentials() *wire.Credentials
	Certificates(ctx context.Context, o wire.CertificateOrder) (wire.CertificateAnswer, error)
	Rotate(ctx context.Context, o wire.RingOrder) (wire.RingAnswer, error)
}

// Backups makes, verifies and restores one backup at a time.
type Backups interface {
	StartBackup(q wire.BackupOrder) bool
	StartVerify(q wire.BackupQuery) bool
	StartRestore(q wire.RestoreOrder) bool
	Progress(thing string) wire.BackupProgress
	List(ctx context.Context, q wire.BackupQuery) ([]wire.Listed, error)
	Erasures(ctx context.Context, q wire.BackupQuery) ([]wire.Erasure, error)
	// Scheduled returns the folder of the scheduled backups, or "". Plan returns how often they are made, and how
	// many stay. Holding returns the backups in a
	// folder that may hold what was erased at a time.
	Scheduled() string
	Plan() (every time.Duration, keep int)
	Holding(ctx context.Context, folder string, erased time.Time) ([]receipt.Backup, error)
}

// Config describes this node to the port, and has the parts that carry out orders.
type Config struct {
	Network transport.Network
	Address string

	Node                        id.Node
	Self                        id.Member
	Name, Pack, PublicURL, Peer string

	// Err returns why the node has failed, or nil. Serving returns why it does not serve, or
	// nil.
	Err, Serving func() error
	// CutLinks returns the cut links of this node.
	CutLinks func() []wire.CutLink
	// Alarms describes what is damaged or full on this node.
	Alarms func() []string
	// Parts returns the states of the node's loops.
	Parts func() []loop.State
	// Audit records the orders about a tenant.
	Audit *audit.Recorder
	// IsRemoved reports whether a node was removed from the cluster.
	IsRemoved func(id.Node) bool
	// Fail ends the node because of an error.
	Fail func(error)

	Metrics   prometheus.Gatherer
	Router    *routing.Router
	Replicas  *replicas.Replicas
	Gossip    *membership.Membership
	Peers     *peer.Peers
	Placement Placement
	Keys      Keys
	Backups   Backups
	Log       *slog.Logger

	// RecentLog returns the last lines of the log, Settings the settings without secrets. Either
	// may be nil.
	RecentLog func() []byte
	Settings  func() (map[string]any, error)
}

// Port serves operators. It is safe for concurrent use.
//
//   - Liveness, readiness and metrics need no certificate.
//   - The requests in statusRequests need a status or an admin certificate.
//   - All other requests need the cluster's admin certificate.
type Port struct {
	cfg  Config
	http http.Server
	work sync.WaitGroup

	mu    sync.Mutex // guards conns
	conns map[*tls.Conn]struct{}

	profiling sync.Mutex // held while a profile is taken
}

// Methods returns the handlers of the requests that the port answers to other nodes.
func (p *Port) Methods() map[string]peer.Handler {
	return map[string]peer.Handler{
		methodStatus: func(context.Context, []byte) ([]byte, error) { return json.Marshal(p.Own()) },
	}
}
