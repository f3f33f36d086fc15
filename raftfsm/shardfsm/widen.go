package shardfsm

import "facet/internal/id"

// Widen tells the first shard of a gallery that the gallery lies on more shards. From then
// on that shard, which every search asks, refuses reads of an older epoch
// (shard.Shard.CheckEpoch). Widen comes before the first slot on a new shard. The status is
// Done or StaleGeneration.
type Widen struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Epoch      uint32     `cbor:"3,keyasint"`
}

func (c Widen) apply(m *Machine) StatusAnswer {
	return StatusAnswer{statusOf(m.shard.Widen(c.Gallery, c.Generation, c.Epoch))}
}
