package wire

import (
	"time"

	"facet/internal/id"
)

// RenewForStatus says what to do on a machine whose node has no status certificate.
const RenewForStatus = "run \"facet cluster renew\" on the machine with the authority: it sends this machine a status certificate"

// Paths of the admin port. Those below /admin want the cluster's admin certificate, and
// some of them are content with a status certificate; the others are open to whoever
// reaches the port.
const (
	PathLive    = "/livez"
	PathReady   = "/readyz"
	PathMetrics = "/metrics"
	PathStatus  = "/admin/status"
	PathTenants = "/admin/tenants"
	// PathKeys lists and makes access keys; PathKeys/ID with DELETE revokes one.
	PathKeys = "/admin/keys"
	// PathNodes and PathShards take an operator's orders (POST).
	PathNodes  = "/admin/nodes"
	PathShards = "/admin/shards"
)

// The states of a node in a Order and a Member.
const (
	// StateActive: it holds its share of the replicas.
	StateActive = "active"
	// StateDraining: its replicas move to other nodes.
	StateDraining = "draining"
	// StateRemoved: it is no part of the cluster any more, for good.
	StateRemoved = "removed"
)

// Order says whether a node holds replicas (POST PathNodes).
type Order struct {
	Node  id.Node `json:"node"`
	State string  `json:"state"`
	// Heir is the node that is to take over the replicas; zero is no particular one.
	Heir id.Node `json:"heir,omitzero"`
	// Force carries the order out even if shards have fewer replicas then.
	Force bool `json:"force,omitempty"`
}

// ShardOrder moves the vote of one node in a shard to another (POST PathShards).
type ShardOrder struct {
	Shard id.Shard `json:"shard"`
	From  id.Node  `json:"from"`
	To    id.Node  `json:"to"`
}

// Move is a shard on its way to other nodes.
type Move struct {
	Shard id.Shard `json:"shard"`
	// To are the nodes that do not vote yet, Behind is by how many entries the last
	// of them still lags. From are those that have still to leave.
	To     []id.Node `json:"to"`
	From   []id.Node `json:"from"`
	Behind uint64    `json:"behind"`
}

// Status is the cluster as one node sees it (GET PathStatus).
type Status struct {
	Cluster  id.Cluster `json:"cluster"`
	Founded  bool       `json:"founded"`
	Pack     string     `json:"pack"`
	Shards   int        `json:"shards"`
	Replicas int        `json:"replicas"`
	// Level says which forms the cluster uses (metafsm.Level).
	Level uint32   `json:"level"`
	Nodes []Member `json:"nodes"`
	// Moves are the shards on the move.
	Moves []Move `json:"moves"`
	// Warnings say in words what one more death would stop, and what is wrong now.
	Warnings []string `json:"warnings"`
}

// Member is one node. Alive is gossip's opinion; Answers tells whether the
// node answered just now: only then is Groups its own account.
type Member struct {
	ID      id.Node       `json:"id"`
	Name    string        `json:"name"`
	Zone    string        `json:"zone,omitempty"`
	State   string        `json:"state"`
	URL     string        `json:"url"`
	Peer    string        `json:"peer"`
	Alive   bool          `json:"alive"`
	Answers bool          `json:"answers"`
	Version string        `json:"version"`
	Groups  []GroupStatus `json:"groups"`
	// Alarms say in words what is damaged or full on this node.
	Alarms []string `json:"alarms,omitempty"`
	// Credentials are its certificates and shared keys; nil if it does not answer.
	Credentials *Credentials `json:"credentials,omitempty"`
	// Parts are the loops that it runs.
	Parts []Part `json:"parts,omitempty"`
	// SearchMiss is the probability with which its searches may lose a hit, as a rule 0.
	SearchMiss float64 `json:"search_miss,omitempty"`
}

// Part is how one loop of a node is doing.
type Part struct {
	Name    string `json:"name"`
	Running bool   `json:"running"`
	// Last is the end of the last round, Error why that failed.
	Last  time.Time `json:"last,omitzero"`
	Error string    `json:"error,omitempty"`
}

// GroupStatus is one group's replica on one node.
type GroupStatus struct {
	Group   id.Shard `json:"group"`
	Role    string   `json:"role"` // leader, follower, candidate, non-voter
	Leader  id.Node  `json:"leader"`
	Term    uint64   `json:"term"`
	Commit  uint64   `json:"commit"`
	Applied uint64   `json:"applied"`
	// Lag is how many committed entries the replica has still to apply, compared
	// with the leader's commit index when the leader answered.
	Lag    uint64 `json:"lag"`
	Voters int    `json:"voters"`
	Events int    `json:"events"` // active ones; shards only
}

// NewTenant asks for a tenant with an admin access key (POST PathTenants).
type NewTenant struct {
	Name string `json:"name"`
}

// TenantKeys are a tenant's first access key pair. The secret is shown once.
type TenantKeys struct {
	Tenant    id.Tenant `json:"tenant"`
	Name      string    `json:"name"`
	AccessKey string    `json:"access_key"`
	SecretKey string    `json:"secret_key"`
}

// NewKey asks for an access key of a tenant (POST PathKeys).
type NewKey struct {
	Tenant string `json:"tenant"` // its name
	Role   string `json:"role"`   // admin, biometric or read-only
	// Rotate asks for the successor of the key in use; there has to be one.
	Rotate bool `json:"rotate"`
}

// KeyPair is a new access key. The secret is shown once.
type KeyPair struct {
	Tenant    string `json:"tenant"`
	Role      string `json:"role"`
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
	// Old is the key of the same role that was in use before, to be revoked when
	// all clients have changed over; empty when there was none.
	Old string `json:"old,omitempty"`
}

// Key is an access key without its secret (GET PathKeys?tenant=NAME gives an array
// of them, the oldest first).
type Key struct {
	AccessKey string    `json:"access_key"`
	Role      string    `json:"role"`
	State     string    `json:"state"` // live or revoked
	Created   time.Time `json:"created"`
}

// The states of a Key.
const (
	KeyLive    = "live"
	KeyRevoked = "revoked"
)

// Version is the software's version, as nodes tell it to each other.
const Version = "0.3.1"
