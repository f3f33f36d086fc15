package metafsm

import "slices"

// PutShards replaces the shard map if the map's epoch is Previous. Shards are in order of
// their numbers.
type PutShards struct {
	Previous uint64        `cbor:"1,keyasint"`
	Shards   []ShardVoters `cbor:"2,keyasint"`
}

// PutShardsAnswer answers PutShards with Done or StaleEpoch, and with the present map.
type PutShardsAnswer struct {
	Status Status   `cbor:"1,keyasint"`
	Map    ShardMap `cbor:"2,keyasint"`
}

func (c PutShards) apply(m *Machine) PutShardsAnswer {
	now := m.state.shards
	a := PutShardsAnswer{Status: StaleEpoch, Map: *now}
	switch {
	case now.Epoch == c.Previous:
		for i, v := range c.Shards {
			old, known := now.Shard(v.Shard)
			c.Shards[i].Moved = old.Moved || known && !sameMembers(old.Voters, v.Voters)
		}
		m.state.shards = &ShardMap{Epoch: c.Previous + 1, Shards: c.Shards}
		a = PutShardsAnswer{Status: Done, Map: *m.state.shards}
		m.touch()
	case now.Epoch == c.Previous+1 && slices.EqualFunc(now.Shards, c.Shards, equalVoters):
		a.Status = Done // a retry
	}
	return a
}

func equalVoters(a, b ShardVoters) bool {
	return a.Shard == b.Shard && a.Moving == b.Moving && a.Began == b.Began && slices.Equal(a.Voters, b.Voters) && slices.Equal(a.Leaving, b.Leaving) &&
		slices.Equal(a.From, b.From)
}
