package erasing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"facet.internal/client"
	"facet/cmd/facet/table"
	"facet/internal/id"
)

// Person says whom to erase. One field is set.
type Person struct {
	Subjects []string // ids
	// Gone reports that Subjects may be gone already, as expired ones are. Find then lists them in
	// each gallery: none tells where they were.
	Gone bool
	// ExternalID is the tenant's own id of the person.
	ExternalID string
	Photo      []byte // an image file with one face
	// Threshold is the lowest score with the photo; nil is the service's.
	Threshold *int
}

// Found is a subject to erase.
type Found struct {
	gallery client.Gallery
	client  *client.Client // of the gallery
	Subject string
	// ExternalID is the tenant's own id, for the list alone: the receipt does not have it.
	ExternalID string
	Score      int // with the photo; 0 without one
	Events     int
}

// Find returns the subjects of the person in all galleries of the client's tenant. A gallery that
// can't be searched is an error: the list would not be complete.
func Find(ctx context.Context, c *client.Client, p Person) (list []Found, err error) {
	galleries, err := c.Galleries(ctx)
	if errors.Is(err, client.ErrForbidden) {
		return nil, fmt.Errorf("list the galleries: %w: this needs an access key of the role admin", err)
	}
	if err != nil {
		return nil, fmt.Errorf("list the galleries: %w", err)
	}
	for _, g := range galleries {
		if g, err = c.Gallery(ctx, g.ID); err != nil {
			return nil, fmt.Errorf("look at a gallery: %w", err)
		}
		if len(g.Applications) == 0 {
			return nil, fmt.Errorf("the gallery %q has no application, so no API key to search it with: create one first", g.Name)
		}
		inside := c.WithAPIKey(g.Applications[0].APIKey)
		found, err := findIn(ctx, inside, p)
		if err != nil {
			return nil, fmt.Errorf("search the gallery %q: %w", g.Name, err)
		}
		for _, f := range found {
			f.gallery, f.client = g, inside
			list = append(list, f)
		}
	}
	return list, nil
}

func findIn(ctx context.Context, c *client.Client, p Person) (list []Found, err error) {
	if p.Photo != nil {
		for m, err := range c.Matches(ctx, client.MatchQuery{Probe: p.Photo, Threshold: p.Threshold}) {
			if err != nil {
				return nil, err
			}
			list = append(list, Found{Subject: m.ID, ExternalID: m.ExternalID, Score: m.Score, Events: m.EventCount})
		}
		return list, nil
	}
	if p.ExternalID != "" {
		with, err := c.SubjectsWith(ctx, p.ExternalID)
		if err != nil || len(with.Subjects) == 0 {
			return nil, err
		}
		return []Found{{Subject: with.Subjects[0].ID, ExternalID: p.ExternalID, Events: len(with.Subjects)}}, nil
	}
	for _, subject := range p.Subjects {
		s, err := c.Subject(ctx, subject)
		if errors.Is(err, client.ErrNotFound) && !p.Gone {
			continue
		}
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return nil, err
		}
		list = append(list, Found{Subject: subject, ExternalID: s.ExternalID, Events: len(s.Events)})
	}
	return list, nil
}

// ids returns the ids of the gallery and of the subject.
func (f Found) ids() (g id.Gallery, s id.Subject, err error) {
	gallery, err := id.Parse(f.gallery.ID)
	if err != nil {
		return g, s, fmt.Errorf("read the id of a gallery: %w", err)
	}
	subject, err := id.Parse(f.Subject)
	if err != nil {
		return g, s, fmt.Errorf("read the id of a subject: %w", err)
	}
	return id.Gallery{UUID: gallery}, id.Subject{UUID: subject}, nil
}

// WriteFound prints a list of subjects.
func WriteFound(w io.Writer, list []Found) error {
	return table.Write(w, func(limit int) []table.Row {
		rows := []table.Row{{Cells: []string{"GALLERY", "SUBJECT", "SCORE", "EVENTS", "EXTERNAL ID"}}}
		for _, f := range list {
			score := "-"
			if f.Score > 0 {
				score = strconv.Itoa(f.Score)
			}
			rows = append(rows, table.Row{Cells: []string{
				table.Shorten(f.gallery.Name, limit), f.Subject, score, strconv.Itoa(f.Events), table.Shorten(f.ExternalID, limit),
			}})
		}
		return rows
	})
}
