package metafsm

import (
	"slices"

	"facet/internal/id"
)

func (c UpdateGallery) apply(m *Machine) UpdateGalleryAnswer {
	_, status := m.once(c.Write, codeUpdateGallery, c.Gallery.UUID)
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
	m.done(c.Write, codeUpdateGallery, g.ID.UUID)
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

func (c DeleteGallery) apply(m *Machine) DeleteGalleryAnswer {
	_, status := m.once(c.Write, codeDeleteGallery, c.Gallery.UUID)
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
	m.done(c.Write, codeDeleteGallery, g.ID.UUID)
	return DeleteGalleryAnswer{Done, g}
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

func (c UpdateApplication) apply(m *Machine) UpdateApplicationAnswer {
	_, status := m.once(c.Write, codeUpdateApplication, c.Application.UUID)
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
	m.done(c.Write, codeUpdateApplication, a.ID.UUID)
	return UpdateApplicationAnswer{Done, a}
}

// change sets a field to a value that is given.
func change[T any](field, to *T) {
	if to != nil {
		*field = *to
	}
}

func (c DeleteApplication) apply(m *Machine) DeleteApplicationAnswer {
	return DeleteApplicationAnswer{c.do(m)}
}

func (c DeleteApplication) do(m *Machine) Status {
	if _, status := m.once(c.Write, codeDeleteApplication, c.Application.UUID); status != 0 {
		return status
	}
	a := m.state.applications[c.Application]
	if a == nil || a.Tenant != c.Tenant {
		return UnknownApplication
	}
	m.state.removeApplications(a.Tenant, a.Gallery, func(of *Application) bool { return of.ID == a.ID })
	m.done(c.Write, codeDeleteApplication, a.ID.UUID)
	return Done
}

func (c DeleteAccessKey) apply(m *Machine) DeleteAccessKeyAnswer {
	a := DeleteAccessKeyAnswer{Done}
	switch k := m.state.keys[c.Key]; {
	case k == nil:
	case k.Tenant != c.Tenant:
		a.Status = Conflict
	default:
		delete(m.state.keys, c.Key)
		m.touch()
	}
	return a
}

func (c Grant) apply(m *Machine) GrantAnswer {
	g, status := m.state.current(c.Gallery, c.Generation)
	a := GrantAnswer{Status: status}
	switch {
	case status != Done:
	case m.state.unsettled(g, c.Shard):
		a.Status = Unsettled
	default:
		total, changed := m.state.grant(g, c.Shard, c.Have, c.Want)
		a.Total = total
		if changed {
			m.touch()
		}
	}
	return a
}

// unsettled tells whether a gallery has grown over a shard that must not have
// slots yet.
func (st *state) unsettled(g *Gallery, shard id.Shard) bool {
	if g.Settled == 0 || st.cluster == nil {
		return false
	}
	return !slices.Contains(ShardsOf(g.ID, g.Settled, st.cluster.Shards), shard)
}

func (c Reclaim) apply(m *Machine) ReclaimAnswer {
	g, status := m.state.current(c.Gallery, c.Generation)
	a := ReclaimAnswer{Status: status}
	if status == Done {
		changed, ok := m.state.reclaim(g, c.Shard, c.Returned)
		if !ok {
			a.Status = Conflict
		}
		if changed {
			m.touch()
		}
		a.Free = m.state.free(g)
	}
	return a
}
