package metafsm

import (
	"facet/internal/id"
	"facet/internal/settings"
)

// ApplicationAnswer answers CreateApplication and UpdateApplication.
type ApplicationAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Application is set for Done and Replayed, as it is now.
	Application Application `cbor:"2,keyasint"`
}

// CreateApplication creates an application of a gallery of its Tenant. Created and
// Seq are ignored. The status is Done, Replayed, Conflict, OtherKey, UnknownGallery,
// OverApplications, OverChanges or OpsFull. It is UnknownApplication if a repeated command's application has been
// deleted since.
type CreateApplication struct {
	Write       Write       `cbor:"1,keyasint"`
	Application Application `cbor:"2,keyasint"`
}

func (c CreateApplication) apply(m *Machine) ApplicationAnswer {
	a := c.Application
	known, status := m.once(c.Write, a.Tenant, CreateApplicationOp.Code, a.Tenant.UUID)
	g := m.state.gallery(a.Gallery)
	switch {
	case status == Replayed:
		if created := m.state.applications[id.Application{UUID: known.IDs[0]}]; created != nil {
			return ApplicationAnswer{Replayed, *created}
		}
		return ApplicationAnswer{Status: UnknownApplication}
	case status != 0:
		return ApplicationAnswer{Status: status}
	case g == nil || g.Tenant != a.Tenant:
		return ApplicationAnswer{Status: UnknownGallery}
	case m.state.taken(a):
		return ApplicationAnswer{Status: Conflict}
	case !m.state.wrapped(a.SealedKey):
		return ApplicationAnswer{Status: OtherKey}
	case m.beyond(m.state.tenants[a.Tenant], QuotaApplications, 1):
		return ApplicationAnswer{Status: OverApplications}
	}
	a.Created = m.ops.Clock()
	a.Seq = m.state.next()
	m.state.addApplication(a)
	m.done(c.Write, a.Tenant, CreateApplicationOp.Code, a.Tenant.UUID, a.ID.UUID)
	return ApplicationAnswer{Done, a}
}

// UpdateApplication changes the settings of a tenant's application. The
// status is Done, Replayed, OtherSettings, UnknownApplication, Conflict, OverChanges or OpsFull.
type UpdateApplication struct {
	Write       Write          `cbor:"1,keyasint"`
	Tenant      id.Tenant      `cbor:"2,keyasint"`
	Application id.Application `cbor:"3,keyasint"`
	// Change has the new settings.
	Change settings.Change[settings.Application] `cbor:"4,keyasint"`
	// IfMatch is the ETag that the application must have, or empty.
	IfMatch string `cbor:"20,keyasint,omitempty"`
}

func (c UpdateApplication) apply(m *Machine) ApplicationAnswer {
	_, status := m.once(c.Write, c.Tenant, UpdateApplicationOp.Code, c.Application.UUID)
	if status != 0 && status != Replayed {
		return ApplicationAnswer{Status: status}
	}
	old := m.state.applications[c.Application]
	switch {
	case old == nil || old.Tenant != c.Tenant:
		return ApplicationAnswer{Status: UnknownApplication}
	case status == Replayed:
		return ApplicationAnswer{Replayed, *old}
	case c.IfMatch != "" && c.IfMatch != old.ETag():
		return ApplicationAnswer{Status: OtherSettings}
	}
	a := c.Changed(*old)
	m.state.applications[a.ID] = &a
	m.done(c.Write, c.Tenant, UpdateApplicationOp.Code, a.ID.UUID)
	return ApplicationAnswer{Done, a}
}

// Changed returns a with the changes of c.
func (c UpdateApplication) Changed(a Application) Application {
	a.Application = c.Change.Of(a.Application)
	return a
}

// DeleteApplication removes a tenant's application, whose key is unknown from then on.
// The status is Done, Replayed, UnknownApplication, Conflict, OverChanges or OpsFull.
// Write.Op names one attempt of the client: a request that the client sends again has
// another Op.
type DeleteApplication struct {
	Write       Write          `cbor:"1,keyasint"`
	Tenant      id.Tenant      `cbor:"2,keyasint"`
	Application id.Application `cbor:"3,keyasint"`
}

func (c DeleteApplication) apply(m *Machine) Status {
	if _, status := m.once(c.Write, c.Tenant, DeleteApplicationOp.Code, c.Application.UUID); status != 0 {
		return status
	}
	a := m.state.applications[c.Application]
	if a == nil || a.Tenant != c.Tenant {
		return UnknownApplication
	}
	m.state.removeApplications(a.Tenant, a.Gallery, func(of *Application) bool { return of.ID == a.ID })
	m.done(c.Write, c.Tenant, DeleteApplicationOp.Code, a.ID.UUID)
	return Done
}
