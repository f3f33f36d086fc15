package metafsm

import "facet/internal/id"

// CreateApplication makes an application of a gallery of its Tenant. Created and
// Seq are ignored.
type CreateApplication struct {
	Write       Write       `cbor:"1,keyasint"`
	Application Application `cbor:"2,keyasint"`
}

// CreateApplicationAnswer is Done or Replayed (with what was made), Conflict, OtherKey,
// UnknownGallery, UnknownApplication (Replayed, and deleted since) or OpsFull.
type CreateApplicationAnswer struct {
	Status      Status      `cbor:"1,keyasint"`
	Application Application `cbor:"2,keyasint"`
}

func (c CreateApplication) apply(m *Machine) CreateApplicationAnswer {
	a := c.Application
	known, status := m.once(c.Write, CreateApplicationOp.Code, a.Tenant.UUID)
	g := m.state.gallery(a.Gallery)
	switch {
	case status == Replayed:
		if made := m.state.applications[id.Application{UUID: known.IDs[0]}]; made != nil {
			return CreateApplicationAnswer{Replayed, *made}
		}
		return CreateApplicationAnswer{Status: UnknownApplication}
	case status != 0:
		return CreateApplicationAnswer{Status: status}
	case g == nil || g.Tenant != a.Tenant:
		return CreateApplicationAnswer{Status: UnknownGallery}
	case m.state.taken(a):
		return CreateApplicationAnswer{Status: Conflict}
	case !m.state.wrapped(a.SealedKey):
		return CreateApplicationAnswer{Status: OtherKey}
	}
	a.Created = m.ops.Clock()
	a.Seq = m.state.next()
	m.state.addApplication(a)
	m.done(c.Write, CreateApplicationOp.Code, a.Tenant.UUID, a.ID.UUID)
	return CreateApplicationAnswer{Done, a}
}

// UpdateApplication changes what is not nil of a tenant's application.
type UpdateApplication struct {
	Write           Write          `cbor:"1,keyasint"`
	Tenant          id.Tenant      `cbor:"2,keyasint"`
	Application     id.Application `cbor:"3,keyasint"`
	Name            *string        `cbor:"4,keyasint,omitempty"`
	Description     *string        `cbor:"5,keyasint,omitempty"`
	MinimumQuality  *float64       `cbor:"6,keyasint,omitempty"`
	VerifyThreshold *int           `cbor:"7,keyasint,omitempty"`
	GuardThreshold  *int           `cbor:"8,keyasint,omitempty"`
	Guard           *bool          `cbor:"9,keyasint,omitempty"`
}

// UpdateApplicationAnswer is Done or Replayed (with the application as it is now),
// UnknownApplication, Conflict or OpsFull.
type UpdateApplicationAnswer struct {
	Status      Status      `cbor:"1,keyasint"`
	Application Application `cbor:"2,keyasint"`
}

func (c UpdateApplication) apply(m *Machine) UpdateApplicationAnswer {
	_, status := m.once(c.Write, UpdateApplicationOp.Code, c.Application.UUID)
	if status != 0 && status != Replayed {
		return UpdateApplicationAnswer{Status: status}
	}
	old := m.state.applications[c.Application]
	switch {
	case old == nil || old.Tenant != c.Tenant:
		return UpdateApplicationAnswer{Status: UnknownApplication}
	case status == Replayed:
		return UpdateApplicationAnswer{Replayed, *old}
	}
	a := *old
	change(&a.Name, c.Name)
	change(&a.Description, c.Description)
	change(&a.MinimumQuality, c.MinimumQuality)
	change(&a.VerifyThreshold, c.VerifyThreshold)
	change(&a.GuardThreshold, c.GuardThreshold)
	change(&a.Guard, c.Guard)
	m.state.applications[a.ID] = &a
	m.done(c.Write, UpdateApplicationOp.Code, a.ID.UUID)
	return UpdateApplicationAnswer{Done, a}
}

// change sets a field to a value that is given.
func change[T any](field, to *T) {
	if to != nil {
		*field = *to
	}
}

// DeleteApplication removes a tenant's application; its key is unknown from then
// on. Op names this attempt: a client's request that simply runs again needs
// another one.
type DeleteApplication struct {
	Write       Write          `cbor:"1,keyasint"`
	Tenant      id.Tenant      `cbor:"2,keyasint"`
	Application id.Application `cbor:"3,keyasint"`
}

// DeleteApplicationAnswer is Done, Replayed, UnknownApplication, Conflict or
// OpsFull.
type DeleteApplicationAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

func (c DeleteApplication) apply(m *Machine) DeleteApplicationAnswer {
	return DeleteApplicationAnswer{c.do(m)}
}

func (c DeleteApplication) do(m *Machine) Status {
	if _, status := m.once(c.Write, DeleteApplicationOp.Code, c.Application.UUID); status != 0 {
		return status
	}
	a := m.state.applications[c.Application]
	if a == nil || a.Tenant != c.Tenant {
		return UnknownApplication
	}
	m.state.removeApplications(a.Tenant, a.Gallery, func(of *Application) bool { return of.ID == a.ID })
	m.done(c.Write, DeleteApplicationOp.Code, a.ID.UUID)
	return Done
}
