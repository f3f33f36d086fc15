package shardfsm

import (
	"facet/internal/id"
	"facet/internal/mutant"
	"facet/shard"
)

// Grant tells a shard how many slots its slice of a gallery has in all. It may
// come late, twice or out of order: the largest total counts. The first grant
// makes the slice.
type Grant struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Total      uint32     `cbor:"3,keyasint"`
}

func (c Grant) apply(m *Machine) StatusAnswer {
	if mutant.GrantAdds {
		c.Total += m.shard.Slots().Usage(c.Gallery).Granted
	}
	return StatusAnswer{statusOf(m.shard.Slots().Grant(shard.Grant(c)))}
}

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

func (c ReturnSlots) apply(m *Machine) ReturnSlotsAnswer {
	m.advance(c.Time)
	u, err := m.shard.Slots().Return(shard.Return{
		Gallery: c.Gallery, Generation: c.Generation, Granted: c.Granted, Returned: c.Returned,
		Keep: c.Keep, Least: c.Recycle,
	})
	return ReturnSlotsAnswer{
		Status: statusOf(err), Granted: u.Granted, Returned: u.Returned,
		Deleted: u.Deleted, Active: u.Active, Pending: u.Pending,
	}
}
