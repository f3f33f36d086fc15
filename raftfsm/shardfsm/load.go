package shardfsm

import (
	"errors"

	"facet/shard"
)

// Load adds entries of a backup to a slice (shard.Load). A repeated Load changes nothing.
type Load struct {
	Slice   shard.CopiedSlice   `cbor:"1,keyasint"`
	Have    uint64              `cbor:"2,keyasint,omitempty"`
	Base    uint64              `cbor:"3,keyasint,omitempty"`
	Entries []shard.CopiedEntry `cbor:"4,keyasint,omitempty"`
}

// LoadAnswer answers Load. The status is one of:
//
//   - Done or StaleGeneration.
//   - Moved: the slice does not have exactly Have entries. Nothing was loaded.
//   - NeedSlots: there are more entries than slots.
//   - Conflict: an entry contradicts the entries before it.
type LoadAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Entries is the number of entries in the slice now. For Last see shard.Loaded.
	Entries uint64 `cbor:"2,keyasint"`
	Last    uint64 `cbor:"3,keyasint"`
}

func (c Load) apply(m *Machine) LoadAnswer {
	if n := len(c.Entries); n > 0 {
		m.advance(c.Entries[n-1].Time) // so that no later write has an earlier time
	}
	at, err := m.shard.Load(shard.Load(c))
	answer := LoadAnswer{Done, at.Entries, at.Last}
	switch {
	case errors.Is(err, shard.ErrBase):
		answer.Status = Moved
	case errors.Is(err, shard.ErrSnapshot):
		answer.Status = Conflict
	case err != nil:
		answer.Status = statusOf(err)
	}
	return answer
}
