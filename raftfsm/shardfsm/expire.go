package shardfsm

import (
	"slices"

	"facet/internal/id"
	"facet/shard"
)

// RetentionMillisMin is the shortest retention of a gallery. No Expire removes an event by a
// retention sooner after its last update.
const RetentionMillisMin = 24 * 3_600_000

// Expire turns named events into deleted entries if their time has come at Time. The
// shard's leader proposes it, with the retentions of galleries that meta has. Every event
// is checked again, so an Expire that comes late or twice removes nothing that was replaced
// since. The source of a merge keeps its events until the merge ends. The machine's clock does not
// count: it may be ahead of Time.
type Expire struct {
	// Time is the proposer's clock in milliseconds since 1970.
	Time   int64         `cbor:"1,keyasint"`
	Slices []ExpireSlice `cbor:"2,keyasint"`
}

// ExpireSlice has the events of one gallery that expire.
type ExpireSlice struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	// Updated is Time without the gallery's retention, or 0 if it has none: an event that
	// was last updated at Updated or before expires.
	Updated int64           `cbor:"3,keyasint,omitempty"`
	Events  []shard.Expired `cbor:"4,keyasint"`
}

// ExpireAnswer answers Expire with Done.
type ExpireAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Expired is the number of events that expired.
	Expired uint32 `cbor:"2,keyasint"`
	// Each is that number for each of the command's slices.
	Each []uint32 `cbor:"3,keyasint,omitempty"`
}

func (c Expire) apply(m *Machine) ExpireAnswer {
	now := m.advance(c.Time)
	a := ExpireAnswer{Status: Done}
	for _, s := range c.Slices {
		s.Events = slices.DeleteFunc(s.Events, func(e shard.Expired) bool { // a merge copies what its source has
			return m.merges.Leaves(e.Subject)
		})
		n, err := m.shard.Expire(shard.Expiration{
			Gallery: s.Gallery, Generation: s.Generation, Events: s.Events, Now: now,
			Until: c.Time, Updated: min(s.Updated, c.Time-RetentionMillisMin),
		})
		if err == nil { // else the gallery was deleted
			a.Expired += uint32(n)
		}
		a.Each = append(a.Each, uint32(n))
	}
	return a
}
