package metafsm

// Found founds the cluster, at LevelFirst. Only the first Found has an effect.
type Found struct {
	Cluster Cluster `cbor:"1,keyasint"`
}

// FoundAnswer answers Found with Done or Exists, and with the founded cluster.
type FoundAnswer struct {
	Status  Status  `cbor:"1,keyasint"`
	Cluster Cluster `cbor:"2,keyasint"`
}

func (c Found) apply(m *Machine) FoundAnswer {
	a := FoundAnswer{Status: Exists}
	if m.state.cluster == nil {
		a.Status = Done
		m.state.cluster, m.state.level = &c.Cluster, m.state.levelNow()
		m.touch()
	}
	a.Cluster = *m.state.cluster
	return a
}
