package metafsm

import (
	"fmt"

	"facet/internal/id"
	"facet/raftfsm/command"
	"facet/raftfsm/operation"
)

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

const codeFound = 1

// FoundOp is the command Found.
var FoundOp = command.Op[Found, FoundAnswer]{Code: codeFound, Version: 1}

// Found founds the cluster. Only the first one does.
type Found struct {
	Cluster Cluster `cbor:"1,keyasint"`
}

// FoundAnswer is Done or Exists, with the cluster that is founded now.
type FoundAnswer struct {
	Status  Status  `cbor:"1,keyasint"`
	Cluster Cluster `cbor:"2,keyasint"`
}

const codePutNode = 2

// PutNodeOp is the command PutNode.
var PutNodeOp = command.Op[PutNode, PutNodeAnswer]{Code: codePutNode, Version: 1}

// PutNode adds a node or changes its member, name, zone and level; the rest stays.
type PutNode struct {
	Node Node `cbor:"1,keyasint"`
}

// PutNodeAnswer is Done, or TooOld if the node knows less than the cluster's level.
type PutNodeAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

const codePutShards = 3

// PutShardsOp is the command PutShards.
var PutShardsOp = command.Op[PutShards, PutShardsAnswer]{Code: codePutShards, Version: 1}

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

const codeCreateTenant = 4

// CreateTenantOp is the command CreateTenant.
var CreateTenantOp = command.Op[CreateTenant, CreateTenantAnswer]{Code: codeCreateTenant, Version: 1}

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

const codePutAccessKey = 5

// PutAccessKeyOp is the command PutAccessKey.
var PutAccessKeyOp = command.Op[PutAccessKey, PutAccessKeyAnswer]{Code: codePutAccessKey, Version: 1}

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

const codeCreateGallery = 6

// CreateGalleryOp is the command CreateGallery.
var CreateGalleryOp = command.Op[CreateGallery, CreateGalleryAnswer]{Code: codeCreateGallery, Version: 1}

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

const codeCreateApplication = 7

// CreateApplicationOp is the command CreateApplication.
var CreateApplicationOp = command.Op[CreateApplication, CreateApplicationAnswer]{Code: codeCreateApplication, Version: 1}

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

const codeGrant = 8

// GrantOp is the command Grant.
var GrantOp = command.Op[Grant, GrantAnswer]{Code: codeGrant, Version: 1}

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
