package shardfsm

import (
	"errors"

	"facet/shard"
)

// Load adds entries that come out of a backup to a slice; see shard.Load. The same
// command again changes nothing.
type Load struct {
	Slice   shard.CopiedSlice   `cbor:"1,keyasint"`
	Have    uint64              `cbor:"2,keyasint,omitempty"`
	Base    uint64              `cbor:"3,keyasint,omitempty"`
	Entries []shard.CopiedEntry `cbor:"4,keyasint,omitempty"`
}

// LoadAnswer is Done, Moved (the slice does not have exactly Have entries: nothing
// was done), StaleGeneration, NeedSlots (there are more entries than slots) or
// Conflict (an entry contradicts those before it).
type LoadAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Entries is how many the slice has now, Last as in shard.Loaded.
	Entries uint64 `cbor:"2,keyasint"`
	Last    uint64 `cbor:"3,keyasint"`
}

func (c Load) apply(m *Machine) LoadAnswer {
	if n := len(c.Entries); n > 0 {
		m.advance(c.Entries[n-1].Time) // later writes are not before it
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
