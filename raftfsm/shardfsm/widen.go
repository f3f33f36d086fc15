package shardfsm

import "facet/internal/id"

// Widen tells the first shard of a gallery, which every search asks, that the
// gallery lies on more shards: from then on reads of an older epoch are refused
// (shard.Shard.CheckEpoch). It goes before the first slot on a new shard.
type Widen struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Epoch      uint32     `cbor:"3,keyasint"`
}

func (c Widen) apply(m *Machine) StatusAnswer {
	return StatusAnswer{statusOf(m.shard.Widen(c.Gallery, c.Generation, c.Epoch))}
}
