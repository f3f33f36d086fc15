package fsmtest_test

import (
	"bytes"
	"slices"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

// rekey returns a Rekey of some secrets, a few of which have changed since. Now and then it
// sets the new key's KeyHead.
func (w *metaWorld) rekey() []byte {
	var c metafsm.Rekey
	next := func() []byte { return []byte{byte(1 + w.IntN(4)), byte(w.IntN(250))} }
	for range w.IntN(4) {
		old := [][]byte{{3}, {1, 2}, {byte(w.IntN(9))}}[w.IntN(3)]
		switch w.IntN(5) {
		case 4:
			var t metafsm.Tenant
			if n := len(w.model.tenants); n > 0 {
				t = w.model.tenants[w.IntN(n)]
			}
			if w.IntN(4) > 0 {
				old = t.Audit.WrappedKey
			}
			if c := w.model.cluster; c != nil && w.IntN(3) == 0 {
				t.ID, old = id.ClusterLog, c.AuditKey
			}
			c.Secrets = append(c.Secrets, metafsm.Rekeyed{Audit: t.ID, Old: old, New: next()})
		case 3:
			if w.model.cluster != nil && w.IntN(4) > 0 {
				old = w.model.cluster.Signer.WrappedSeed
			}
			c.Secrets = append(c.Secrets, metafsm.Rekeyed{Signer: true, Old: old, New: next()})
		case 0:
			g := w.someGallery()
			if w.IntN(4) > 0 {
				old = g.WrappedKey
			}
			c.Secrets = append(c.Secrets, metafsm.Rekeyed{Gallery: g.ID, Old: old, New: next()})
		case 1:
			k := metafsm.AccessKey{ID: "key 9"}
			if n := len(w.model.keys); n > 0 {
				k = w.model.keys[w.IntN(n)]
			}
			if w.IntN(4) > 0 {
				old = k.SealedSecret
			}
			c.Secrets = append(c.Secrets, metafsm.Rekeyed{AccessKey: k.ID, Old: old, New: next()})
		default:
			a := w.someApplication()
			if w.IntN(4) > 0 {
				old = a.SealedKey
			}
			w.macs++
			c.Secrets = append(c.Secrets, metafsm.Rekeyed{
				Application: a.ID, Old: old, New: next(), KeyMAC: [32]byte{0xfe, byte(w.macs >> 8), byte(w.macs)},
			})
		}
	}
	if w.IntN(4) == 0 {
		c.KeyCheck = []byte{byte(w.IntN(3) + 1)}
		c.KeyHead = [][]byte{nil, nil, {1}, {3}}[w.IntN(4)]
	}
	return send(w, metafsm.RekeyOp, c, w.model.rekey)
}

// wrapped reports whether a new secret is allowed.
func (m *metaModel) wrapped(secret []byte) bool {
	return m.cluster == nil || len(secret) == 0 || bytes.HasPrefix(secret, m.cluster.KeyHead)
}

// rekey applies a Rekey.
func (m *metaModel) rekey(c metafsm.Rekey) metafsm.RekeyAnswer {
	a := metafsm.RekeyAnswer{Status: metafsm.Done}
	for _, s := range c.Secrets {
		changed := false
		switch {
		case !s.Gallery.IsZero():
			if i := m.gallery(s.Gallery); i >= 0 && bytes.Equal(m.galleries[i].WrappedKey, s.Old) {
				m.galleries[i].WrappedKey, changed = s.New, true
			}
		case s.AccessKey != "":
			i := slices.IndexFunc(m.keys, func(k metafsm.AccessKey) bool { return k.ID == s.AccessKey })
			if i >= 0 && bytes.Equal(m.keys[i].SealedSecret, s.Old) {
				m.keys[i].SealedSecret, changed = s.New, true
			}
		case s.Audit == id.ClusterLog:
			if m.cluster != nil && bytes.Equal(m.cluster.AuditKey, s.Old) {
				next := *m.cluster
				next.AuditKey, changed = s.New, true
				m.cluster = &next
			}
		case !s.Audit.IsZero():
			if i := m.tenant(s.Audit); i >= 0 && bytes.Equal(m.tenants[i].Audit.WrappedKey, s.Old) {
				m.tenants[i].Audit.WrappedKey, changed = s.New, true
			}
		case s.Signer:
			if m.cluster != nil && bytes.Equal(m.cluster.Signer.WrappedSeed, s.Old) {
				next := *m.cluster
				next.Signer.WrappedSeed, changed = s.New, true
				m.cluster = &next
			}
		default:
			if i := m.application(s.Application); i >= 0 && bytes.Equal(m.applications[i].SealedKey, s.Old) {
				m.applications[i].SealedKey, m.applications[i].KeyMAC, changed = s.New, s.KeyMAC, true
			}
		}
		if changed {
			a.Changed++
		}
	}
	if m.cluster != nil && len(c.KeyCheck) > 0 {
		next := *m.cluster
		next.KeyCheck, next.KeyHead = c.KeyCheck, c.KeyHead
		m.cluster = &next
	}
	return a
}
