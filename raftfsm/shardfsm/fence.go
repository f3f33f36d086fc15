package shardfsm

import (
	"facet/internal/id"
)

// Fence makes a shard refuse later commands and reads of the gallery's generations before
// Generation, and erases their templates from memory. It applies to a shard without a slice
// too. It may be repeated or late.
type Fence struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
}

// FenceAnswer answers Fence with Done. It answers Purge with Done, or with NotFenced if
// there was no such fence.
type FenceAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Left is the number of entries still to purge.
	Left uint64 `cbor:"2,keyasint"`
}

func (c Fence) apply(m *Machine) FenceAnswer {
	left := m.shard.Fence(c.Gallery, c.Generation)
	m.jobs.Fence(c.Gallery, c.Generation)
	m.claims.Fence(c.Gallery, c.Generation)
	m.merges.Fence(c.Gallery, c.Generation)
	return FenceAnswer{Done, uint64(left)}
}

// Purge removes up to Max entries behind a Fence of at least Generation.
type Purge struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Max        uint32     `cbor:"3,keyasint"`
}

func (c Purge) apply(m *Machine) FenceAnswer {
	left, err := m.shard.Purge(c.Gallery, c.Generation, int(c.Max))
	return FenceAnswer{statusOf(err), uint64(left)}
}
