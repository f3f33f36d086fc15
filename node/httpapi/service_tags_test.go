package httpapi

import (
	"context"
	"slices"

	"facet/router"
)

// tagsOfGalleryMax is the number of live tags of a gallery (interface, §8).
const tagsOfGalleryMax = 64

// live finds tags by name. nil stays nil.
func (m *memory) live(access router.Access, names []string) ([]*memoryTag, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if names == nil {
		return nil, nil
	}
	g := m.gallery(access.Gallery)
	tags := []*memoryTag{}
	for _, name := range names {
		t := g.tag(name)
		if t == nil || !t.live {
			return nil, router.Errorf(router.InvalidRequest, router.ReasonUnknownTag, "There is no tag %s.", name)
		}
		tags = append(tags, t)
	}
	return tags, nil
}

// tag finds a tag, a sleeping one too, or returns nil.
func (g *memoryGallery) tag(name string) *memoryTag {
	if i := slices.IndexFunc(g.tags, func(t *memoryTag) bool { return t.name == name }); i >= 0 {
		return g.tags[i]
	}
	return nil
}

// names returns the names of the live tags.
func (g *memoryGallery) names() []string {
	var names []string
	for _, t := range g.tags {
		if t.live {
			names = append(names, t.name)
		}
	}
	return names
}

func (m *memory) Tags(_ context.Context, access router.Access) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gallery(access.Gallery).names(), nil
}

func (m *memory) CreateTag(_ context.Context, access router.Access, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.gallery(access.Gallery)
	t := g.tag(name)
	switch {
	case t != nil && t.live:
		return duplicateTag(name)
	case len(g.names()) >= tagsOfGalleryMax:
		return router.Errorf(router.InvalidRequest, router.ReasonTagLimit, "A gallery has at most %d tags.", tagsOfGalleryMax)
	case t != nil: // the events it was attached to have it again
		t.live = true
		g.drop(t)
	default:
		t = &memoryTag{name: name, live: true}
	}
	g.tags = append(g.tags, t)
	return nil
}

// drop removes t from the list.
func (g *memoryGallery) drop(t *memoryTag) {
	g.tags = slices.DeleteFunc(g.tags, func(other *memoryTag) bool { return other == t })
}

func (m *memory) RenameTag(_ context.Context, access router.Access, from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.gallery(access.Gallery)
	t, other := g.tag(from), g.tag(to)
	switch {
	case t == nil || !t.live:
		return router.Errorf(router.NotFound, router.ReasonUnknownTag, "Tag not found.")
	case other == t:
		return nil
	case other != nil && other.live:
		return duplicateTag(to)
	case other != nil:
		g.drop(other)
	}
	t.name = to
	return nil
}

// duplicateTag returns the answer to a name that is taken.
func duplicateTag(name string) error {
	return router.Errorf(router.Duplicate, "", "There is a tag %s.", name)
}

func (m *memory) DeleteTag(_ context.Context, access router.Access, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.gallery(access.Gallery).tag(name)
	if t == nil || !t.live {
		return router.Errorf(router.NotFound, router.ReasonUnknownTag, "Tag not found.")
	}
	t.live = false
	return nil
}
