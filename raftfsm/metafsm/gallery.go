package metafsm

import "facet/internal/id"

// CreateGallery makes a gallery and its first application, whose Tenant and
// Gallery are the gallery's. Created and Seq are ignored.
type CreateGallery struct {
	Write       Write       `cbor:"1,keyasint"`
	Gallery     Gallery     `cbor:"2,keyasint"`
	Application Application `cbor:"3,keyasint"`
}

// CreateGalleryAnswer is Done or Replayed (with what was made), Exists (with the
// gallery of that name and its oldest application), OtherKey, BeingDeleted (the name is that
// of a gallery on its way out), Conflict, UnknownTenant, UnknownGallery (Replayed,
// and deleted since) or OpsFull. An application that was deleted since, or a gallery
// without any, gives one without id.
type CreateGalleryAnswer struct {
	Status      Status      `cbor:"1,keyasint"`
	Gallery     Gallery     `cbor:"2,keyasint"`
	Application Application `cbor:"3,keyasint"`
}

func (c CreateGallery) apply(m *Machine) CreateGalleryAnswer {
	g, a := c.Gallery, c.Application
	known, status := m.once(c.Write, CreateGalleryOp.Code, g.Tenant.UUID)
	t := m.state.tenants[g.Tenant]
	switch {
	case status == Replayed:
		return m.state.galleryAnswer(Replayed, id.Gallery{UUID: known.IDs[0]}, id.Application{UUID: known.IDs[1]})
	case status != 0:
		return CreateGalleryAnswer{Status: status}
	case t == nil:
		return CreateGalleryAnswer{Status: UnknownTenant}
	case !m.state.wrapped(g.WrappedKey) || !m.state.wrapped(a.SealedKey):
		return CreateGalleryAnswer{Status: OtherKey}
	}
	if named, ok := t.byName[g.Name]; ok {
		if m.state.galleries[named].Deleting {
			return CreateGalleryAnswer{Status: BeingDeleted}
		}
		return m.state.galleryAnswer(Exists, named, t.oldest[named])
	}
	if m.state.galleries[g.ID] != nil || m.state.taken(a) {
		return CreateGalleryAnswer{Status: Conflict}
	}
	g.Created = m.ops.Clock()
	g.Seq = m.state.next()
	m.state.addGallery(g)
	a.Tenant, a.Gallery, a.Created = g.Tenant, g.ID, g.Created
	a.Seq = m.state.next()
	m.state.addApplication(a)
	m.done(c.Write, CreateGalleryOp.Code, g.Tenant.UUID, g.ID.UUID, a.ID.UUID)
	return m.state.galleryAnswer(Done, g.ID, a.ID)
}

// galleryAnswer gives the records of a gallery and of one of its applications; the
// gallery, the application or both may have been deleted since.
func (st *state) galleryAnswer(s Status, g id.Gallery, a id.Application) CreateGalleryAnswer {
	gallery := st.gallery(g)
	if gallery == nil {
		return CreateGalleryAnswer{Status: UnknownGallery}
	}
	out := CreateGalleryAnswer{Status: s, Gallery: *gallery}
	if application := st.applications[a]; application != nil {
		out.Application = *application
	}
	return out
}

// UpdateGallery changes what is not nil of a tenant's gallery. The size may only
// grow; with it the gallery may get more shards, which raises its Epoch: then meta
// grants no slots to the new ones (Unsettled) before Settle.
type UpdateGallery struct {
	Write       Write      `cbor:"1,keyasint"`
	Tenant      id.Tenant  `cbor:"2,keyasint"`
	Gallery     id.Gallery `cbor:"3,keyasint"`
	Name        *string    `cbor:"4,keyasint,omitempty"`
	Description *string    `cbor:"5,keyasint,omitempty"`
	Size        *uint32    `cbor:"6,keyasint,omitempty"`
	// Shards is ShardCount of Size; it counts only if the size grows, and never
	// lowers the number of shards.
	Shards int `cbor:"7,keyasint,omitempty"`
}

// UpdateGalleryAnswer is Done or Replayed (with the gallery as it is now), Exists
// (with the gallery that has the name), BeingDeleted (the name is that of a gallery
// on its way out), SizeShrinks, UnknownGallery, Conflict or OpsFull.
type UpdateGalleryAnswer struct {
	Status  Status  `cbor:"1,keyasint"`
	Gallery Gallery `cbor:"2,keyasint"`
}

func (c UpdateGallery) apply(m *Machine) UpdateGalleryAnswer {
	_, status := m.once(c.Write, UpdateGalleryOp.Code, c.Gallery.UUID)
	if status != 0 && status != Replayed {
		return UpdateGalleryAnswer{Status: status}
	}
	old := m.state.gallery(c.Gallery)
	switch {
	case old == nil || old.Tenant != c.Tenant:
		return UpdateGalleryAnswer{Status: UnknownGallery}
	case status == Replayed:
		return UpdateGalleryAnswer{Replayed, *old}
	case c.Size != nil && *c.Size < old.Size:
		return UpdateGalleryAnswer{Status: SizeShrinks}
	}
	t, g := m.state.tenants[old.Tenant], *old
	if c.Name != nil {
		if other, ok := t.byName[*c.Name]; ok && other != g.ID {
			return m.state.nameTaken(other)
		}
		g.Name = *c.Name
	}
	if c.Description != nil {
		g.Description = *c.Description
	}
	if c.Size != nil {
		g.grow(*c.Size, c.Shards)
	}
	delete(t.byName, old.Name)
	t.byName[g.Name] = g.ID
	m.state.galleries[g.ID] = &g
	m.done(c.Write, UpdateGalleryOp.Code, g.ID.UUID)
	return UpdateGalleryAnswer{Done, g}
}

// nameTaken answers with the gallery that has the name wanted.
func (st *state) nameTaken(by id.Gallery) UpdateGalleryAnswer {
	if other := st.galleries[by]; !other.Deleting {
		return UpdateGalleryAnswer{Exists, *other}
	}
	return UpdateGalleryAnswer{Status: BeingDeleted}
}

// grow raises the size of a gallery and, for that, the number of its shards.
func (g *Gallery) grow(size uint32, shards int) {
	if size > g.Size && shards > g.Shards {
		if g.Settled == 0 {
			g.Settled = g.Shards
		}
		g.Shards = shards
		g.Epoch++
	}
	g.Size = size
}

// Settle says that the first shard of a gallery was told of an epoch
// (shardfsm.Widen): from then on all its shards are granted slots.
type Settle struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Epoch      uint32     `cbor:"3,keyasint"`
}

// SettleAnswer is Done, StaleEpoch (the gallery has another epoch), StaleGeneration
// or UnknownGallery.
type SettleAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

func (c Settle) apply(m *Machine) SettleAnswer { return SettleAnswer{c.do(m)} }

func (c Settle) do(m *Machine) Status {
	g, status := m.state.current(c.Gallery, c.Generation)
	switch {
	case status != Done:
		return status
	case g.Epoch != c.Epoch:
		return StaleEpoch
	case g.Settled != 0:
		settled := *g
		settled.Settled = 0
		m.state.galleries[g.ID] = &settled
		m.touch()
	}
	return Done
}

// DeleteGallery begins the deletion of a tenant's gallery: its applications and
// tags are gone, its key is forgotten, its generation is raised, and all readers
// but Deleting know it no more. Its name stays taken until ForgetGallery.
type DeleteGallery struct {
	Write   Write      `cbor:"1,keyasint"`
	Tenant  id.Tenant  `cbor:"2,keyasint"`
	Gallery id.Gallery `cbor:"3,keyasint"`
}

// DeleteGalleryAnswer is Done (also for a gallery that is being deleted), Replayed,
// UnknownGallery, Conflict or OpsFull.
type DeleteGalleryAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Gallery is what is left of it: its shards have to be fenced at its Generation.
	// It has no id if it is forgotten already.
	Gallery Gallery `cbor:"2,keyasint"`
}

func (c DeleteGallery) apply(m *Machine) DeleteGalleryAnswer {
	_, status := m.once(c.Write, DeleteGalleryOp.Code, c.Gallery.UUID)
	old := m.state.galleries[c.Gallery]
	switch {
	case status == Replayed && old == nil:
		return DeleteGalleryAnswer{Status: Replayed}
	case status == Replayed:
		return DeleteGalleryAnswer{Replayed, *old}
	case status != 0:
		return DeleteGalleryAnswer{Status: status}
	case old == nil || old.Tenant != c.Tenant:
		return DeleteGalleryAnswer{Status: UnknownGallery}
	case old.Deleting:
		return DeleteGalleryAnswer{Done, *old}
	}
	g := *old
	g.Deleting, g.WrappedKey = true, nil
	g.Generation++
	m.state.galleries[g.ID] = &g
	m.state.strip(&g)
	m.done(c.Write, DeleteGalleryOp.Code, g.ID.UUID)
	return DeleteGalleryAnswer{Done, g}
}

// ForgetGallery ends a deletion after all shards are fenced.
type ForgetGallery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
}

// ForgetGalleryAnswer is Done (also if there is no such gallery any more), or
// StaleGeneration if it is not being deleted at that generation.
type ForgetGalleryAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

func (c ForgetGallery) apply(m *Machine) ForgetGalleryAnswer {
	a := ForgetGalleryAnswer{Done}
	switch g := m.state.galleries[c.Gallery]; {
	case g == nil:
	case !g.Deleting || g.Generation != c.Generation:
		a.Status = StaleGeneration
	default:
		m.state.removeGallery(g)
		m.touch()
	}
	return a
}
