package metafsm

// SetReplicas sets the number of voters that each shard should have. Meta's leader then
// changes the shard map, a few shards at a time (Replan, Next). The status is Done. Before
// the founding, and for a number below 1, it has no effect.
type SetReplicas struct {
	Replicas int `cbor:"1,keyasint"`
}

// apply sets both numbers of the record: WantedReplicas returns the larger one.
func (c SetReplicas) apply(m *Machine) Status {
	old := m.state.cluster
	if old == nil || c.Replicas < 1 || old.Replicas == c.Replicas && old.WantedReplicas() == c.Replicas {
		return Done
	}
	set := *old
	set.Replicas, set.Wanted = c.Replicas, c.Replicas
	m.state.cluster = &set
	m.touch()
	return Done
}
