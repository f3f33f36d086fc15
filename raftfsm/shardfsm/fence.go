package shardfsm

import (
	"facet/internal/id"
	"facet/internal/mutant"
)

// Fence makes a shard refuse every later command and read of a gallery's
// generations before Generation, whether it has a slice or not, and erases the
// templates from memory. It may come twice or late.
type Fence struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
}

// FenceAnswer answers a Fence (Done) and a Purge (Done, or NotFenced if there was
// no such fence).
type FenceAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Left counts the entries that are to be purged.
	Left uint64 `cbor:"2,keyasint"`
}

func (c Fence) apply(m *Machine) FenceAnswer {
	if mutant.FenceOpen {
		return FenceAnswer{Status: Done}
	}
	left := m.shard.Fence(c.Gallery, c.Generation)
	m.jobs.Fence(c.Gallery, c.Generation)
	return FenceAnswer{Done, uint64(left)}
}

// Purge drops up to Max entries that a Fence of at least Generation cut off.
type Purge struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Max        uint32     `cbor:"3,keyasint"`
}

func (c Purge) apply(m *Machine) FenceAnswer {
	left, err := m.shard.Purge(c.Gallery, c.Generation, int(c.Max))
	return FenceAnswer{statusOf(err), uint64(left)}
}
