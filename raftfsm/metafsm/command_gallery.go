package metafsm

import (
	"facet/internal/id"
	"facet/raftfsm/command"
)

const codeUpdateGallery = 9

// UpdateGalleryOp is the command UpdateGallery.
var UpdateGalleryOp = command.Op[UpdateGallery, UpdateGalleryAnswer]{Code: codeUpdateGallery, Version: 1}

// UpdateGallery changes what is not nil of a tenant's gallery. The size may only
// grow; with it the gallery may get more shards, which raises its Epoch: then meta
// grants no slots to the new ones (Unsettled) before Settle.
type UpdateGallery struct {
	Write       Write      `cbor:"1,keyasint"`
	Tenant      id.Tenant  `cbor:"2,keyasint"`
	Gallery     id.Gallery `cbor:"3,keyasint"`
	Name        *string    `cbor:"4,keyasint,omitempty"`
	Description *string    `cbor:"5,keyasint,omitempty"`
	Size        *uint32    `cbor:"6,keyasint,omitempty"`
	// Shards is ShardCount of Size; it counts only if the size grows, and never
	// lowers the number of shards.
	Shards int `cbor:"7,keyasint,omitempty"`
}

// UpdateGalleryAnswer is Done or Replayed (with the gallery as it is now), Exists
// (with the gallery that has the name), BeingDeleted (the name is that of a gallery
// on its way out), SizeShrinks, UnknownGallery, Conflict or OpsFull.
type UpdateGalleryAnswer struct {
	Status  Status  `cbor:"1,keyasint"`
	Gallery Gallery `cbor:"2,keyasint"`
}

const codeSettle = 19

// SettleOp is the command Settle.
var SettleOp = command.Op[Settle, SettleAnswer]{Code: codeSettle, Version: 1}

// Settle says that the first shard of a gallery was told of an epoch
// (shardfsm.Widen): from then on all its shards are granted slots.
type Settle struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Epoch      uint32     `cbor:"3,keyasint"`
}

// SettleAnswer is Done, StaleEpoch (the gallery has another epoch), StaleGeneration
// or UnknownGallery.
type SettleAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

const codeDeleteGallery = 10

// DeleteGalleryOp is the command DeleteGallery.
var DeleteGalleryOp = command.Op[DeleteGallery, DeleteGalleryAnswer]{Code: codeDeleteGallery, Version: 1}

// DeleteGallery begins the deletion of a tenant's gallery: its applications and
// tags are gone, its key is forgotten, its generation is raised, and all readers
// but Deleting know it no more. Its name stays taken until ForgetGallery.
type DeleteGallery struct {
	Write   Write      `cbor:"1,keyasint"`
	Tenant  id.Tenant  `cbor:"2,keyasint"`
	Gallery id.Gallery `cbor:"3,keyasint"`
}

// DeleteGalleryAnswer is Done (also for a gallery that is being deleted), Replayed,
// UnknownGallery, Conflict or OpsFull.
type DeleteGalleryAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Gallery is what is left of it: its shards have to be fenced at its Generation.
	// It has no id if it is forgotten already.
	Gallery Gallery `cbor:"2,keyasint"`
}

const codeForgetGallery = 11

// ForgetGalleryOp is the command ForgetGallery.
var ForgetGalleryOp = command.Op[ForgetGallery, ForgetGalleryAnswer]{Code: codeForgetGallery, Version: 1}

// ForgetGallery ends a deletion after all shards are fenced.
type ForgetGallery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
}

// ForgetGalleryAnswer is Done (also if there is no such gallery any more), or
// StaleGeneration if it is not being deleted at that generation.
type ForgetGalleryAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

const codeUpdateApplication = 12

// UpdateApplicationOp is the command UpdateApplication.
var UpdateApplicationOp = command.Op[UpdateApplication, UpdateApplicationAnswer]{Code: codeUpdateApplication, Version: 1}

// UpdateApplication changes what is not nil of a tenant's application.
type UpdateApplication struct {
	Write           Write          `cbor:"1,keyasint"`
	Tenant          id.Tenant      `cbor:"2,keyasint"`
	Application     id.Application `cbor:"3,keyasint"`
	Name            *string        `cbor:"4,keyasint,omitempty"`
	Description     *string        `cbor:"5,keyasint,omitempty"`
	MinimumQuality  *float64       `cbor:"6,keyasint,omitempty"`
	VerifyThreshold *int           `cbor:"7,keyasint,omitempty"`
	GuardThreshold  *int           `cbor:"8,keyasint,omitempty"`
	Guard           *bool          `cbor:"9,keyasint,omitempty"`
}

// UpdateApplicationAnswer is Done or Replayed (with the application as it is now),
// UnknownApplication, Conflict or OpsFull.
type UpdateApplicationAnswer struct {
	Status      Status      `cbor:"1,keyasint"`
	Application Application `cbor:"2,keyasint"`
}

const codeDeleteApplication = 13

// DeleteApplicationOp is the command DeleteApplication.
var DeleteApplicationOp = command.Op[DeleteApplication, DeleteApplicationAnswer]{Code: codeDeleteApplication, Version: 1}

// DeleteApplication removes a tenant's application; its key is unknown from then
// on. Op names this attempt: a client's request that simply runs again needs
// another one.
type DeleteApplication struct {
	Write       Write          `cbor:"1,keyasint"`
	Tenant      id.Tenant      `cbor:"2,keyasint"`
	Application id.Application `cbor:"3,keyasint"`
}

// DeleteApplicationAnswer is Done, Replayed, UnknownApplication, Conflict or
// OpsFull.
type DeleteApplicationAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

const codeDeleteAccessKey = 14

// DeleteAccessKeyOp is the command DeleteAccessKey.
var DeleteAccessKeyOp = command.Op[DeleteAccessKey, DeleteAccessKeyAnswer]{Code: codeDeleteAccessKey, Version: 1}

// DeleteAccessKey removes an access key of a tenant.
type DeleteAccessKey struct {
	Tenant id.Tenant `cbor:"1,keyasint"`
	Key    string    `cbor:"2,keyasint"`
}

// DeleteAccessKeyAnswer is Done (also if there is no such key any more), or
// Conflict if another tenant has it.
type DeleteAccessKeyAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

const codeReclaim = 15

// ReclaimOp is the command Reclaim.
var ReclaimOp = command.Op[Reclaim, ReclaimAnswer]{Code: codeReclaim, Version: 1}

// Reclaim tells meta how many slots a shard has returned in all
// (shardfsm.ReturnSlotsAnswer, shard.Usage): they may be granted again. It may come
// late, twice or out of order: the largest total counts.
type Reclaim struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Shard      id.Shard   `cbor:"3,keyasint"`
	Returned   uint32     `cbor:"4,keyasint"`
}

// ReclaimAnswer is Done, UnknownGallery, StaleGeneration, or Conflict if the shard
// was never granted so many.
type ReclaimAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Free slots of the gallery are granted to no shard.
	Free uint32 `cbor:"2,keyasint"`
}
