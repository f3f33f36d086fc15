package wire

import (
	"time"

	"facet/internal/id"
)

// RenewForStatus is the advice for a machine whose node has no status certificate.
const RenewForStatus = "run \"facet cluster renew\" on the machine with the authority: it sends this machine a status certificate"

// OpeningTemplates is what PathReady says while a node that has started opens its templates.
const OpeningTemplates = "not all templates are open yet"

// Paths of the admin port. Those below /admin and /debug need the cluster's admin certificate;
// for some a status certificate is enough. The others need no certificate.
const (
	PathLive    = "/livez"
	PathReady   = "/readyz"
	PathMetrics = "/metrics"
	PathStatus  = "/admin/status"
	PathTenants = "/admin/tenants"
	// PathTenantStates disables and enables tenants (POST).
	PathTenantStates = "/admin/tenants/states"
	// PathKeys lists (GET) and creates (POST) access keys; DELETE PathKeys/ID revokes one.
	PathKeys = "/admin/keys"
	// PathNodes takes an Order, PathShards a ShardOrder (POST).
	PathNodes  = "/admin/nodes"
	PathShards = "/admin/shards"
	// PathReplicas takes a ReplicasOrder and answers with a ReplicasAnswer (POST).
	PathReplicas = "/admin/replicas"
	// PathWrites takes a WriteOrder and answers with a WriteAnswer (POST).
	PathWrites = "/admin/writes"
	// PathAudit answers with a page of the cluster's audit log (GET; the parameters are those of /api/audit).
	// PathAudit/FILE answers with a file of the log in C2SP's tlog-tiles, or the log's verifier key.
	PathAudit = "/admin/audit"
	// PathProfiles is followed by the name of a profile of package runtime/pprof, "profile" or
	// "trace" (GET, for administrators). "go tool pprof" knows these paths.
	PathProfiles = "/debug/pprof/"
	// PathLog returns the last lines of the log, PathSettings the settings without secrets as JSON
	// (GET, for administrators).
	PathLog      = "/debug/log"
	PathSettings = "/debug/settings"
)

// The states of a node in an Order and a Member.
const (
	StateActive   = "active"   // holds its share of the replicas
	StateDraining = "draining" // its replicas move to other nodes
	StateRemoved  = "removed"  // has left the cluster for good
)

// Order changes the state of a node (POST PathNodes).
type Order struct {
	Node  id.Node `json:"node"`
	State string  `json:"state"`
	// Heir is the node that takes over the replicas; zero is any node.
	Heir id.Node `json:"heir,omitzero"`
	// Force carries the order out even if shards then have fewer replicas.
	Force bool `json:"force,omitempty"`
}

// ShardOrder moves the vote of one node in a shard to another (POST PathShards).
type ShardOrder struct {
	Shard id.Shard `json:"shard"`
	From  id.Node  `json:"from"`
	To    id.Node  `json:"to"`
}

// ReplicasOrder sets the number of replicas that each shard should have (POST PathReplicas).
type ReplicasOrder struct {
	Replicas int `json:"replicas"`
	// Force allows one replica.
	Force bool `json:"force,omitempty"`
}

// ReplicasAnswer has the numbers before and after a ReplicasOrder, and the number of nodes
// that may hold replicas.
type ReplicasAnswer struct {
	Was      int `json:"was"`
	Replicas int `json:"replicas"`
	Nodes    int `json:"nodes"`
}

// WriteOrder carries out a write again that members of a shard have lost (POST PathWrites).
type WriteOrder struct {
	Shard   id.Shard `json:"shard"`
	Command []byte   `json:"command"`
}

// WriteAnswer is the outcome of a WriteOrder.
type WriteAnswer struct {
	Outcome string `json:"outcome"`
}

// Move is a shard on its way to other nodes.
type Move struct {
	Shard id.Shard  `json:"shard"`
	To    []id.Node `json:"to"`   // nodes that do not vote yet
	From  []id.Node `json:"from"` // nodes that have not left yet
	// Behind is how many entries the slowest node of To is behind.
	Behind uint64 `json:"behind"`
}

// Status is the cluster as one node sees it (GET PathStatus).
type Status struct {
	Cluster id.Cluster `json:"cluster"`
	Founded bool       `json:"founded"`
	// Unread reports that the cluster is founded, and that the node which answers has not read its
	// records, because it reaches no majority. The fields of the cluster are zero then.
	Unread bool   `json:"unread,omitempty"`
	Pack   string `json:"pack"`
	Shards int    `json:"shards"`
	// Replicas is the number of replicas that each shard should have. Voting has the numbers
	// that vote now, each with its number of shards. Shards without a leader are left out.
	Replicas int         `json:"replicas"`
	Voting   map[int]int `json:"voting,omitempty"`
	// Level is the level of the forms that the cluster uses (metafsm.Level).
	Level uint32 `json:"level"`
	// ReceiptKey is the public key of receipts of erasures (receipt.PublicKey), or empty.
	ReceiptKey string   `json:"receipt_key,omitempty"`
	Nodes      []Member `json:"nodes"`
	// Moves lists the shards on the move.
	Moves []Move `json:"moves"`
	// Warnings describes what is wrong now, and what one more dead node would stop.
	Warnings []string `json:"warnings"`
}

// Leaderless returns the groups of which no node that answers is the leader. Their data can't be
// read or written.
func (s Status) Leaderless() []id.Shard {
	led := map[id.Shard]bool{}
	for _, n := range s.Nodes {
		for _, g := range n.Groups {
			led[g.Group] = led[g.Group] || g.Role == "leader"
		}
	}
	var list []id.Shard
	for g := range id.Shard(s.Shards + 1) {
		if !led[g] {
			list = append(list, g)
		}
	}
	return list
}

// Member describes one node. Alive reports whether gossip believes it alive, Answers whether
// it answered just now. Groups and the fields after it are set only if it answered.
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
	// Alarms describes what is damaged or full on the node.
	Alarms []string `json:"alarms,omitempty"`
	// CutLinks are the links of the node that are cut.
	CutLinks    []CutLink    `json:"cut_links,omitempty"`
	Credentials *Credentials `json:"credentials,omitempty"`
	Parts       []Part       `json:"parts,omitempty"`
}

// CutLink is a link between two nodes that do not reach each other, while a third node
// reaches both and relays their streams.
type CutLink struct {
	To      id.Node   `json:"to"`      // the node at the other end
	Name    string    `json:"name"`    // of that node
	Through string    `json:"through"` // the name of the third node
	Since   time.Time `json:"since"`   // the last answer over the link
}

// Part is the state of one loop of a node.
type Part struct {
	Name    string    `json:"name"`
	Running bool      `json:"running"`
	Last    time.Time `json:"last,omitzero"`   // end of the last round
	Error   string    `json:"error,omitempty"` // of the last round
}

// GroupStatus describes one group's replica on one node.
type GroupStatus struct {
	Group   id.Shard `json:"group"`
	Role    string   `json:"role"` // leader, follower, candidate, non-voter
	Leader  id.Node  `json:"leader"`
	Term    uint64   `json:"term"`
	Commit  uint64   `json:"commit"`
	Applied uint64   `json:"applied"`
	// Lag is how many committed entries the replica has not applied yet, by the leader's
	// commit index if the leader answered.
	Lag    uint64 `json:"lag"`
	Voters int    `json:"voters"`
	Events int    `json:"events"` // active ones; shards only
}

// NewTenant orders a tenant with an admin access key (POST PathTenants).
type NewTenant struct {
	Name string `json:"name"`
}

// Tenant is a tenant with its quotas. GET PathTenants answers with an array of them, in order
// of creation.
type Tenant struct {
	Tenant id.Tenant `json:"tenant"`
	Name   string    `json:"name"`
	State  string    `json:"state"` // active, disabled or deleting
	Quotas []Quota   `json:"quotas"`
	Audit  Audit     `json:"audit"`
}

// Audit is how a tenant's audit log is kept.
type Audit struct {
	Mode string `json:"mode"` // best-effort, strict or off
	// Days is how many days records keep their contents. In an order 0 leaves the present number.
	Days uint32 `json:"days"`
}

// The states of a Tenant.
const (
	TenantActive   = "active"
	TenantDisabled = "disabled"
	TenantDeleting = "deleting"
)

// SetTenantState disables a tenant or enables it again (POST PathTenantStates).
type SetTenantState struct {
	Name  string `json:"name"`
	State string `json:"state"` // active or disabled
}

// TenantDeletion is the progress of the deletion of a tenant (DELETE PathTenants?tenant=NAME). The
// tenant is gone when no gallery is left. A second request continues.
type TenantDeletion struct {
	Left int `json:"left"`
}

// Quota is a quota of a tenant.
type Quota struct {
	Name string `json:"name"`
	// Used is what the tenant has used; of a quota that each shard keeps, on the shard with
	// the most. It is 0 where nothing is counted: requests and searches.
	Used uint64 `json:"used"`
	Most uint64 `json:"most"`
	// Unlimited reports that Most bounds nothing.
	Unlimited bool `json:"unlimited,omitempty"`
	// Own reports that an operator has set it.
	Own bool `json:"own,omitempty"`
	// Incomplete reports that Used lacks the use on shards that were not asked (PATCH) or
	// gave no answer.
	Incomplete bool `json:"incomplete,omitempty"`
}

// SetTenant orders quotas of a tenant, or how its audit log is kept (PATCH PathTenants). 0 stands for the
// default.
type SetTenant struct {
	Name   string            `json:"name"`
	Quotas map[string]uint64 `json:"quotas,omitempty"`
	Audit  *Audit            `json:"audit,omitempty"`
}

// TenantKeys is a tenant's first access key pair. The secret is shown once.
type TenantKeys struct {
	Tenant    id.Tenant `json:"tenant"`
	Name      string    `json:"name"`
	AccessKey string    `json:"access_key"`
	SecretKey string    `json:"secret_key,omitzero"`
}

// NewKey orders an access key of a tenant (POST PathKeys).
type NewKey struct {
	Tenant string `json:"tenant"` // its name
	Role   string `json:"role"`
	KeyTerms
	// Rotate orders a successor of the key of that role and holder in use, which must exist. It has the
	// same galleries and networks, and the same end unless Ends is set.
	Rotate bool `json:"rotate"`
}

// KeyTerms bind an access key.
type KeyTerms struct {
	// Holder names the person or device that has the key.
	Holder string `json:"holder,omitempty"`
	// Galleries are the names of the only galleries that the key may use; none means all.
	Galleries []string `json:"galleries,omitempty"`
	// Networks are the only ones that requests may come from, such as 10.0.0.0/8; none means all.
	Networks []string `json:"networks,omitempty"`
	// Ends is when the key ends; nil means never.
	Ends *time.Time `json:"ends,omitempty"`
}

// End returns when the key ends, or the zero time for never.
func (t *KeyTerms) End() time.Time {
	if t.Ends == nil {
		return time.Time{}
	}
	return *t.Ends
}

// KeyPair is a new access key. The secret is shown once.
type KeyPair struct {
	Tenant    string `json:"tenant"`
	Role      string `json:"role"`
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key,omitzero"`
	KeyTerms
	// Old is the previous key of the same role and holder, or empty. The operator revokes it when all
	// clients use the new one.
	Old string `json:"old,omitempty"`
}

// Key is an access key without its secret. GET PathKeys?tenant=NAME returns an array of them,
// the oldest first.
type Key struct {
	AccessKey string    `json:"access_key"`
	Role      string    `json:"role"`
	State     string    `json:"state"` // live, ended or revoked
	Created   time.Time `json:"created"`
	KeyTerms
	// Used is about when the key was used last, to a quarter of an hour; the zero time: never noted.
	Used time.Time `json:"used,omitzero"`
}

// The states of a Key.
const (
	KeyLive    = "live"
	KeyEnded   = "ended"
	KeyRevoked = "revoked"
)
