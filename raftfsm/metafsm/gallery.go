package metafsm

import (
	"facet/internal/id"
	"facet/internal/settings"
)

// CreateGallery creates a gallery and its first application. The application gets the
// gallery's tenant and id. Created and Seq are ignored.
type CreateGallery struct {
	Write       Write       `cbor:"1,keyasint"`
	Gallery     Gallery     `cbor:"2,keyasint"`
	Application Application `cbor:"3,keyasint"`
}

// CreateGalleryAnswer answers CreateGallery. The status is one of:
//
//   - Done, or Replayed with the records that the first try created.
//   - Exists: the gallery has that name already; Application is its oldest.
//   - BeingDeleted: a gallery under deletion has that name.
//   - UnknownGallery: the gallery that the first try created was deleted since.
//   - OverGalleries, OverApplications, OverSubjects or OverChanges.
//   - Conflict, OtherKey, UnknownTenant or OpsFull.
//
// Application has no id if it was deleted, or if the gallery has none.
type CreateGalleryAnswer struct {
	Status      Status      `cbor:"1,keyasint"`
	Gallery     Gallery     `cbor:"2,keyasint"`
	Application Application `cbor:"3,keyasint"`
}

func (c CreateGallery) apply(m *Machine) CreateGalleryAnswer {
	g, a := c.Gallery, c.Application
	known, status := m.once(c.Write, g.Tenant, CreateGalleryOp.Code, g.Tenant.UUID)
	t := m.state.tenants[g.Tenant]
	switch {
	case status == Replayed:
		return m.state.galleryAnswer(Replayed, id.Gallery{UUID: known.IDs[0]}, id.Application{UUID: known.IDs[1]})
	case status != 0:
		return CreateGalleryAnswer{Status: status}
	case t == nil || t.record.State == TenantDeleting:
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
	switch {
	case m.beyond(t, QuotaGalleries, 1):
		return CreateGalleryAnswer{Status: OverGalleries}
	case m.beyond(t, QuotaApplications, 1):
		return CreateGalleryAnswer{Status: OverApplications}
	case m.beyond(t, QuotaSubjects, uint64(g.Size)):
		return CreateGalleryAnswer{Status: OverSubjects}
	}
	g.Created = m.ops.Clock()
	g.Seq = m.state.next()
	m.state.addGallery(g)
	a.Tenant, a.Gallery, a.Created = g.Tenant, g.ID, g.Created
	a.Seq = m.state.next()
	m.state.addApplication(a)
	m.done(c.Write, g.Tenant, CreateGalleryOp.Code, g.Tenant.UUID, g.ID.UUID, a.ID.UUID)
	return m.state.galleryAnswer(Done, g.ID, a.ID)
}

// galleryAnswer returns the records of a gallery and of one of its applications. Either
// may have been deleted since.
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

// UpdateGallery changes the settings of a tenant's gallery. The size may only grow. A larger gallery may
// get more shards, which raises its Epoch. Meta grants no slots to the new shards (Unsettled) before Settle.
type UpdateGallery struct {
	Write   Write      `cbor:"1,keyasint"`
	Tenant  id.Tenant  `cbor:"2,keyasint"`
	Gallery id.Gallery `cbor:"3,keyasint"`
	// Change has the new settings.
	Change settings.Change[settings.Gallery] `cbor:"4,keyasint"`
	// Shards is ShardCount of the new size. It counts only if the size grows, and never lowers
	// the number of shards.
	Shards int `cbor:"7,keyasint,omitempty"`
	// IfMatch is the ETag that the gallery must have, or empty.
	IfMatch string `cbor:"33,keyasint,omitempty"`
}

// GalleryAnswer answers UpdateGallery and DeleteGallery. The status of UpdateGallery is
// one of:
//
//   - Done or Replayed, with the gallery as it is now.
//   - Exists, with the gallery that has the name.
//   - BeingDeleted: a gallery under deletion has the name.
//   - OtherSettings, SizeShrinks, OverSubjects, UnknownGallery, Conflict, OverChanges or OpsFull.
//
// The status of DeleteGallery is Done, also if the gallery is under deletion already,
// Replayed, UnknownGallery, Conflict, OverChanges or OpsFull. The caller then fences all shards of the
// gallery at its Generation. The gallery has no id if ForgetGallery has removed it.
type GalleryAnswer struct {
	Status  Status  `cbor:"1,keyasint"`
	Gallery Gallery `cbor:"2,keyasint"`
}

func (c UpdateGallery) apply(m *Machine) GalleryAnswer {
	_, status := m.once(c.Write, c.Tenant, UpdateGalleryOp.Code, c.Gallery.UUID)
	if status != 0 && status != Replayed {
		return GalleryAnswer{Status: status}
	}
	old := m.state.gallery(c.Gallery)
	switch {
	case old == nil || old.Tenant != c.Tenant:
		return GalleryAnswer{Status: UnknownGallery}
	case status == Replayed:
		return GalleryAnswer{Replayed, *old}
	case c.IfMatch != "" && c.IfMatch != old.ETag():
		return GalleryAnswer{Status: OtherSettings}
	}
	g := c.Changed(*old)
	t := m.state.tenants[old.Tenant]
	switch other, named := t.byName[g.Name]; {
	case g.Size < old.Size:
		return GalleryAnswer{Status: SizeShrinks}
	case named && other != old.ID:
		return m.state.nameTaken(other)
	case g.Size > old.Size && m.beyond(t, QuotaSubjects, uint64(g.Size-old.Size)):
		return GalleryAnswer{Status: OverSubjects}
	}
	delete(t.byName, old.Name)
	t.byName[g.Name] = g.ID
	m.state.galleries[g.ID] = &g
	m.done(c.Write, c.Tenant, UpdateGalleryOp.Code, g.ID.UUID)
	return GalleryAnswer{Done, g}
}

// Changed returns g with the changes of c.
func (c UpdateGallery) Changed(g Gallery) Gallery {
	before := g.Size
	g.Gallery = c.Change.Of(g.Gallery)
	if g.Size > before && c.Shards > g.Shards {
		if g.Settled == 0 {
			g.Settled = g.Shards
		}
		g.Shards = c.Shards
		g.Epoch++
	}
	return g
}

// nameTaken answers with the gallery that has the requested name.
func (st *state) nameTaken(by id.Gallery) GalleryAnswer {
	if other := st.galleries[by]; !other.Deleting {
		return GalleryAnswer{Exists, *other}
	}
	return GalleryAnswer{Status: BeingDeleted}
}

// Settle records that the first shard of a gallery knows an epoch (shardfsm.Widen).
// From then on meta grants slots to all its shards. The status is Done, StaleEpoch if
// the gallery has another epoch, StaleGeneration or UnknownGallery.
type Settle struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Epoch      uint32     `cbor:"3,keyasint"`
}

func (c Settle) apply(m *Machine) Status {
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

// DeleteGallery starts the deletion of a tenant's gallery. It removes the applications,
// the tags and the key, and raises the generation. From then on only Deleting returns
// the gallery. Its name stays taken until ForgetGallery.
type DeleteGallery struct {
	Write   Write      `cbor:"1,keyasint"`
	Tenant  id.Tenant  `cbor:"2,keyasint"`
	Gallery id.Gallery `cbor:"3,keyasint"`
}

func (c DeleteGallery) apply(m *Machine) GalleryAnswer {
	_, status := m.once(c.Write, c.Tenant, DeleteGalleryOp.Code, c.Gallery.UUID)
	old := m.state.galleries[c.Gallery]
	switch {
	case status == Replayed && old == nil:
		return GalleryAnswer{Status: Replayed}
	case status == Replayed:
		return GalleryAnswer{Replayed, *old}
	case status != 0:
		return GalleryAnswer{Status: status}
	case old == nil || old.Tenant != c.Tenant:
		return GalleryAnswer{Status: UnknownGallery}
	case old.Deleting:
		return GalleryAnswer{Done, *old}
	}
	m.state.removeApplications(old.Tenant, old.ID, func(*Application) bool { return true })
	g := m.state.startDeletion(old)
	m.done(c.Write, c.Tenant, DeleteGalleryOp.Code, g.ID.UUID)
	return GalleryAnswer{Done, *g}
}

// startDeletion puts a gallery whose applications were removed under deletion.
func (st *state) startDeletion(old *Gallery) *Gallery {
	g := *old
	g.Deleting, g.WrappedKey = true, nil
	g.Generation++
	st.galleries[g.ID] = &g
	delete(st.grants, g.ID)
	delete(st.tags, g.ID)
	return &g
}

// ForgetGallery ends a deletion after all shards are fenced. With the last gallery of a tenant
// under deletion it removes the tenant. The status is Done, also if
// there is no such gallery, or StaleGeneration if it is not under deletion at that
// generation.
type ForgetGallery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
}

func (c ForgetGallery) apply(m *Machine) Status {
	switch g := m.state.galleries[c.Gallery]; {
	case g == nil:
	case !g.Deleting || g.Generation != c.Generation:
		return StaleGeneration
	default:
		m.state.removeGallery(g)
		m.state.removeIfDeleted(m.state.tenants[g.Tenant])
		m.touch()
	}
	return Done
}
