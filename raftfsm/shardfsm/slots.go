package shardfsm

import (
	"facet/internal/id"
	"facet/shard"
)

// Grant sets the total number of slots that meta has granted to a shard's slice of a gallery.
// The largest total counts, so a Grant may be late, repeated or out of order. The first
// Grant creates the slice. The status is Done or StaleGeneration.
type Grant struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Total      uint32     `cbor:"3,keyasint"`
}

func (c Grant) apply(m *Machine) StatusAnswer {
	return StatusAnswer{statusOf(m.shard.Grant(shard.Grant(c)))}
}

// ReturnSlots makes a shard return slots, so that meta can grant them to other shards. The
// shard's log has the new total of returned slots before meta learns it, and the total only
// grows. After a crash at any point the proposer therefore reads and sends the totals again.
// ReturnSlots also delivers grants that were lost.
type ReturnSlots struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	// Granted is the total that meta has granted to this shard (metafsm.ShardGrant), as
	// far as the proposer knows. It has the effect of a Grant.
	Granted uint32 `cbor:"3,keyasint"`
	// Returned is the total of returned slots that the proposer knows (shard.Usage). If
	// the slice has another total, it returns no slots, so that a retry returns none
	// twice. The answer always has the present totals.
	Returned uint32 `cbor:"4,keyasint"`
	// Keep is the number of free slots that stay. The shard returns all others.
	Keep uint32 `cbor:"5,keyasint"`
	// Recycle is the least number of slots to return. If fewer are free, the shard drops
	// its oldest deleted entries.
	Recycle uint32 `cbor:"6,keyasint,omitempty"`
	// Time is the proposer's clock in milliseconds since 1970.
	Time int64 `cbor:"7,keyasint"`
}

// ReturnSlotsAnswer answers ReturnSlots with Done or StaleGeneration. Without a slice all
// numbers are 0.
type ReturnSlotsAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Granted and Returned are the numbers of slots that the slice ever got and returned.
	// metafsm.Reclaim takes Returned.
	Granted  uint32 `cbor:"2,keyasint"`
	Returned uint32 `cbor:"3,keyasint"`
	// Deleted is the number of deleted entries, whose slots could be returned too.
	Deleted uint32 `cbor:"4,keyasint"`
	// Active and Pending are the numbers of events. The slot of a pending event becomes
	// free when the event is withdrawn or expires.
	Active  uint32 `cbor:"5,keyasint"`
	Pending uint32 `cbor:"6,keyasint,omitempty"`
}

func (c ReturnSlots) apply(m *Machine) ReturnSlotsAnswer {
	m.advance(c.Time)
	u, err := m.shard.Return(shard.Return{
		Gallery: c.Gallery, Generation: c.Generation, Granted: c.Granted, Returned: c.Returned,
		Keep: c.Keep, Least: c.Recycle,
	})
	return ReturnSlotsAnswer{
		Status: statusOf(err), Granted: u.Granted, Returned: u.Returned,
		Deleted: u.Deleted, Active: u.Active, Pending: u.Pending,
	}
}
