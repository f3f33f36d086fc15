package metafsm

// Signer is the key with which the cluster signs receipts of erasures. No backup has it: a
// restored cluster makes its own.
type Signer struct {
	// Public is an Ed25519 public key.
	Public [32]byte `cbor:"1,keyasint,omitzero"`
	// WrappedSeed is the private key's seed, wrapped by the cluster's key.
	WrappedSeed []byte `cbor:"2,keyasint,omitempty"`
}

// SetSigner gives the cluster its signing key. The status is Done, Exists if the cluster has a key
// or is not founded, or OtherKey if a retired key has wrapped the seed.
type SetSigner struct {
	Signer Signer `cbor:"1,keyasint"`
}

func (c SetSigner) apply(m *Machine) Status {
	old := m.state.cluster
	switch {
	case old == nil || len(old.Signer.WrappedSeed) > 0 || len(c.Signer.WrappedSeed) == 0:
		return Exists
	case !m.state.wrapped(c.Signer.WrappedSeed):
		return OtherKey
	}
	set := *old
	set.Signer = c.Signer
	m.state.cluster = &set
	m.touch()
	return Done
}
