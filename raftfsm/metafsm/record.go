package metafsm

import (
	"bytes"
	"slices"

	"facet/internal/id"
)

// Cluster is what was decided when the cluster was founded.
type Cluster struct {
	ID id.Cluster `cbor:"1,keyasint"`
	// Shards is the number of groups that hold events, from 1 to id.MaxShard; it
	// never changes.
	Shards int `cbor:"2,keyasint"`
	// Replicas is the number of voters wanted of each group.
	Replicas int `cbor:"3,keyasint"`
	// Pack is the identity of the model pack.
	Pack string `cbor:"4,keyasint"`
	// IDKey is the key of ids that belong to no gallery (tenants, galleries).
	IDKey [32]byte `cbor:"5,keyasint"`
	// Created is in milliseconds since 1970.
	Created int64 `cbor:"6,keyasint"`
	// KeyCheck tells a node whether it has the cluster's key.
	KeyCheck []byte `cbor:"7,keyasint,omitempty"`
	// SlotsPerShard is the capacity for which a gallery gets one more shard; 0 is
	// the constant of that name.
	SlotsPerShard uint32 `cbor:"8,keyasint,omitempty"`
}

// Node is a node that joined.
type Node struct {
	ID     id.Node   `cbor:"1,keyasint"`
	Member id.Member `cbor:"2,keyasint"`
	Name   string    `cbor:"3,keyasint"`
	// Joined is when it first did, in milliseconds since 1970.
	Joined int64 `cbor:"4,keyasint"`
}

// ShardVoters names the first voters of a shard; the first of them is its
// preferred leader.
type ShardVoters struct {
	Shard  id.Shard    `cbor:"1,keyasint"`
	Voters []id.Member `cbor:"2,keyasint"`
}

// ShardMap says where each shard began. Its epoch is 0 before the first
// PutShards, and 1 more with each.
type ShardMap struct {
	Epoch uint64 `cbor:"1,keyasint"`
	// Shards are in order of their numbers.
	Shards []ShardVoters `cbor:"2,keyasint,omitempty"`
}

// Voters gives the first voters of a shard, nil if the map does not have it.
func (m ShardMap) Voters(s id.Shard) []id.Member {
	i, ok := slices.BinarySearchFunc(m.Shards, s, func(v ShardVoters, s id.Shard) int { return int(v.Shard) - int(s) })
	if !ok {
		return nil
	}
	return m.Shards[i].Voters
}

func cloneVoters(in []ShardVoters) []ShardVoters {
	out := slices.Clone(in)
	for i := range out {
		out[i].Voters = slices.Clone(out[i].Voters)
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

func (k AccessKey) clone() AccessKey {
	k.SealedSecret = bytes.Clone(k.SealedSecret)
	return k
}

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

func (g Gallery) clone() Gallery {
	g.WrappedKey = bytes.Clone(g.WrappedKey)
	return g
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

func (a Application) clone() Application {
	a.SealedKey = bytes.Clone(a.SealedKey)
	return a
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
