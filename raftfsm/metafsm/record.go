package metafsm

import (
	"slices"

	"facet/internal/id"
)

// Cluster is what was decided when the cluster was founded.
type Cluster struct {
	ID id.Cluster `cbor:"1,keyasint"`
	// Shards is the number of groups that hold events, from 1 to id.MaxShard; it
	// never changes.
	Shards int `cbor:"2,keyasint"`
	// Replicas is the number of voters that each shard began with.
	Replicas int `cbor:"3,keyasint"`
	// Pack is the identity of the model pack.
	Pack string `cbor:"4,keyasint"`
	// IDKey is the key of ids that belong to no gallery (tenants, galleries).
	IDKey [32]byte `cbor:"5,keyasint"`
	// Created is in milliseconds since 1970.
	Created int64 `cbor:"6,keyasint"`
	// KeyCheck tells a node whether it has the cluster's key.
	KeyCheck []byte `cbor:"7,keyasint,omitempty"`
	// KeyHead is how everything must begin that the cluster's key wraps; empty: there
	// was one key only.
	KeyHead []byte `cbor:"10,keyasint,omitempty"`
	// SlotsPerShard is the capacity for which a gallery gets one more shard; 0 is
	// the constant of that name.
	SlotsPerShard uint32 `cbor:"8,keyasint,omitempty"`
	// Wanted is the number of voters that each shard should have once there are as
	// many nodes; 0 stands for Replicas.
	Wanted int `cbor:"9,keyasint,omitempty"`
}

// WantedReplicas is the number of voters that each shard should have where there are
// as many nodes.
func (c Cluster) WantedReplicas() int { return max(c.Wanted, c.Replicas) }

// NodeState says whether a node holds replicas.
type NodeState uint8

// The states of nodes. The numbers are stored.
const (
	// NodeActive: it holds its share of the replicas.
	NodeActive NodeState = 0
	// NodeDraining: its replicas move to other nodes.
	NodeDraining NodeState = 1
	// NodeRemoved: it is no part of the cluster any more, for good.
	NodeRemoved NodeState = 2
)

// Node is a node that joined.
type Node struct {
	ID     id.Node   `cbor:"1,keyasint"`
	Member id.Member `cbor:"2,keyasint"`
	Name   string    `cbor:"3,keyasint"`
	// Joined is when it first did, in milliseconds since 1970.
	Joined int64 `cbor:"4,keyasint"`
	// Zone is its failure domain; nodes of an empty zone share it with nobody.
	Zone string `cbor:"5,keyasint,omitempty"`
	// State and Heir are an operator's orders (SetNodeState). Heir is the node that
	// is to take over the replicas; zero is no particular one.
	State NodeState `cbor:"6,keyasint,omitempty"`
	Heir  id.Node   `cbor:"7,keyasint,omitzero"`
	// Level is what the node's software knows; 0 stands for 1, which all know.
	Level uint32 `cbor:"8,keyasint,omitempty"`
}

// ShardVoters says where a shard's replicas are to be.
type ShardVoters struct {
	Shard id.Shard `cbor:"1,keyasint"`
	// Voters are the members that should vote, the preferred leader first.
	Voters []id.Member `cbor:"2,keyasint"`
	// Leaving are members that may still have a replica and should not.
	Leaving []id.Member `cbor:"3,keyasint,omitempty"`
	// Moving tells that the group's members are not known to be Voters yet.
	Moving bool `cbor:"4,keyasint,omitempty"`
	// Moved tells that Voters are not the ones that the shard began with: nobody
	// may found the group any more. PutShards sees to it.
	Moved bool `cbor:"5,keyasint,omitempty"`
}

// Holders gives the members that may have a replica.
func (v ShardVoters) Holders() []id.Member { return slices.Concat(v.Voters, v.Leaving) }

// ShardMap says where the shards are. Its epoch is 0 before the first PutShards, and
// 1 more with each.
type ShardMap struct {
	Epoch uint64 `cbor:"1,keyasint"`
	// Shards are in order of their numbers.
	Shards []ShardVoters `cbor:"2,keyasint,omitempty"`
}

// Shard gives where a shard is; ok is false if the map does not have it.
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
	}
	return out
}

// Tenant is a customer of the service.
type Tenant struct {
	ID   id.Tenant `cbor:"1,keyasint"`
	Name string    `cbor:"2,keyasint"`
	// Seq is given when it is made; it orders by creation.
	Seq uint64 `cbor:"3,keyasint,omitempty"`
}

// Role says what an access key may do: router's numbers.
type Role uint8

// AccessKey is a key that signs requests.
type AccessKey struct {
	ID     string    `cbor:"1,keyasint"`
	Tenant id.Tenant `cbor:"2,keyasint"`
	Role   Role      `cbor:"3,keyasint"`
	// SealedSecret is wrapped by the cluster's master key.
	SealedSecret []byte `cbor:"4,keyasint"`
	// Created is when it was first put, in milliseconds since 1970.
	Created int64    `cbor:"5,keyasint,omitempty"`
	State   KeyState `cbor:"6,keyasint,omitempty"`
}

// KeyState says whether an access key may be used.
type KeyState uint8

// The states of access keys. The numbers are stored.
const (
	// KeyLive: it signs requests.
	KeyLive KeyState = 0
	// KeyRevoked: it is listed, and refused like an unknown one.
	KeyRevoked KeyState = 1
)

// Gallery is a gallery of a tenant.
type Gallery struct {
	ID          id.Gallery `cbor:"1,keyasint"`
	Tenant      id.Tenant  `cbor:"2,keyasint"`
	Name        string     `cbor:"3,keyasint"`
	Description string     `cbor:"4,keyasint"`
	// Size is the number of slots, at most 2³¹−1.
	Size uint32 `cbor:"5,keyasint"`
	// Shards is how many shards it lies on: the first of ShardsOf.
	Shards int `cbor:"6,keyasint"`
	// Generation is raised when the gallery is deleted, Epoch when Shards grows.
	Generation uint32 `cbor:"7,keyasint"`
	Epoch      uint32 `cbor:"8,keyasint"`
	// WrappedKey is the key of its templates, wrapped by the cluster's master key.
	WrappedKey []byte `cbor:"9,keyasint"`
	// IDKey is the key of its subjects' and events' ids (id.Derive).
	IDKey [32]byte `cbor:"10,keyasint"`
	// Created is in milliseconds since 1970, set when it is made.
	Created int64 `cbor:"11,keyasint"`
	// Seq is given when it is made; it orders by creation.
	Seq uint64 `cbor:"12,keyasint,omitempty"`
	// Deleting galleries are known to Deleting only.
	Deleting bool `cbor:"13,keyasint,omitempty"`
	// Settled is how many of its shards may be granted slots while the gallery is
	// growing over more; 0 stands for all.
	Settled int `cbor:"14,keyasint,omitempty"`
}

// Application is an access identity of a gallery.
type Application struct {
	ID          id.Application `cbor:"1,keyasint"`
	Tenant      id.Tenant      `cbor:"2,keyasint"`
	Gallery     id.Gallery     `cbor:"3,keyasint"`
	Name        string         `cbor:"4,keyasint"`
	Description string         `cbor:"5,keyasint"`
	// KeyMAC finds the application by its API key, SealedKey shows the key again;
	// both are made with the cluster's master key.
	KeyMAC    [32]byte `cbor:"6,keyasint"`
	SealedKey []byte   `cbor:"7,keyasint"`
	// MinimumQuality is that of faces to be enrolled, 0 to 1.
	MinimumQuality float64 `cbor:"8,keyasint"`
	// VerifyThreshold and GuardThreshold are scores.
	VerifyThreshold int `cbor:"9,keyasint"`
	GuardThreshold  int `cbor:"10,keyasint"`
	// Guard tells whether a known face is refused.
	Guard bool `cbor:"11,keyasint,omitempty"`
	// Created is in milliseconds since 1970, set when it is made.
	Created int64 `cbor:"12,keyasint"`
	// Seq is given when it is made; it orders by creation.
	Seq uint64 `cbor:"13,keyasint,omitempty"`
}

// ShardGrant is how many slots of a gallery were granted to a shard in all, and how
// many of these the shard has returned. Both only grow.
type ShardGrant struct {
	Shard     id.Shard `cbor:"1,keyasint"`
	Total     uint32   `cbor:"2,keyasint"`
	Reclaimed uint32   `cbor:"3,keyasint,omitempty"`
}

// Slots counts the slots that the shard may have.
func (g ShardGrant) Slots() uint32 { return g.Total - g.Reclaimed }
