package metafsm

import "facet/internal/id"

// CreateTenant creates a tenant. Seq is ignored.
type CreateTenant struct {
	Write  Write  `cbor:"1,keyasint"`
	Tenant Tenant `cbor:"2,keyasint"`
}

// CreateTenantAnswer answers CreateTenant. The status is Done, Replayed or Exists with the
// tenant, or Conflict, OpsFull or Restoring. It is UnknownTenant if a repeated command's tenant
// has been deleted since.
type CreateTenantAnswer struct {
	Status Status `cbor:"1,keyasint"`
	Tenant Tenant `cbor:"2,keyasint"`
}

func (c CreateTenant) apply(m *Machine) CreateTenantAnswer {
	if r := m.state.restoration; r != nil && r.Whole && !r.Done {
		return CreateTenantAnswer{Status: Restoring}
	}
	known, status := m.once(c.Write, id.Tenant{}, CreateTenantOp.Code, [16]byte{})
	if status == Replayed {
		if created := m.state.tenants[id.Tenant{UUID: known.IDs[0]}]; created != nil {
			return CreateTenantAnswer{Replayed, *created.record}
		}
		return CreateTenantAnswer{Status: UnknownTenant}
	}
	if status != 0 {
		return CreateTenantAnswer{Status: status}
	}
	if named, ok := m.state.byName[c.Tenant.Name]; ok {
		return CreateTenantAnswer{Exists, *m.state.tenants[named].record}
	}
	if m.state.tenants[c.Tenant.ID] != nil {
		return CreateTenantAnswer{Status: Conflict}
	}
	c.Tenant.Seq = m.state.next()
	m.state.addTenant(c.Tenant)
	m.done(c.Write, id.Tenant{}, CreateTenantOp.Code, [16]byte{}, c.Tenant.ID.UUID)
	return CreateTenantAnswer{Done, c.Tenant}
}

// SetTenantState disables a tenant or enables it again. The status is Done, UnknownTenant, or
// BeingDeleted if the tenant is under deletion.
type SetTenantState struct {
	Tenant id.Tenant `cbor:"1,keyasint"`
	// State is TenantActive or TenantDisabled.
	State TenantState `cbor:"2,keyasint,omitempty"`
}

func (c SetTenantState) apply(m *Machine) Status {
	t := m.state.tenants[c.Tenant]
	switch {
	case t == nil:
		return UnknownTenant
	case t.record.State == TenantDeleting:
		return BeingDeleted
	case t.record.State != c.State:
		m.state.setState(t, c.State)
		m.touch()
	}
	return Done
}

// DeleteTenant removes the applications and access keys of a tenant, and starts the deletion of
// its galleries as DeleteGallery does. The ForgetGallery of the last one removes the tenant. The
// status is Done, also if the tenant is under deletion already, UnknownTenant or Restoring.
type DeleteTenant struct {
	Tenant id.Tenant `cbor:"1,keyasint"`
}

func (c DeleteTenant) apply(m *Machine) Status {
	st, t := m.state, m.state.tenants[c.Tenant]
	switch r := st.restoration; {
	case t == nil:
		return UnknownTenant
	case t.record.State == TenantDeleting:
		return Done
	case r != nil && r.Whole && !r.Done:
		return Restoring
	}
	st.setState(t, TenantDeleting)
	for _, of := range t.applications {
		delete(st.byMAC, st.applications[of].KeyMAC)
		delete(st.applications, of)
	}
	t.applications = nil
	clear(t.oldest)
	for key, k := range st.keys { // any order will do
		if k.Tenant == c.Tenant {
			delete(st.keys, key)
		}
	}
	for _, of := range t.galleries {
		if g := st.galleries[of]; !g.Deleting {
			st.startDeletion(g)
		}
	}
	st.removeIfDeleted(t)
	m.touch()
	return Done
}

// setState sets the state of a tenant.
func (st *state) setState(t *tenant, s TenantState) {
	record := *t.record
	record.State = s
	t.record = &record
}

// removeIfDeleted removes a tenant under deletion that has no gallery left.
func (st *state) removeIfDeleted(t *tenant) {
	if t.record.State == TenantDeleting && len(t.galleries) == 0 {
		delete(st.tenants, t.record.ID)
		delete(st.byName, t.record.Name)
	}
}

// deleting reports whether a tenant is under deletion.
func (st *state) deleting(t id.Tenant) bool {
	of := st.tenants[t]
	return of != nil && of.record.State == TenantDeleting
}
