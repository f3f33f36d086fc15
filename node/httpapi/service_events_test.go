package httpapi

import (
	"context"
	"slices"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/router"
)

// enrolled is a face that is good enough to be registered.
type enrolled struct {
	person     string
	tags       []*memoryTag // nil when none were given
	attributes engine.Attributes
}

// enrol reads the image and the tags of a registration or update.
func (m *memory) enrol(ctx context.Context, access router.Access, image []byte, names []string) (enrolled, error) {
	tags, err := m.live(access, names)
	if err != nil {
		return enrolled{}, err
	}
	person, attributes, err := m.one(ctx, image)
	if err != nil {
		return enrolled{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if float64(attributes.Quality) < m.calling(access).MinimumQuality {
		return enrolled{}, router.Errorf(router.PoorQuality, "", "The face's quality is too low.")
	}
	return enrolled{person, tags, attributes}, nil
}

// write runs one write of a face, unless the same write ran before.
func (m *memory) write(w router.Write, f enrolled, run func() (id.Subject, id.Event, error)) (router.Registered, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, err := m.once(w, func() (any, error) {
		m.clock = m.clock.Add(time.Second)
		subject, event, err := run()
		if err != nil { // nothing happened
			m.clock = m.clock.Add(-time.Second)
		}
		return router.Registered{Subject: subject, Event: event, Attributes: f.attributes}, err
	})
	if err != nil {
		return router.Registered{}, err
	}
	return value.(router.Registered), nil
}

// room removes the oldest deleted entry when another one would be too many.
func (g *memoryGallery) room() error {
	if len(g.entries) < g.Size {
		return nil
	}
	oldest := slices.IndexFunc(g.entries, func(e router.Entry) bool { return e.Deleted })
	if oldest < 0 {
		return router.Errorf(router.InvalidRequest, router.ReasonGalleryFull, "The gallery is full.")
	}
	g.entries = slices.Delete(g.entries, oldest, oldest+1)
	return nil
}

// add registers a new event.
func (g *memoryGallery) add(subject id.Subject, event id.Event, f enrolled, now time.Time) error {
	if err := g.room(); err != nil {
		return err
	}
	g.entries = append(g.entries, router.Entry{Subject: subject, Event: event, Updated: now})
	g.events[event] = &memoryEvent{subject: subject, person: f.person, first: now, tags: f.tags}
	return nil
}

// replace replaces the face of an active event: its entry becomes a deleted one,
// and a new one is appended.
func (g *memoryGallery) replace(event id.Event, f enrolled, now time.Time) error {
	e := g.events[event]
	g.remove(event)
	i := slices.IndexFunc(g.entries, func(old router.Entry) bool { return old.Event == event && old.Deleted })
	old := g.entries[i]
	old.Updated = now
	g.entries = append(slices.Delete(g.entries, i, i+1), old)
	if err := g.room(); err != nil {
		return err
	}
	if f.tags == nil {
		f.tags = e.tags
	}
	g.entries = append(g.entries, router.Entry{Subject: e.subject, Event: event, Updated: now})
	g.events[event] = &memoryEvent{subject: e.subject, person: f.person, first: e.first, tags: f.tags}
	return nil
}

// remove unregisters an active event.
func (g *memoryGallery) remove(event id.Event) {
	delete(g.events, event)
	for i := range g.entries {
		if g.entries[i].Event == event {
			g.entries[i].Deleted = true
		}
	}
}

// active returns the events of a subject in order of registration.
func (g *memoryGallery) active(subject id.Subject) ([]id.Event, error) {
	var list []id.Event
	for event, e := range g.events {
		if e.subject == subject {
			list = append(list, event)
		}
	}
	if list == nil {
		return nil, router.Errorf(router.NotFound, router.ReasonSubjectNotFound, "Subject not found.")
	}
	slices.SortFunc(list, func(a, b id.Event) int { return g.events[a].first.Compare(g.events[b].first) })
	return list, nil
}

// holds reports whether event is an active one of subject.
func (g *memoryGallery) holds(subject id.Subject, event id.Event) error {
	if e, ok := g.events[event]; !ok || e.subject != subject {
		return router.Errorf(router.NotFound, "", "Event not found.")
	}
	return nil
}

func (m *memory) Register(ctx context.Context, r router.Registration) (router.Registered, error) {
	f, err := m.enrol(ctx, r.Access, r.Image, r.Tags)
	if err != nil {
		return router.Registered{}, err
	}
	return m.write(r.Write, f, func() (id.Subject, id.Event, error) {
		subject := id.Subject{UUID: id.Derive(nil, "subject", r.Write.Operation, 1)}
		event := id.Event{UUID: id.Derive(nil, "event", r.Write.Operation, 1)}
		return subject, event, m.gallery(r.Access.Gallery).add(subject, event, f, m.clock)
	})
}

func (m *memory) RegisterEvent(ctx context.Context, e router.Enrolment) (router.Registered, error) {
	f, err := m.enrol(ctx, e.Access, e.Image, e.Tags)
	if err != nil {
		return router.Registered{}, err
	}
	return m.write(e.Write, f, func() (id.Subject, id.Event, error) {
		g := m.gallery(e.Access.Gallery)
		if _, err := g.active(e.Subject); err != nil {
			return e.Subject, id.Event{}, err
		}
		event := id.Event{UUID: id.Derive(nil, "event", e.Write.Operation, 1)}
		return e.Subject, event, g.add(e.Subject, event, f, m.clock)
	})
}

func (m *memory) UpdateSubject(ctx context.Context, e router.Enrolment) (router.Registered, error) {
	f, err := m.enrol(ctx, e.Access, e.Image, e.Tags)
	if err != nil {
		return router.Registered{}, err
	}
	return m.write(e.Write, f, func() (id.Subject, id.Event, error) {
		g := m.gallery(e.Access.Gallery)
		events, err := g.active(e.Subject)
		if err != nil {
			return e.Subject, id.Event{}, err
		}
		return e.Subject, events[0], g.replace(events[0], f, m.clock)
	})
}

func (m *memory) UpdateEvent(ctx context.Context, e router.Enrolment) (router.Registered, error) {
	f, err := m.enrol(ctx, e.Access, e.Image, e.Tags)
	if err != nil {
		return router.Registered{}, err
	}
	return m.write(e.Write, f, func() (id.Subject, id.Event, error) {
		g := m.gallery(e.Access.Gallery)
		if err := g.holds(e.Subject, e.Event); err != nil {
			return e.Subject, e.Event, err
		}
		return e.Subject, e.Event, g.replace(e.Event, f, m.clock)
	})
}

func (m *memory) Events(_ context.Context, access router.Access, subject id.Subject) ([]id.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gallery(access.Gallery).active(subject)
}

func (m *memory) Unregister(_ context.Context, access router.Access, subject id.Subject) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.gallery(access.Gallery)
	events, err := g.active(subject)
	for _, event := range events {
		g.remove(event)
	}
	return err
}

func (m *memory) UnregisterEvent(_ context.Context, access router.Access, subject id.Subject, event id.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.gallery(access.Gallery)
	if err := g.holds(subject, event); err != nil {
		return err
	}
	g.remove(event)
	return nil
}

func (m *memory) Subjects(_ context.Context, access router.Access, p router.Page) (router.Listing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Clone(m.gallery(access.Gallery).entries)
	if p.Order == router.Descending {
		slices.Reverse(all)
	}
	total := len(all)
	all = all[min(p.Start, total):]
	return router.Listing{Entries: all[:min(p.Length, len(all))], Total: total}, nil
}
