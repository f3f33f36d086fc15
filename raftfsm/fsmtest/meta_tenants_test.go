package fsmtest_test

import (
	"cmp"
	"slices"
	"testing"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

// tenantState disables, enables or deletes a tenant.
func (w *metaWorld) tenantState() []byte {
	t := tenantID(w.IntN(5))
	if w.IntN(3) == 0 {
		return send(w, metafsm.DeleteTenantOp, metafsm.DeleteTenant{Tenant: t}, w.model.deleteTenant)
	}
	switch w.IntN(4) {
	case 0:
		c := metafsm.SetAudit{Tenant: t, Mode: metafsm.AuditMode(w.IntN(3)), Days: uint32(w.IntN(3))}
		return send(w, metafsm.SetAuditOp, c, w.model.setAudit)
	case 1:
		if w.IntN(3) == 0 {
			t = id.ClusterLog
		}
		c := metafsm.SetAuditKey{Tenant: t, WrappedKey: [][]byte{nil, {1, 2}, {3}}[w.IntN(3)]}
		return send(w, metafsm.SetAuditKeyOp, c, w.model.setAuditKey)
	}
	return send(w, metafsm.SetTenantStateOp, metafsm.SetTenantState{Tenant: t, State: metafsm.TenantState(w.IntN(2))}, w.model.setTenantState)
}

func (m *metaModel) setTenantState(c metafsm.SetTenantState) metafsm.StatusAnswer {
	return m.changeTenant(c.Tenant, func(t *metafsm.Tenant) metafsm.Status {
		t.State = c.State
		return metafsm.Done
	})
}

// changeTenant changes a tenant that is not under deletion.
func (m *metaModel) changeTenant(of id.Tenant, change func(*metafsm.Tenant) metafsm.Status) metafsm.StatusAnswer {
	i := m.tenant(of)
	switch {
	case i < 0:
		return metafsm.StatusAnswer{Status: metafsm.UnknownTenant}
	case m.leaving(of):
		return metafsm.StatusAnswer{Status: metafsm.BeingDeleted}
	}
	return metafsm.StatusAnswer{Status: change(&m.tenants[i])}
}

func (m *metaModel) setAudit(c metafsm.SetAudit) metafsm.StatusAnswer {
	return m.changeTenant(c.Tenant, func(t *metafsm.Tenant) metafsm.Status {
		t.Audit.Mode, t.Audit.Days = c.Mode, cmp.Or(c.Days, t.Audit.Days)
		return metafsm.Done
	})
}

func (m *metaModel) setAuditKey(c metafsm.SetAuditKey) metafsm.StatusAnswer {
	give := func(key []byte) ([]byte, metafsm.Status) {
		switch {
		case len(key) > 0 || len(c.WrappedKey) == 0:
			return key, metafsm.Exists
		case !m.wrapped(c.WrappedKey):
			return key, metafsm.OtherKey
		}
		return c.WrappedKey, metafsm.Done
	}
	if c.Tenant == id.ClusterLog {
		if m.cluster == nil {
			return metafsm.StatusAnswer{Status: metafsm.UnknownTenant}
		}
		next := *m.cluster
		var a metafsm.StatusAnswer
		next.AuditKey, a.Status = give(next.AuditKey)
		m.cluster = &next
		return a
	}
	return m.changeTenant(c.Tenant, func(t *metafsm.Tenant) (s metafsm.Status) {
		t.Audit.WrappedKey, s = give(t.Audit.WrappedKey)
		return s
	})
}

func (m *metaModel) deleteTenant(c metafsm.DeleteTenant) metafsm.StatusAnswer {
	i := m.tenant(c.Tenant)
	switch {
	case i < 0:
		return metafsm.StatusAnswer{Status: metafsm.UnknownTenant}
	case m.leaving(c.Tenant):
		return metafsm.StatusAnswer{Status: metafsm.Done}
	case m.restoration != nil && m.restoration.Whole && !m.restoration.Done:
		return metafsm.StatusAnswer{Status: metafsm.Restoring}
	}
	m.tenants[i].State = metafsm.TenantDeleting
	m.keys = slices.DeleteFunc(m.keys, func(k metafsm.AccessKey) bool { return k.Tenant == c.Tenant })
	m.applications = slices.DeleteFunc(m.applications, func(a metafsm.Application) bool { return a.Tenant == c.Tenant })
	for i := range m.galleries {
		if g := &m.galleries[i]; g.Tenant == c.Tenant && !g.Deleting {
			g.Deleting, g.WrappedKey = true, nil
			g.Generation++
			delete(m.grants, g.ID)
			delete(m.tags, g.ID)
		}
	}
	m.leave(c.Tenant)
	return metafsm.StatusAnswer{Status: metafsm.Done}
}

// leaving reports whether a tenant is under deletion.
func (m *metaModel) leaving(t id.Tenant) bool {
	i := m.tenant(t)
	return i >= 0 && m.tenants[i].State == metafsm.TenantDeleting
}

// leave removes a tenant under deletion without galleries.
func (m *metaModel) leave(t id.Tenant) {
	if m.leaving(t) && !slices.ContainsFunc(m.galleries, func(g metafsm.Gallery) bool { return g.Tenant == t }) {
		i := m.tenant(t)
		m.tenants = slices.Delete(m.tenants, i, i+1)
	}
}

// compareStates compares the states of tenants. One that does not exist may do nothing.
func (m *metaModel) compareStates(t *testing.T, replica int, got *metafsm.Machine) {
	t.Helper()
	for n := range 6 {
		want := metafsm.TenantDeleting
		if i := m.tenant(tenantID(n)); i >= 0 {
			want = m.tenants[i].State
		}
		same(t, replica, "state of a tenant", want, got.TenantState(tenantID(n)))
	}
}
