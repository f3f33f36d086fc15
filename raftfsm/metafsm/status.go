package metafsm

import (
	"fmt"

	"facet/internal/id"
	"facet/raftfsm/operation"
)

// Status is the outcome of a command. Only Done changes a record, except that a refused Load
// keeps the records that it loaded before.
type Status uint8

// The outcomes of commands. The numbers are stored.
const (
	// Done: the command had its effect. A repeated command without an operation is Done
	// again.
	Done Status = 1
	// Replayed: the operation was done before. The answer has its records as they are now.
	Replayed Status = 2
	// Conflict: the operation was done before with another request, or an id or key of
	// the command is in use.
	Conflict Status = 3
	// Exists: the cluster is founded, or the name is taken. The answer has the existing
	// record.
	Exists Status = 4
	// UnknownTenant: there is no such tenant.
	UnknownTenant Status = 5
	// UnknownGallery: the tenant has no such gallery.
	UnknownGallery Status = 6
	// StaleGeneration: the gallery has another generation.
	StaleGeneration Status = 7
	// StaleEpoch: the shard map has another epoch.
	StaleEpoch Status = 8
	// OpsFull: the machine can't remember more operations at present.
	OpsFull Status = 9
	// SizeShrinks: the gallery is larger than the new size.
	SizeShrinks Status = 10
	// UnknownApplication: the tenant has no such application.
	UnknownApplication Status = 11
	// UnknownTag: the gallery has no such tag in use.
	UnknownTag Status = 12
	// TagLimit: the gallery has TagsMax tags in use.
	TagLimit Status = 13
	// BeingDeleted: a gallery under deletion has the name.
	BeingDeleted Status = 14
	// Unsettled: the gallery has grown to this shard, and its first shard does not know
	// that yet (shardfsm.Widen, then Settle).
	Unsettled Status = 15
	// UnknownNode: the node does not exist or was removed.
	UnknownNode Status = 16
	// Restoring: the restoration of a backup into the cluster is in progress.
	Restoring Status = 17
	// TooOld: a node does not know the cluster's present or next level.
	TooOld Status = 18
	// OtherKey: a retired key has wrapped the command's secret.
	OtherKey Status = 19
	// OverSubjects and the following: the command would exceed that quota of the tenant.
	OverSubjects     Status = 20
	OverGalleries    Status = 21
	OverApplications Status = 22
	OverAccessKeys   Status = 23
	OverChanges      Status = 24
	// OtherSettings: the settings are not those that the client has seen.
	OtherSettings Status = 25
)

var statusNames = [...]string{
	Done: "done", Replayed: "replayed", Conflict: "conflict", Exists: "exists", UnknownTenant: "unknown tenant",
	UnknownGallery: "unknown gallery", StaleGeneration: "stale generation", StaleEpoch: "stale epoch",
	OpsFull: "operations full", SizeShrinks: "size shrinks", UnknownApplication: "unknown application",
	UnknownTag: "unknown tag", TagLimit: "tag limit", BeingDeleted: "being deleted", Unsettled: "unsettled",
	UnknownNode: "unknown node", Restoring: "restoring", TooOld: "too old", OtherKey: "other key",
	OverSubjects: "over subjects", OverGalleries: "over galleries", OverApplications: "over applications",
	OverAccessKeys: "over access keys", OverChanges: "over changes", OtherSettings: "other settings",
}

// String names the status.
func (s Status) String() string {
	if int(s) < len(statusNames) && statusNames[s] != "" {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// StatusAnswer answers a command that returns only a status.
type StatusAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

// Write identifies one write of a client.
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
