package shardfsm

import (
	"facet/internal/id"
	"facet/raftfsm/command"
)

const codeReturnSlots = 7

// ReturnSlotsOp is the command ReturnSlots.
var ReturnSlotsOp = command.Op[ReturnSlots, ReturnSlotsAnswer]{Code: codeReturnSlots, Version: 1}

// ReturnSlots has a shard give slots back, so that meta may reclaim them for other
// shards. What is returned is a total that only grows, and stands in this shard's
// log before meta hears of it: after a crash at any point the totals are told
// again. So are grants that never arrived.
type ReturnSlots struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	// Granted is what meta has granted to this shard in all (metafsm.ShardGrant), as
	// far as the proposer knows; it counts like a Grant.
	Granted uint32 `cbor:"3,keyasint"`
	// Returned is the total that the proposer knows (shard.Usage). Slots are returned
	// only while it is the slice's, so that a retry returns nothing twice; the answer
	// has the present totals in any case.
	Returned uint32 `cbor:"4,keyasint"`
	// Keep is how many free slots stay; those beyond are returned.
	Keep uint32 `cbor:"5,keyasint"`
	// Recycle is how many slots are to be returned at the least: when fewer are
	// free, the oldest deleted entries are dropped for the rest.
	Recycle uint32 `cbor:"6,keyasint,omitempty"`
	// Time is the proposer's clock in milliseconds since 1970.
	Time int64 `cbor:"7,keyasint"`
}

// ReturnSlotsAnswer is Done or StaleGeneration. Without a slice all totals are 0.
type ReturnSlotsAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Granted and Returned are all slots ever granted to and returned by the slice:
	// what meta's Reclaim takes.
	Granted  uint32 `cbor:"2,keyasint"`
	Returned uint32 `cbor:"3,keyasint"`
	// Deleted entries are left, whose slots might be returned too.
	Deleted uint32 `cbor:"4,keyasint"`
	// Active events, and pending ones, whose slots come back when they are withdrawn
	// or expire.
	Active  uint32 `cbor:"5,keyasint"`
	Pending uint32 `cbor:"6,keyasint,omitempty"`
}

const codeFence = 8

// FenceOp is the command Fence.
var FenceOp = command.Op[Fence, FenceAnswer]{Code: codeFence, Version: 1}

// Fence makes a shard refuse every later command and read of a gallery's
// generations before Generation, whether it has a slice or not, and erases the
// templates from memory. It may come twice or late.
type Fence struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
}

const codePurge = 9

// PurgeOp is the command Purge.
var PurgeOp = command.Op[Purge, FenceAnswer]{Code: codePurge, Version: 1}

// Purge drops up to Max entries that a Fence of at least Generation cut off.
type Purge struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Max        uint32     `cbor:"3,keyasint"`
}

// FenceAnswer answers a Fence (Done) and a Purge (Done, or NotFenced if there was
// no such fence).
type FenceAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Left counts the entries that are to be purged.
	Left uint64 `cbor:"2,keyasint"`
}

const codeWiden = 12

// WidenOp is the command Widen.
var WidenOp = command.Op[Widen, WidenAnswer]{Code: codeWiden, Version: 1}

// Widen tells the first shard of a gallery, which every search asks, that the
// gallery lies on more shards: from then on reads of an older epoch are refused
// (shard.Shard.CheckEpoch). It goes before the first slot on a new shard.
type Widen struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Epoch      uint32     `cbor:"3,keyasint"`
}

// WidenAnswer is Done or StaleGeneration.
type WidenAnswer struct {
	Status Status `cbor:"1,keyasint"`
}
