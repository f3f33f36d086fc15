package httpapi

import (
	"context"
	"slices"
	"strings"

	"facet/internal/id"
	"facet/router"
)

// application returns a new application. Its API key is 40 characters made of its
// name.
func (m *memory) application(a router.NewApplication, w router.Write) router.Application {
	made := router.Application{
		ID: id.Application{UUID: id.Derive(nil, "application", w.Operation, 0)}, Gallery: a.Gallery,
		Name: a.Name, Description: a.Description, MinimumQuality: a.MinimumQuality,
		APIKey:          (strings.ReplaceAll(a.Name, " ", "") + strings.Repeat("x", 40))[:40],
		VerifyThreshold: a.VerifyThreshold, GuardThreshold: a.GuardThreshold, Guard: a.Guard,
	}
	m.applications = append(m.applications, made)
	return made
}

func (m *memory) CreateGallery(_ context.Context, tenant id.Tenant, w router.Write, n router.NewGallery) (router.Gallery, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, err := m.once(w, func() (any, error) {
		for _, g := range m.galleries {
			if g.Name == n.Name && m.owners[g.ID] == tenant {
				return nil, router.Errorf(router.Duplicate, "", "The gallery exists; its API key is %s.", m.of(g.ID)[0].APIKey)
			}
		}
		g := router.Gallery{
			ID: id.Gallery{UUID: id.Derive(nil, "gallery", w.Operation, 0)}, Name: n.Name, Description: n.Description, Size: n.Size,
		}
		m.owners[g.ID] = tenant
		m.galleries = append(m.galleries, &memoryGallery{Gallery: g, events: map[id.Event]*memoryEvent{}})
		g.Applications = []router.Application{m.application(router.NewApplication{
			Gallery: g.ID, Name: n.Name, Description: n.Description, MinimumQuality: n.MinimumQuality,
			VerifyThreshold: router.ThresholdDefault, GuardThreshold: router.ThresholdDefault,
		}, w)}
		return g, nil
	})
	if err != nil {
		return router.Gallery{}, err
	}
	return value.(router.Gallery), nil
}

// of returns the applications of a gallery.
func (m *memory) of(g id.Gallery) []router.Application {
	return slices.DeleteFunc(slices.Clone(m.applications), func(a router.Application) bool { return a.Gallery != g })
}

// view returns a gallery with its count.
func (m *memory) view(g *memoryGallery) router.Gallery {
	view := g.Gallery
	view.Count = len(g.events)
	return view
}

// gallery returns a gallery that an API key named.
func (m *memory) gallery(g id.Gallery) *memoryGallery {
	i := slices.IndexFunc(m.galleries, func(o *memoryGallery) bool { return o.ID == g })
	return m.galleries[i]
}

// calling returns the application that an API key named.
func (m *memory) calling(access router.Access) router.Application {
	i := slices.IndexFunc(m.applications, func(a router.Application) bool { return a.ID == access.Application })
	return m.applications[i]
}

// owned finds a gallery of tenant.
func (m *memory) owned(tenant id.Tenant, gallery id.Gallery) (*memoryGallery, error) {
	if owner, ok := m.owners[gallery]; !ok || owner != tenant {
		return nil, router.Errorf(router.NotFound, "", "Gallery not found.")
	}
	return m.gallery(gallery), nil
}

func (m *memory) Galleries(_ context.Context, tenant id.Tenant) ([]router.Gallery, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []router.Gallery
	for _, g := range m.galleries {
		if m.owners[g.ID] == tenant {
			list = append(list, m.view(g))
		}
	}
	return list, nil
}

func (m *memory) Gallery(_ context.Context, tenant id.Tenant, gallery id.Gallery) (router.Gallery, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g, err := m.owned(tenant, gallery)
	if err != nil {
		return router.Gallery{}, err
	}
	view := m.view(g)
	view.Applications = m.of(gallery)
	return view, nil
}

func (m *memory) CreateApplication(_ context.Context, tenant id.Tenant, w router.Write, a router.NewApplication) (router.Application, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if owner, ok := m.owners[a.Gallery]; !ok || owner != tenant {
		return router.Application{}, router.Errorf(router.InvalidRequest, router.ReasonUnknownGallery, "There is no such gallery.")
	}
	value, err := m.once(w, func() (any, error) { return m.application(a, w), nil })
	if err != nil {
		return router.Application{}, err
	}
	return value.(router.Application), nil
}

func (m *memory) Applications(_ context.Context, tenant id.Tenant) ([]router.Application, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.applications), func(a router.Application) bool { return m.owners[a.Gallery] != tenant }), nil
}

func (m *memory) Application(_ context.Context, tenant id.Tenant, application id.Application) (router.Application, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.index(tenant, application)
	if err != nil {
		return router.Application{}, err
	}
	return m.applications[i], nil
}

func (m *memory) UpdateGallery(
	_ context.Context, tenant id.Tenant, w router.Write, gallery id.Gallery, p router.GalleryPatch,
) (router.Gallery, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, err := m.once(w, func() (any, error) { return m.updateGallery(tenant, gallery, p) })
	if err != nil {
		return router.Gallery{}, err
	}
	return value.(router.Gallery), nil
}

func (m *memory) updateGallery(tenant id.Tenant, gallery id.Gallery, p router.GalleryPatch) (router.Gallery, error) {
	g, err := m.owned(tenant, gallery)
	if err != nil {
		return router.Gallery{}, err
	}
	for _, other := range m.galleries {
		if p.Name != nil && other.Name == *p.Name && other != g && m.owners[other.ID] == tenant {
			return router.Gallery{}, router.Errorf(router.Duplicate, "", "There is a gallery with this name: %s.", other.ID)
		}
	}
	if p.Size != nil && *p.Size < g.Size {
		return router.Gallery{}, router.Errorf(router.InvalidRequest, "", "A gallery's size can only increase.")
	}
	assign(&g.Name, p.Name)
	assign(&g.Description, p.Description)
	assign(&g.Size, p.Size)
	return g.Gallery, nil
}

// assign sets *to to *from, unless from is nil.
func assign[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func (m *memory) DeleteGallery(_ context.Context, tenant id.Tenant, gallery id.Gallery) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.owned(tenant, gallery); err != nil {
		return err
	}
	m.galleries = slices.DeleteFunc(m.galleries, func(g *memoryGallery) bool { return g.ID == gallery })
	m.applications = slices.DeleteFunc(m.applications, func(a router.Application) bool { return a.Gallery == gallery })
	delete(m.owners, gallery)
	return nil
}

// index finds an application of tenant.
func (m *memory) index(tenant id.Tenant, application id.Application) (int, error) {
	i := slices.IndexFunc(m.applications, func(a router.Application) bool { return a.ID == application && m.owners[a.Gallery] == tenant })
	if i < 0 {
		return 0, router.Errorf(router.NotFound, "", "Application not found.")
	}
	return i, nil
}

func (m *memory) UpdateApplication(
	_ context.Context, tenant id.Tenant, w router.Write, application id.Application, p router.ApplicationPatch,
) (router.Application, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, err := m.once(w, func() (any, error) { return m.updateApplication(tenant, application, p) })
	if err != nil {
		return router.Application{}, err
	}
	return value.(router.Application), nil
}

func (m *memory) updateApplication(tenant id.Tenant, application id.Application, p router.ApplicationPatch) (router.Application, error) {
	i, err := m.index(tenant, application)
	if err != nil {
		return router.Application{}, err
	}
	a := &m.applications[i]
	assign(&a.Name, p.Name)
	assign(&a.Description, p.Description)
	assign(&a.MinimumQuality, p.MinimumQuality)
	assign(&a.VerifyThreshold, p.VerifyThreshold)
	assign(&a.Guard, p.Guard)
	assign(&a.GuardThreshold, p.GuardThreshold)
	return *a, nil
}

func (m *memory) DeleteApplication(_ context.Context, tenant id.Tenant, application id.Application) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.index(tenant, application)
	if err == nil {
		m.applications = slices.Delete(m.applications, i, i+1)
	}
	return err
}
