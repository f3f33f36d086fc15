package metafsm

import (
	"math"
	"slices"

	"facet/internal/id"
)

// Grant asks for slots of a gallery for one shard. Have is the total that the shard knows.
// If meta has granted more than Have, it grants nothing and answers with its total, so that
// a retry is harmless.
type Grant struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Shard      id.Shard   `cbor:"3,keyasint"`
	Have       uint32     `cbor:"4,keyasint"`
	// Want is the number of slots to add. Meta grants fewer if fewer are free.
	Want uint32 `cbor:"5,keyasint"`
}

// GrantAnswer answers Grant with Done, UnknownGallery, StaleGeneration or Unsettled.
type GrantAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Total is the number of slots that the shard was ever granted. If it does not exceed
	// Have, no slot was free.
	Total uint32 `cbor:"2,keyasint"`
}

func (c Grant) apply(m *Machine) GrantAnswer {
	g, status := m.state.current(c.Gallery, c.Generation)
	a := GrantAnswer{Status: status}
	switch {
	case status != Done:
	case m.state.unsettled(g, c.Shard):
		a.Status = Unsettled
	default:
		total, changed := m.state.grant(g, c.Shard, c.Have, c.Want)
		a.Total = total
		if changed {
			m.touch()
		}
	}
	return a
}

// unsettled reports whether shard is new to a growing gallery and must not get slots yet.
func (st *state) unsettled(g *Gallery, shard id.Shard) bool {
	if g.Settled == 0 || st.cluster == nil {
		return false
	}
	return !slices.Contains(ShardsOf(g.ID, g.Settled, st.cluster.Shards), shard)
}

// Reclaim records the number of slots that a shard has ever returned
// (shardfsm.ReturnSlotsAnswer, shard.Usage). Meta may grant them again. The largest number
// counts, so a Reclaim may be late, repeated or out of order.
type Reclaim struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Shard      id.Shard   `cbor:"3,keyasint"`
	Returned   uint32     `cbor:"4,keyasint"`
}

// ReclaimAnswer answers Reclaim. The status is Done, UnknownGallery, StaleGeneration, or
// Conflict if the shard was never granted so many slots.
type ReclaimAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Free is the number of the gallery's slots that are granted to no shard.
	Free uint32 `cbor:"2,keyasint"`
}

func (c Reclaim) apply(m *Machine) ReclaimAnswer {
	g, status := m.state.current(c.Gallery, c.Generation)
	a := ReclaimAnswer{Status: status}
	if status == Done {
		changed, ok := m.state.reclaim(g, c.Shard, c.Returned)
		if !ok {
			a.Status = Conflict
		}
		if changed {
			m.touch()
		}
		a.Free = m.state.free(g)
	}
	return a
}

// free counts the slots of a gallery that are granted to no shard.
func (st *state) free(g *Gallery) uint32 {
	var sum uint64
	for _, of := range st.grants[g.ID] {
		sum += uint64(of.Slots())
	}
	return g.Size - uint32(min(sum, uint64(g.Size)))
}

// grantOf returns the grant of a shard.
func (st *state) grantOf(g *Gallery, shard id.Shard) ShardGrant {
	for _, of := range st.grants[g.ID] {
		if of.Shard == shard {
			return of
		}
	}
	return ShardGrant{Shard: shard}
}

// grant raises the total of a shard by at most want and returns it. The slots of all shards
// never exceed the gallery's size.
func (st *state) grant(g *Gallery, shard id.Shard, have, want uint32) (total uint32, changed bool) {
	of := st.grantOf(g, shard)
	more := min(want, st.free(g), math.MaxUint32-of.Total)
	if of.Total > have || more == 0 {
		return of.Total, false
	}
	of.Total += more
	st.grants[g.ID] = withGrant(st.grants[g.ID], of)
	return of.Total, true
}

// reclaim records the number of slots that a shard has ever returned. ok is false if the
// shard was never granted so many.
func (st *state) reclaim(g *Gallery, shard id.Shard, returned uint32) (changed, ok bool) {
	of := st.grantOf(g, shard)
	if returned > of.Total {
		return false, false
	}
	if returned <= of.Reclaimed {
		return false, true
	}
	of.Reclaimed = returned
	st.grants[g.ID] = withGrant(st.grants[g.ID], of)
	return true, true
}

// withGrant returns a copy of grants in which the grant of one shard is to.
func withGrant(grants []ShardGrant, to ShardGrant) []ShardGrant {
	out := slices.Clone(grants)
	i, ok := slices.BinarySearchFunc(out, to.Shard, func(of ShardGrant, s id.Shard) int { return int(of.Shard) - int(s) })
	if !ok {
		return slices.Insert(out, i, to)
	}
	out[i] = to
	return out
}
