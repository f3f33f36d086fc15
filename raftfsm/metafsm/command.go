package metafsm

import (
	"fmt"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/raftfsm/operation"
)

// The codes of commands; that of an answer is its command's plus answerBit. The
// numbers are stored and never reused.
var (
	headFound             = codec.Head{Code: 1, Version: 1}
	headPutNode           = codec.Head{Code: 2, Version: 1}
	headPutShards         = codec.Head{Code: 3, Version: 1}
	headCreateTenant      = codec.Head{Code: 4, Version: 1}
	headPutAccessKey      = codec.Head{Code: 5, Version: 1}
	headCreateGallery     = codec.Head{Code: 6, Version: 1}
	headCreateApplication = codec.Head{Code: 7, Version: 1}
	headGrant             = codec.Head{Code: 8, Version: 1}
	headUpdateGallery     = codec.Head{Code: 9, Version: 1}
	headDeleteGallery     = codec.Head{Code: 10, Version: 1}
	headForgetGallery     = codec.Head{Code: 11, Version: 1}
	headUpdateApplication = codec.Head{Code: 12, Version: 1}
	headDeleteApplication = codec.Head{Code: 13, Version: 1}
	headDeleteAccessKey   = codec.Head{Code: 14, Version: 1}
	headReclaim           = codec.Head{Code: 15, Version: 1}
	headCreateTag         = codec.Head{Code: 16, Version: 1}
	headRenameTag         = codec.Head{Code: 17, Version: 1}
	headDeleteTag         = codec.Head{Code: 18, Version: 1}
	headSettle            = codec.Head{Code: 19, Version: 1}
	headSetNodeState      = codec.Head{Code: 20, Version: 1}
)

const answerBit = 0x40

// Status says what became of a command. Only Done changes anything.
type Status uint8

// The outcomes of commands. The numbers are stored.
const (
	// Done: the command had its effect, or had it before (commands without an
	// operation).
	Done Status = 1
	// Replayed: the operation was done before; the answer is the first one.
	Replayed Status = 2
	// Conflict: the operation was done before with another request, or an id or key
	// that the command brings is in use.
	Conflict Status = 3
	// Exists: the cluster is founded, or the name is taken; the answer has what is
	// there.
	Exists Status = 4
	// UnknownTenant: there is no such tenant.
	UnknownTenant Status = 5
	// UnknownGallery: the tenant has no such gallery.
	UnknownGallery Status = 6
	// StaleGeneration: the gallery has another generation.
	StaleGeneration Status = 7
	// StaleEpoch: the shard map has another epoch.
	StaleEpoch Status = 8
	// OpsFull: no more operations can be remembered at present.
	OpsFull Status = 9
	// SizeShrinks: the gallery is larger.
	SizeShrinks Status = 10
	// UnknownApplication: the tenant has no such application.
	UnknownApplication Status = 11
	// UnknownTag: the gallery has no such tag in use.
	UnknownTag Status = 12
	// TagLimit: the gallery has TagsMax tags in use.
	TagLimit Status = 13
	// BeingDeleted: the name is that of a gallery whose deletion is not over.
	BeingDeleted Status = 14
	// Unsettled: the gallery has grown to this shard, and its first shard was not
	// told yet (shardfsm.Widen, then Settle).
	Unsettled Status = 15
	// UnknownNode: there is no such node, or it was removed.
	UnknownNode Status = 16
	// Restoring: a backup is being restored into the cluster.
	Restoring Status = 17
	// TooOld: a node does not know the level that the cluster has, or is to have.
	TooOld Status = 18
	// OtherKey: a key that is being retired has wrapped the command's secret.
	OtherKey Status = 19
)

var statusNames = [...]string{
	Done: "done", Replayed: "replayed", Conflict: "conflict", Exists: "exists", UnknownTenant: "unknown tenant",
	UnknownGallery: "unknown gallery", StaleGeneration: "stale generation", StaleEpoch: "stale epoch",
	OpsFull: "operations full", SizeShrinks: "size shrinks", UnknownApplication: "unknown application",
	UnknownTag: "unknown tag", TagLimit: "tag limit", BeingDeleted: "being deleted", Unsettled: "unsettled",
	UnknownNode: "unknown node", Restoring: "restoring", TooOld: "too old", OtherKey: "other key",
}

// String names the status.
func (s Status) String() string {
	if int(s) < len(statusNames) && statusNames[s] != "" {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// Write identifies a write of a client and says when it was proposed.
type Write struct {
	Op id.Operation `cbor:"1,keyasint"`
	// Request is a hash of the request's body.
	Request [16]byte `cbor:"2,keyasint"`
	// Keyed operations are remembered for 24 hours, others for 10 minutes.
	Keyed bool `cbor:"3,keyasint,omitempty"`
	// Time is the proposer's clock in milliseconds since 1970.
	Time int64 `cbor:"4,keyasint"`
}

func (w Write) name() operation.Name {
	return operation.Name{Op: w.Op, Request: w.Request, Keyed: w.Keyed}
}

// Found founds the cluster. Only the first one does.
type Found struct {
	Cluster Cluster `cbor:"1,keyasint"`
}

// FoundAnswer is Done or Exists, with the cluster that is founded now.
type FoundAnswer struct {
	Status  Status  `cbor:"1,keyasint"`
	Cluster Cluster `cbor:"2,keyasint"`
}

// PutNode adds a node or changes its member, name, zone and level; the rest stays.
type PutNode struct {
	Node Node `cbor:"1,keyasint"`
}

// PutNodeAnswer is Done, or TooOld if the node knows less than the cluster's level.
type PutNodeAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

// PutShards replaces the shard map if its epoch is Previous. Shards are in order
// of their numbers.
type PutShards struct {
	Previous uint64        `cbor:"1,keyasint"`
	Shards   []ShardVoters `cbor:"2,keyasint"`
}

// PutShardsAnswer is Done or StaleEpoch, with the map that holds now.
type PutShardsAnswer struct {
	Status Status   `cbor:"1,keyasint"`
	Map    ShardMap `cbor:"2,keyasint"`
}

// CreateTenant makes a tenant. Its Seq is ignored.
type CreateTenant struct {
	Write  Write  `cbor:"1,keyasint"`
	Tenant Tenant `cbor:"2,keyasint"`
}

// CreateTenantAnswer is Done, Replayed, Exists (each with the tenant), Conflict,
// OpsFull or Restoring.
type CreateTenantAnswer struct {
	Status Status `cbor:"1,keyasint"`
	Tenant Tenant `cbor:"2,keyasint"`
}

// PutAccessKey adds an access key or changes its role, secret and state; Created
// stays.
type PutAccessKey struct {
	Key AccessKey `cbor:"1,keyasint"`
}

// PutAccessKeyAnswer is Done, UnknownTenant, OtherKey, or Conflict if another tenant has the
// key.
type PutAccessKeyAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

// CreateGallery makes a gallery and its first application, whose Tenant and
// Gallery are the gallery's. Created and Seq are ignored.
type CreateGallery struct {
	Write       Write       `cbor:"1,keyasint"`
	Gallery     Gallery     `cbor:"2,keyasint"`
	Application Application `cbor:"3,keyasint"`
}

// CreateGalleryAnswer is Done or Replayed (with what was made), Exists (with the
// gallery of that name and its oldest application), OtherKey, BeingDeleted (the name is that
// of a gallery on its way out), Conflict, UnknownTenant, UnknownGallery (Replayed,
// and deleted since) or OpsFull. An application that was deleted since, or a gallery
// without any, gives one without id.
type CreateGalleryAnswer struct {
	Status      Status      `cbor:"1,keyasint"`
	Gallery     Gallery     `cbor:"2,keyasint"`
	Application Application `cbor:"3,keyasint"`
}

// CreateApplication makes an application of a gallery of its Tenant. Created and
// Seq are ignored.
type CreateApplication struct {
	Write       Write       `cbor:"1,keyasint"`
	Application Application `cbor:"2,keyasint"`
}

// CreateApplicationAnswer is Done or Replayed (with what was made), Conflict, OtherKey,
// UnknownGallery, UnknownApplication (Replayed, and deleted since) or OpsFull.
type CreateApplicationAnswer struct {
	Status      Status      `cbor:"1,keyasint"`
	Application Application `cbor:"2,keyasint"`
}

// Grant asks for slots of a gallery for one shard, of which Have are known to the
// shard. Retries are harmless: if the shard was granted more than it knows of,
// that is the answer.
type Grant struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Shard      id.Shard   `cbor:"3,keyasint"`
	Have       uint32     `cbor:"4,keyasint"`
	// Want is how many more are wanted; fewer are granted if fewer are free.
	Want uint32 `cbor:"5,keyasint"`
}

// GrantAnswer is Done, UnknownGallery, StaleGeneration or Unsettled.
type GrantAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Total is all that the shard was ever granted. Not more than Have means that
	// no slot was free.
	Total uint32 `cbor:"2,keyasint"`
}

// Encode gives the bytes to propose.
func (c Found) Encode() []byte { return codec.Encode(headFound, c) }

// Encode gives the bytes to propose.
func (c PutNode) Encode() []byte { return codec.Encode(headPutNode, c) }

// Encode gives the bytes to propose.
func (c PutShards) Encode() []byte { return codec.Encode(headPutShards, c) }

// Encode gives the bytes to propose.
func (c CreateTenant) Encode() []byte { return codec.Encode(headCreateTenant, c) }

// Encode gives the bytes to propose.
func (c PutAccessKey) Encode() []byte { return codec.Encode(headPutAccessKey, c) }

// Encode gives the bytes to propose.
func (c CreateGallery) Encode() []byte { return codec.Encode(headCreateGallery, c) }

// Encode gives the bytes to propose.
func (c CreateApplication) Encode() []byte { return codec.Encode(headCreateApplication, c) }

// Encode gives the bytes to propose.
func (c Grant) Encode() []byte { return codec.Encode(headGrant, c) }

func answerOf(h codec.Head) codec.Head {
	return codec.Head{Code: h.Code | answerBit, Version: h.Version}
}
