package metafsm

import (
	"bytes"
	"slices"

	"facet/internal/id"
)

func (c Found) apply(m *Machine) FoundAnswer {
	a := FoundAnswer{Status: Exists}
	if m.state.cluster == nil {
		a.Status = Done
		m.state.cluster = &c.Cluster
		m.touch()
	}
	a.Cluster = *m.state.cluster
	return a
}

func (c PutNode) apply(m *Machine) PutNodeAnswer {
	if c.Node.Knows() < m.state.levelNow() {
		return PutNodeAnswer{TooOld}
	}
	old := m.state.nodes[c.Node.ID]
	if old != nil {
		c.Node.Joined, c.Node.State, c.Node.Heir = old.Joined, old.State, old.Heir
	}
	if old == nil || *old != c.Node {
		m.state.nodes[c.Node.ID] = &c.Node
		m.touch()
	}
	return PutNodeAnswer{Done}
}

func (c PutShards) apply(m *Machine) PutShardsAnswer {
	now := m.state.shards
	a := PutShardsAnswer{Status: StaleEpoch, Map: *now}
	switch {
	case now.Epoch == c.Previous:
		for i, v := range c.Shards {
			old, known := now.Shard(v.Shard)
			c.Shards[i].Moved = old.Moved || known && !sameMembers(old.Voters, v.Voters)
		}
		m.state.shards = &ShardMap{Epoch: c.Previous + 1, Shards: c.Shards}
		a = PutShardsAnswer{Status: Done, Map: *m.state.shards}
		m.touch()
	case now.Epoch == c.Previous+1 && slices.EqualFunc(now.Shards, c.Shards, equalVoters):
		a.Status = Done // a retry
	}
	return a
}

func equalVoters(a, b ShardVoters) bool {
	return a.Shard == b.Shard && a.Moving == b.Moving && slices.Equal(a.Voters, b.Voters) && slices.Equal(a.Leaving, b.Leaving)
}

func (c CreateTenant) apply(m *Machine) CreateTenantAnswer {
	if r := m.state.restoration; r != nil && r.Whole && !r.Done {
		return CreateTenantAnswer{Status: Restoring}
	}
	known, status := m.once(c.Write, codeCreateTenant, [16]byte{})
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
	m.done(c.Write, codeCreateTenant, [16]byte{}, c.Tenant.ID.UUID)
	return CreateTenantAnswer{Done, c.Tenant}
}

func (c PutAccessKey) apply(m *Machine) PutAccessKeyAnswer {
	return PutAccessKeyAnswer{c.do(m)}
}

func (c PutAccessKey) do(m *Machine) Status {
	k := c.Key
	old := m.state.keys[k.ID]
	switch {
	case m.state.tenants[k.Tenant] == nil:
		return UnknownTenant
	case !m.state.wrapped(k.SealedSecret):
		return OtherKey
	case old != nil && old.Tenant != k.Tenant:
		return Conflict
	case old != nil:
		k.Created = old.Created
		if old.Role == k.Role && old.State == k.State && bytes.Equal(old.SealedSecret, k.SealedSecret) {
			return Done
		}
	}
	m.state.keys[k.ID] = &k
	m.touch()
	return Done
}

func (c CreateGallery) apply(m *Machine) CreateGalleryAnswer {
	g, a := c.Gallery, c.Application
	known, status := m.once(c.Write, codeCreateGallery, g.Tenant.UUID)
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
	m.done(c.Write, codeCreateGallery, g.Tenant.UUID, g.ID.UUID, a.ID.UUID)
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

func (c CreateApplication) apply(m *Machine) CreateApplicationAnswer {
	a := c.Application
	known, status := m.once(c.Write, codeCreateApplication, a.Tenant.UUID)
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
	m.done(c.Write, codeCreateApplication, a.Tenant.UUID, a.ID.UUID)
	return CreateApplicationAnswer{Done, a}
}
