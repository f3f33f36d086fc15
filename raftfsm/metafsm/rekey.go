package metafsm

import (
	"bytes"

	"facet/internal/id"
)

// Rekey replaces secrets by the same secrets wrapped by another cluster key. It skips a
// secret that has changed or was removed since the proposer read it.
type Rekey struct {
	Secrets []Rekeyed `cbor:"1,keyasint,omitempty"`
	// KeyCheck and KeyHead, unless empty, replace the cluster's. From then on the machine
	// refuses records whose secret another key has wrapped.
	KeyCheck []byte `cbor:"2,keyasint,omitempty"`
	KeyHead  []byte `cbor:"3,keyasint,omitempty"`
}

// Rekeyed is the secret of one record: a gallery, an access key, an application, an audit key or the signer.
type Rekeyed struct {
	Gallery     id.Gallery     `cbor:"1,keyasint,omitzero"`
	AccessKey   string         `cbor:"2,keyasint,omitempty"`
	Application id.Application `cbor:"3,keyasint,omitzero"`
	// Old is the secret in the record. New replaces it.
	Old []byte `cbor:"4,keyasint"`
	New []byte `cbor:"5,keyasint"`
	// KeyMAC is the new Application.KeyMAC, for an application.
	KeyMAC [32]byte `cbor:"6,keyasint,omitzero"`
	// Signer marks the seed of Cluster.Signer.
	Signer bool `cbor:"7,keyasint,omitempty"`
	// Audit is the tenant whose audit key is replaced, or id.ClusterLog.
	Audit id.Tenant `cbor:"8,keyasint,omitzero"`
}

// RekeyAnswer answers Rekey with Done and the number of replaced secrets.
type RekeyAnswer struct {
	Status  Status `cbor:"1,keyasint"`
	Changed int    `cbor:"2,keyasint"`
}

func (c Rekey) apply(m *Machine) RekeyAnswer {
	a := RekeyAnswer{Status: Done}
	for _, s := range c.Secrets {
		if m.state.rekey(s) {
			a.Changed++
		}
	}
	if len(c.KeyCheck) > 0 && m.state.cluster != nil {
		cluster := *m.state.cluster
		cluster.KeyCheck, cluster.KeyHead = c.KeyCheck, c.KeyHead
		m.state.cluster = &cluster
	}
	m.touch()
	return a
}

// wrapped reports whether the cluster's present key has wrapped a new secret. Nobody could
// soon open a late secret that a retired key has wrapped.
func (st *state) wrapped(secret []byte) bool {
	return st.cluster == nil || len(secret) == 0 || bytes.HasPrefix(secret, st.cluster.KeyHead)
}

// rekey replaces one secret. Frozen states keep the old record.
func (st *state) rekey(s Rekeyed) bool {
	switch {
	case !s.Gallery.IsZero():
		old := st.gallery(s.Gallery)
		if old == nil || !bytes.Equal(old.WrappedKey, s.Old) {
			return false
		}
		g := *old
		g.WrappedKey = s.New
		st.galleries[g.ID] = &g
	case s.AccessKey != "":
		old := st.keys[s.AccessKey]
		if old == nil || !bytes.Equal(old.SealedSecret, s.Old) {
			return false
		}
		k := *old
		k.SealedSecret = s.New
		st.keys[k.ID] = &k
	case s.Audit == id.ClusterLog:
		if st.cluster == nil || !bytes.Equal(st.cluster.AuditKey, s.Old) {
			return false
		}
		cluster := *st.cluster
		cluster.AuditKey = s.New
		st.cluster = &cluster
	case !s.Audit.IsZero():
		t := st.tenants[s.Audit]
		if t == nil || !bytes.Equal(t.record.Audit.WrappedKey, s.Old) {
			return false
		}
		record := *t.record
		record.Audit.WrappedKey = s.New
		t.record = &record
	case s.Signer:
		if st.cluster == nil || !bytes.Equal(st.cluster.Signer.WrappedSeed, s.Old) {
			return false
		}
		cluster := *st.cluster
		cluster.Signer.WrappedSeed = s.New
		st.cluster = &cluster
	default:
		old := st.applications[s.Application]
		if old == nil || !bytes.Equal(old.SealedKey, s.Old) {
			return false
		}
		a := *old
		a.SealedKey, a.KeyMAC = s.New, s.KeyMAC
		delete(st.byMAC, old.KeyMAC)
		st.byMAC[a.KeyMAC] = a.ID
		st.applications[a.ID] = &a
	}
	return true
}

// Secrets returns every wrapped secret, in the field Old, in no order.
func (m *Machine) Secrets() []Rekeyed {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var list []Rekeyed
	for _, g := range m.state.galleries {
		if !g.Deleting {
			list = append(list, Rekeyed{Gallery: g.ID, Old: bytes.Clone(g.WrappedKey)})
		}
	}
	for _, k := range m.state.keys {
		if len(k.SealedSecret) > 0 { // a revoked key has none
			list = append(list, Rekeyed{AccessKey: k.ID, Old: bytes.Clone(k.SealedSecret)})
		}
	}
	if c := m.state.cluster; c != nil && len(c.Signer.WrappedSeed) > 0 {
		list = append(list, Rekeyed{Signer: true, Old: bytes.Clone(c.Signer.WrappedSeed)})
	}
	if c := m.state.cluster; c != nil && len(c.AuditKey) > 0 {
		list = append(list, Rekeyed{Audit: id.ClusterLog, Old: bytes.Clone(c.AuditKey)})
	}
	for _, t := range m.state.tenants {
		if a := t.record.Audit; len(a.WrappedKey) > 0 {
			list = append(list, Rekeyed{Audit: t.record.ID, Old: bytes.Clone(a.WrappedKey)})
		}
	}
	for _, a := range m.state.applications {
		list = append(list, Rekeyed{Application: a.ID, Old: bytes.Clone(a.SealedKey)})
	}
	return list
}
