package metafsm

import (
	"slices"

	"facet/internal/id"
	"facet/internal/settings"
)

// Cluster holds the decisions of the founding, and the number of replicas.
type Cluster struct {
	ID id.Cluster `cbor:"1,keyasint"`
	// Shards is the number of groups that hold events, from 1 to id.MaxShard. It never
	// changes.
	Shards int `cbor:"2,keyasint"`
	// Replicas is the number of voters that each shard had at the founding. SetReplicas
	// changes it together with Wanted.
	Replicas int `cbor:"3,keyasint"`
	// Pack is the identity of the model pack.
	Pack string `cbor:"4,keyasint"`
	// IDKey is the key of ids that belong to no gallery (tenants, galleries).
	IDKey [32]byte `cbor:"5,keyasint"`
	// Created is in milliseconds since 1970.
	Created int64 `cbor:"6,keyasint"`
	// KeyCheck lets a node check whether it has the cluster's key.
	KeyCheck []byte `cbor:"7,keyasint,omitempty"`
	// KeyHead is the first bytes of every secret that the cluster's key has wrapped. It
	// is empty until the first Rekey.
	KeyHead []byte `cbor:"10,keyasint,omitempty"`
	// SlotsPerShard is the number of slots for which a gallery gets one shard. 0 means
	// the constant SlotsPerShard.
	SlotsPerShard uint32 `cbor:"8,keyasint,omitempty"`
	// Wanted is the number of voters that each shard should have once there are as many
	// nodes. 0 means Replicas.
	Wanted int `cbor:"9,keyasint,omitempty"`
	// Signer signs receipts. It is empty until SetSigner.
	Signer Signer `cbor:"20,keyasint,omitzero"`
	// AuditKey is the key of the cluster's own audit log, wrapped by the cluster's key. It is empty until
	// SetAuditKey. No backup has it.
	AuditKey []byte `cbor:"21,keyasint,omitempty"`
}

// WantedReplicas returns the number of voters that each shard should have once there are
// as many nodes.
func (c Cluster) WantedReplicas() int { return max(c.Wanted, c.Replicas) }

// NodeState is an operator's decision whether a node holds replicas.
type NodeState uint8

// The states of nodes. The numbers are stored.
const (
	// NodeActive: the node holds its share of the replicas.
	NodeActive NodeState = 0
	// NodeDraining: the node's replicas move to other nodes.
	NodeDraining NodeState = 1
	// NodeRemoved: the node has left the cluster for good.
	NodeRemoved NodeState = 2
)

// Node is a node that joined.
type Node struct {
	ID     id.Node   `cbor:"1,keyasint"`
	Member id.Member `cbor:"2,keyasint"`
	Name   string    `cbor:"3,keyasint"`
	// Joined is the time of the first join, in milliseconds since 1970.
	Joined int64 `cbor:"4,keyasint"`
	// Zone is the failure domain. A node with an empty zone shares none.
	Zone string `cbor:"5,keyasint,omitempty"`
	// State and Heir are set by an operator (SetNodeState). Heir is the node that takes
	// over the replicas. Zero leaves the choice to Replan.
	State NodeState `cbor:"6,keyasint,omitempty"`
	Heir  id.Node   `cbor:"7,keyasint,omitzero"`
	// Level is the level that the node's software knows. 0 means 1.
	Level uint32 `cbor:"8,keyasint,omitempty"`
}

// ShardVoters lists the members that should hold a shard's replicas.
type ShardVoters struct {
	Shard id.Shard `cbor:"1,keyasint"`
	// Voters are the members that should vote, the preferred leader first.
	Voters []id.Member `cbor:"2,keyasint"`
	// Leaving are the members that should lose their replica and may still have it.
	Leaving []id.Member `cbor:"3,keyasint,omitempty"`
	// Moving is set until the group's members are Voters.
	Moving bool `cbor:"4,keyasint,omitempty"`
	// Moved is set by PutShards when Voters differ from those of the founding. Nobody may
	// found the group again.
	Moved bool `cbor:"5,keyasint,omitempty"`
	// From are the voters before the move, and Began is when it began, in milliseconds since 1970. They are set
	// while the shard moves.
	From  []id.Member `cbor:"6,keyasint,omitempty"`
	Began int64       `cbor:"7,keyasint,omitempty"`
}

// Holders returns the members that may have a replica.
func (v ShardVoters) Holders() []id.Member { return slices.Concat(v.Voters, v.Leaving) }

// ShardMap lists the voters of all shards. Its epoch is 0 before the first PutShards, and
// each PutShards adds 1.
type ShardMap struct {
	Epoch uint64 `cbor:"1,keyasint"`
	// Shards are in order of their numbers.
	Shards []ShardVoters `cbor:"2,keyasint,omitempty"`
}

// Shard returns the voters of a shard. ok is false if the map does not have it.
func (m ShardMap) Shard(s id.Shard) (v ShardVoters, ok bool) {
	i, ok := slices.BinarySearchFunc(m.Shards, s, func(v ShardVoters, s id.Shard) int { return int(v.Shard) - int(s) })
	if !ok {
		return ShardVoters{}, false
	}
	return m.Shards[i], true
}

func cloneVoters(in []ShardVoters) []ShardVoters {
	out := slices.Clone(in)
	for i := range out {
		out[i].Voters = slices.Clone(out[i].Voters)
		out[i].Leaving = slices.Clone(out[i].Leaving)
		out[i].From = slices.Clone(out[i].From)
	}
	return out
}

// Tenant is a customer of the service.
type Tenant struct {
	ID   id.Tenant `cbor:"1,keyasint"`
	Name string    `cbor:"2,keyasint"`
	// Seq orders records by their creation.
	Seq uint64 `cbor:"3,keyasint,omitempty"`
	// Quotas are those that differ from the defaults, in order. SetTenant sets them.
	Quotas []QuotaValue `cbor:"4,keyasint,omitempty"`
	State  TenantState  `cbor:"5,keyasint,omitempty"`
	// Audit is the tenant's audit log. No backup has the audit key.
	Audit Audit `cbor:"6,keyasint,omitzero"`
}

// TenantState is whether a tenant may use the service.
type TenantState uint8

// The states of tenants. The numbers are stored.
const (
	// TenantActive: the tenant uses the service.
	TenantActive TenantState = 0
	// TenantDisabled: the requests of the tenant are refused. Its data stays.
	TenantDisabled TenantState = 1
	// TenantDeleting: the tenant's applications and access keys are gone, and its galleries
	// are under deletion. The last one takes the tenant with it.
	TenantDeleting TenantState = 2
)

// Role is the set of rights of an access key. Package router defines the numbers.
type Role uint8

// AccessKey is a key that signs requests.
type AccessKey struct {
	ID     string    `cbor:"1,keyasint"`
	Tenant id.Tenant `cbor:"2,keyasint"`
	Role   Role      `cbor:"3,keyasint"`
	// SealedSecret is the secret, wrapped by the cluster's master key.
	SealedSecret []byte `cbor:"4,keyasint"`
	// Created is the time of the first PutAccessKey, in milliseconds since 1970.
	Created int64    `cbor:"5,keyasint,omitempty"`
	State   KeyState `cbor:"6,keyasint,omitempty"`
	// Holder names the person or device that has the key.
	Holder string `cbor:"7,keyasint,omitempty"`
	// Galleries are the only ones that the key may use. None means all of the tenant.
	Galleries []id.Gallery `cbor:"8,keyasint,omitempty"`
	// Networks are the only ones that requests may come from, as netip.Prefix writes them. None
	// means all.
	Networks []string `cbor:"9,keyasint,omitempty"`
	// Ends is when the key ends, in milliseconds since 1970. 0 is never.
	Ends int64 `cbor:"10,keyasint,omitempty"`
	// Used is when the key was last noted to be used (NoteKeyUses), in milliseconds since 1970.
	Used int64 `cbor:"11,keyasint,omitempty"`
}

// KeyState is whether an access key may be used.
type KeyState uint8

// The states of access keys. The numbers are stored.
const (
	// KeyLive: the key may sign requests.
	KeyLive KeyState = 0
	// KeyRevoked: the key is listed, and refused like an unknown one.
	KeyRevoked KeyState = 1
)

// Gallery is a gallery of a tenant.
type Gallery struct {
	ID     id.Gallery `cbor:"1,keyasint"`
	Tenant id.Tenant  `cbor:"2,keyasint"`
	settings.Gallery
	// Shards is the number of the gallery's shards (ShardsOf).
	Shards int `cbor:"6,keyasint"`
	// Generation grows when the gallery is deleted, Epoch when Shards grows.
	Generation uint32 `cbor:"7,keyasint"`
	Epoch      uint32 `cbor:"8,keyasint"`
	// WrappedKey is the key of the templates, wrapped by the cluster's master key.
	WrappedKey []byte `cbor:"9,keyasint"`
	// IDKey is the key of the ids of subjects and events (id.Derive).
	IDKey [32]byte `cbor:"10,keyasint"`
	// Created is in milliseconds since 1970.
	Created int64 `cbor:"11,keyasint"`
	// Seq orders records by their creation.
	Seq uint64 `cbor:"12,keyasint,omitempty"`
	// Deleting is set by DeleteGallery. Then only Machine.Deleting returns the gallery.
	Deleting bool `cbor:"13,keyasint,omitempty"`
	// Settled is how many shards may get slots until Settle. 0 means all.
	Settled int `cbor:"14,keyasint,omitempty"`
}

// Application is an access identity of a gallery.
type Application struct {
	ID      id.Application `cbor:"1,keyasint"`
	Tenant  id.Tenant      `cbor:"2,keyasint"`
	Gallery id.Gallery     `cbor:"3,keyasint"`
	settings.Application
	// KeyMAC is a MAC of the API key, and SealedKey the wrapped API key. Both are made
	// with the cluster's master key.
	KeyMAC    [32]byte `cbor:"6,keyasint"`
	SealedKey []byte   `cbor:"7,keyasint"`
	// Created is in milliseconds since 1970.
	Created int64 `cbor:"12,keyasint"`
	// Seq orders records by their creation.
	Seq uint64 `cbor:"13,keyasint,omitempty"`
}

// ShardGrant counts the slots of a gallery that were ever granted to a shard, and those
// that the shard has returned. Both numbers only grow.
type ShardGrant struct {
	Shard     id.Shard `cbor:"1,keyasint"`
	Total     uint32   `cbor:"2,keyasint"`
	Reclaimed uint32   `cbor:"3,keyasint,omitempty"`
}

// Slots returns the number of slots that the shard may have.
func (g ShardGrant) Slots() uint32 { return g.Total - g.Reclaimed }
