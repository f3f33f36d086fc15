package fsmtest_test

import (
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
	return send(w, metafsm.SetTenantStateOp, metafsm.SetTenantState{Tenant: t, State: metafsm.TenantState(w.IntN(2))}, w.model.setTenantState)
}

func (m *metaModel) setTenantState(c metafsm.SetTenantState) metafsm.StatusAnswer {
	i := m.tenant(c.Tenant)
	switch {
	case i < 0:
		return metafsm.StatusAnswer{Status: metafsm.UnknownTenant}
	case m.leaving(c.Tenant):
		return metafsm.StatusAnswer{Status: metafsm.BeingDeleted}
	}
	m.tenants[i].State = c.State
	return metafsm.StatusAnswer{Status: metafsm.Done}
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
