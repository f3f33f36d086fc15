package fsmtest_test

import (
	"encoding/json"
	"slices"

	"facet/internal/id"
	"facet/internal/settings"
	"facet/raftfsm/metafsm"
)

// made answers with the records of a gallery and an application that exist.
func (m *metaModel) made(s metafsm.Status, g id.Gallery, a id.Application) metafsm.CreateGalleryAnswer {
	i := m.gallery(g)
	if i < 0 {
		return metafsm.CreateGalleryAnswer{Status: metafsm.UnknownGallery}
	}
	out := metafsm.CreateGalleryAnswer{Status: s, Gallery: m.galleries[i]}
	if i := m.application(a); i >= 0 {
		out.Application = m.applications[i]
	}
	return out
}

func (m *metaModel) createGallery(c metafsm.CreateGallery) metafsm.CreateGalleryAnswer {
	g, a := c.Gallery, c.Application
	o, status := m.once(c.Write, g.Tenant, "gallery", g.Tenant.UUID)
	if status == metafsm.Replayed {
		return m.made(status, o.gallery, o.application)
	}
	if status != 0 {
		return metafsm.CreateGalleryAnswer{Status: status}
	}
	if m.tenant(g.Tenant) < 0 || m.leaving(g.Tenant) {
		return metafsm.CreateGalleryAnswer{Status: metafsm.UnknownTenant}
	}
	if !m.wrapped(g.WrappedKey) || !m.wrapped(a.SealedKey) {
		return metafsm.CreateGalleryAnswer{Status: metafsm.OtherKey}
	}
	for _, old := range m.galleries {
		if old.Tenant != g.Tenant || old.Name != g.Name {
			continue
		}
		if old.Deleting {
			return metafsm.CreateGalleryAnswer{Status: metafsm.BeingDeleted}
		}
		var oldest id.Application
		if i := slices.IndexFunc(m.applications, func(a metafsm.Application) bool { return a.Gallery == old.ID }); i >= 0 {
			oldest = m.applications[i].ID
		}
		return m.made(metafsm.Exists, old.ID, oldest)
	}
	if m.taken(a) || slices.ContainsFunc(m.galleries, func(x metafsm.Gallery) bool { return x.ID == g.ID }) {
		return metafsm.CreateGalleryAnswer{Status: metafsm.Conflict}
	}
	switch {
	case m.beyond(g.Tenant, metafsm.QuotaGalleries, 1):
		return metafsm.CreateGalleryAnswer{Status: metafsm.OverGalleries}
	case m.beyond(g.Tenant, metafsm.QuotaApplications, 1):
		return metafsm.CreateGalleryAnswer{Status: metafsm.OverApplications}
	case m.beyond(g.Tenant, metafsm.QuotaSubjects, uint64(g.Size)):
		return metafsm.CreateGalleryAnswer{Status: metafsm.OverSubjects}
	}
	g.Created, g.Seq = m.clock, m.next()
	a.Tenant, a.Gallery, a.Created, a.Seq = g.Tenant, g.ID, m.clock, m.next()
	m.galleries, m.applications = append(m.galleries, g), append(m.applications, a)
	o.gallery, o.application = g.ID, a.ID
	m.remember(o)
	return metafsm.CreateGalleryAnswer{Status: metafsm.Done, Gallery: g, Application: a}
}

func (m *metaModel) updateGallery(c metafsm.UpdateGallery) metafsm.GalleryAnswer {
	o, status := m.once(c.Write, c.Tenant, "update gallery", c.Gallery.UUID)
	if status != 0 && status != metafsm.Replayed {
		return metafsm.GalleryAnswer{Status: status}
	}
	i := m.gallery(c.Gallery)
	switch {
	case i < 0 || m.galleries[i].Tenant != c.Tenant:
		return metafsm.GalleryAnswer{Status: metafsm.UnknownGallery}
	case status == metafsm.Replayed:
		return metafsm.GalleryAnswer{Status: status, Gallery: m.galleries[i]}
	case c.IfMatch != "" && c.IfMatch != m.galleries[i].ETag():
		return metafsm.GalleryAnswer{Status: metafsm.OtherSettings}
	}
	g, to := &m.galleries[i], merged(m.galleries[i].Gallery, c.Change)
	if to.Size < g.Size {
		return metafsm.GalleryAnswer{Status: metafsm.SizeShrinks}
	}
	for _, other := range m.galleries {
		if other.ID == c.Gallery || other.Tenant != c.Tenant || other.Name != to.Name {
			continue
		}
		if other.Deleting {
			return metafsm.GalleryAnswer{Status: metafsm.BeingDeleted}
		}
		return metafsm.GalleryAnswer{Status: metafsm.Exists, Gallery: other}
	}
	if to.Size > g.Size && m.beyond(g.Tenant, metafsm.QuotaSubjects, uint64(to.Size-g.Size)) {
		return metafsm.GalleryAnswer{Status: metafsm.OverSubjects}
	}
	if to.Size > g.Size && c.Shards > g.Shards {
		if g.Settled == 0 {
			g.Settled = g.Shards
		}
		g.Shards = c.Shards
		g.Epoch++
	}
	g.Gallery = to
	m.remember(o)
	return metafsm.GalleryAnswer{Status: metafsm.Done, Gallery: *g}
}

func (m *metaModel) deleteGallery(c metafsm.DeleteGallery) metafsm.GalleryAnswer {
	o, status := m.once(c.Write, c.Tenant, "delete gallery", c.Gallery.UUID)
	i := slices.IndexFunc(m.galleries, func(g metafsm.Gallery) bool { return g.ID == c.Gallery })
	switch {
	case status == metafsm.Replayed && i < 0:
		return metafsm.GalleryAnswer{Status: status}
	case status == metafsm.Replayed:
		return metafsm.GalleryAnswer{Status: status, Gallery: m.galleries[i]}
	case status != 0:
		return metafsm.GalleryAnswer{Status: status}
	case i < 0 || m.galleries[i].Tenant != c.Tenant:
		return metafsm.GalleryAnswer{Status: metafsm.UnknownGallery}
	}
	if g := &m.galleries[i]; !g.Deleting {
		g.Deleting, g.WrappedKey = true, nil
		g.Generation++
		m.applications = slices.DeleteFunc(m.applications, func(a metafsm.Application) bool { return a.Gallery == g.ID })
		delete(m.grants, g.ID)
		delete(m.tags, g.ID)
		m.remember(o)
	}
	return metafsm.GalleryAnswer{Status: metafsm.Done, Gallery: m.galleries[i]}
}

func (m *metaModel) forgetGallery(c metafsm.ForgetGallery) metafsm.StatusAnswer {
	i := slices.IndexFunc(m.galleries, func(g metafsm.Gallery) bool { return g.ID == c.Gallery })
	if i < 0 {
		return metafsm.StatusAnswer{Status: metafsm.Done}
	}
	if g := m.galleries[i]; !g.Deleting || g.Generation != c.Generation {
		return metafsm.StatusAnswer{Status: metafsm.StaleGeneration}
	}
	of := m.galleries[i].Tenant
	m.galleries = slices.Delete(m.galleries, i, i+1)
	m.leave(of)
	return metafsm.StatusAnswer{Status: metafsm.Done}
}

func (m *metaModel) createApplication(c metafsm.CreateApplication) metafsm.ApplicationAnswer {
	a := c.Application
	o, status := m.once(c.Write, a.Tenant, "application", a.Tenant.UUID)
	switch {
	case status == metafsm.Replayed:
		if i := m.application(o.application); i >= 0 {
			return metafsm.ApplicationAnswer{Status: status, Application: m.applications[i]}
		}
		return metafsm.ApplicationAnswer{Status: metafsm.UnknownApplication}
	case status != 0:
		return metafsm.ApplicationAnswer{Status: status}
	}
	if i := m.gallery(a.Gallery); i < 0 || m.galleries[i].Tenant != a.Tenant {
		return metafsm.ApplicationAnswer{Status: metafsm.UnknownGallery}
	}
	if m.taken(a) {
		return metafsm.ApplicationAnswer{Status: metafsm.Conflict}
	}
	if !m.wrapped(a.SealedKey) {
		return metafsm.ApplicationAnswer{Status: metafsm.OtherKey}
	}
	if m.beyond(a.Tenant, metafsm.QuotaApplications, 1) {
		return metafsm.ApplicationAnswer{Status: metafsm.OverApplications}
	}
	a.Created, a.Seq = m.clock, m.next()
	m.applications = append(m.applications, a)
	o.application = a.ID
	m.remember(o)
	return metafsm.ApplicationAnswer{Status: metafsm.Done, Application: a}
}

func (m *metaModel) updateApplication(c metafsm.UpdateApplication) metafsm.ApplicationAnswer {
	o, status := m.once(c.Write, c.Tenant, "update application", c.Application.UUID)
	if status != 0 && status != metafsm.Replayed {
		return metafsm.ApplicationAnswer{Status: status}
	}
	i := m.application(c.Application)
	if i < 0 || m.applications[i].Tenant != c.Tenant {
		return metafsm.ApplicationAnswer{Status: metafsm.UnknownApplication}
	}
	if status == 0 {
		a := &m.applications[i]
		if c.IfMatch != "" && c.IfMatch != a.ETag() {
			return metafsm.ApplicationAnswer{Status: metafsm.OtherSettings}
		}
		a.Application = merged(a.Application, c.Change)
		m.remember(o)
		status = metafsm.Done
	}
	return metafsm.ApplicationAnswer{Status: status, Application: m.applications[i]}
}

// merged returns old with the change, by way of JSON.
func merged[T any](old T, c settings.Change[T]) T {
	all, to := recoded[map[string]json.RawMessage](old), recoded[map[string]json.RawMessage](c.To)
	for _, name := range settings.Names[T]() {
		if !c.Has(name) {
			continue
		}
		if delete(all, name); to[name] != nil {
			all[name] = to[name]
		}
	}
	return recoded[T](all)
}

// recoded returns the T with the JSON of v.
func recoded[T any](v any) (out T) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

func (m *metaModel) deleteApplication(c metafsm.DeleteApplication) metafsm.StatusAnswer {
	o, status := m.once(c.Write, c.Tenant, "delete application", c.Application.UUID)
	if status != 0 {
		return metafsm.StatusAnswer{Status: status}
	}
	i := m.application(c.Application)
	if i < 0 || m.applications[i].Tenant != c.Tenant {
		return metafsm.StatusAnswer{Status: metafsm.UnknownApplication}
	}
	m.applications = slices.Delete(m.applications, i, i+1)
	m.remember(o)
	return metafsm.StatusAnswer{Status: metafsm.Done}
}

// changeTags applies one of the three commands on tags.
func (m *metaModel) changeTags(w metafsm.Write, kind string, g id.Gallery, change func(*modelTags) (metafsm.Status, uint32)) metafsm.TagAnswer {
	var by id.Tenant
	if i := m.gallery(g); i >= 0 {
		by = m.galleries[i].Tenant
	}
	o, status := m.once(w, by, kind, g.UUID)
	if status == metafsm.Replayed {
		return metafsm.TagAnswer{Status: status, Identity: o.identity}
	}
	if status != 0 {
		return metafsm.TagAnswer{Status: status}
	}
	if m.gallery(g) < 0 {
		return metafsm.TagAnswer{Status: metafsm.UnknownGallery}
	}
	if m.tags[g] == nil {
		m.tags[g] = &modelTags{}
	}
	status, o.identity = change(m.tags[g])
	if status == metafsm.Done {
		m.remember(o)
	}
	return metafsm.TagAnswer{Status: status, Identity: o.identity}
}

// take removes the tag with a name from a list.
func take(from *[]metafsm.Tag, name string) (metafsm.Tag, bool) {
	for i, t := range *from {
		if t.Name == name {
			*from = append((*from)[:i:i], (*from)[i+1:]...)
			return t, true
		}
	}
	return metafsm.Tag{}, false
}

func (t *modelTags) find(name string) int {
	return slices.IndexFunc(t.live, func(x metafsm.Tag) bool { return x.Name == name })
}

func (t *modelTags) create(name string) (metafsm.Status, uint32) {
	if t.find(name) >= 0 {
		return metafsm.Exists, 0
	}
	tag, ok := take(&t.dormant, name)
	if !ok {
		t.last++
		tag = metafsm.Tag{Name: name, Identity: t.last}
	}
	t.live = append(t.live, tag)
	return metafsm.Done, tag.Identity
}

func (t *modelTags) rename(from, to string) (metafsm.Status, uint32) {
	i := t.find(from)
	switch {
	case i < 0:
		return metafsm.UnknownTag, 0
	case from != to && t.find(to) >= 0:
		return metafsm.Exists, 0
	}
	take(&t.dormant, to)
	t.live[i].Name = to
	return metafsm.Done, t.live[i].Identity
}

func (t *modelTags) delete(name string) (metafsm.Status, uint32) {
	tag, ok := take(&t.live, name)
	if !ok {
		return metafsm.UnknownTag, 0
	}
	t.dormant = append(t.dormant, tag)
	return metafsm.Done, tag.Identity
}
