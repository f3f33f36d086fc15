package metafsm

import "facet/internal/id"

// CreateTenant creates a tenant. Seq is ignored.
type CreateTenant struct {
	Write  Write  `cbor:"1,keyasint"`
	Tenant Tenant `cbor:"2,keyasint"`
}

// CreateTenantAnswer answers CreateTenant. The status is Done, Replayed or Exists with the
// tenant, or Conflict, OpsFull or Restoring.
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
		return CreateTenantAnswer{Replayed, *m.state.tenants[id.Tenant{UUID: known.IDs[0]}].record}
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
