package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Photo is an image file with one face, and names of the gallery's tags. In an
// update, nil tags keep the present ones and an empty slice removes them.
type Photo struct {
	Image []byte
	Tags  []string
	// ExternalID is your own id of the subject, and UserData a JSON object. Register and
	// Update send them. In Update, nil keeps, and "" or {} removes.
	ExternalID *string
	UserData   json.RawMessage
	// Expires is when the event expires, to the millisecond. In an update the zero time
	// keeps the time that the event has, and NoExpiry removes it.
	Expires  time.Time
	NoExpiry bool
}

// External returns what stands for the id of the subject with an external id, in the place of a
// subjectID.
func External(externalID string) (subjectID string) { return "externalId:" + externalID }

// photoBody is a Photo on the wire.
type photoBody struct {
	Face []byte   `json:"face"` // encoding/json makes it base64
	Tags []string `json:"tags,omitzero"`

	ExternalID *string         `json:"externalId,omitzero"`
	UserData   json.RawMessage `json:"userData,omitzero"`
	Expires    *string         `json:"expires,omitzero"`
}

// body returns the wire form. The service refuses an empty image.
func (p Photo) body() photoBody {
	b := photoBody{notNil(p.Image), p.Tags, p.ExternalID, p.UserData, wireTime(p.Expires)}
	if p.NoExpiry && b.Expires == nil {
		b.Expires = new(string)
	}
	return b
}

// wireTime returns a time on the wire, or nil for the zero time.
func wireTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.UTC().Format("2006-01-02T15:04:05.000Z")
	return &text
}

// Register creates a subject with one event.
func (c *Client) Register(ctx context.Context, p Photo) (Registered, error) {
	return call[Registered](ctx, c, request{method: http.MethodPost, path: "/v1.1/subjects", body: p.body(), repeat: repeatKeyed})
}

// Update replaces the subject's oldest event.
func (c *Client) Update(ctx context.Context, subjectID string, p Photo) (Registered, error) {
	return call[Registered](ctx, c, request{method: http.MethodPut, path: join("v1.1", "subjects", subjectID), body: p.body(), repeat: repeatKeyed})
}

// Unregister removes a subject with its events.
func (c *Client) Unregister(ctx context.Context, subjectID string) error {
	return run(ctx, c, request{method: http.MethodDelete, path: join("v1.1", "subjects", subjectID), repeat: repeatGone})
}

// Erased is the evidence that an answer gives of an erasure.
type Erased struct {
	// RequestID is the answer's x-request-id.
	RequestID string
	// Commit is the answer's facet-commit: the group, and an index of its log at or after the
	// erasure. It is empty while a cluster is upgraded.
	Commit string
	// Gone reports whether the gallery did not have the subject when the last try came: it was
	// erased before, or by a try whose answer was lost, or never was there.
	Gone bool
}

// Erase does what Unregister does, and returns the evidence. A subject that is gone already is
// no error. The error is ErrMerged if the subject's faces are under another one, Error.Into.
func (c *Client) Erase(ctx context.Context, subjectID string) (Erased, error) {
	a, err := c.do(ctx, request{method: http.MethodDelete, path: join("v1.1", "subjects", subjectID), gone: true})
	if err != nil {
		return Erased{}, err
	}
	return Erased{a.header.Get("X-Request-Id"), a.header.Get("Facet-Commit"), a.status == http.StatusNotFound}, nil
}

// Merge moves the events of the subject source, with new ids, to another subject of the
// gallery, and removes source. It takes about five seconds.
func (c *Client) Merge(ctx context.Context, subjectID, source string) (Merged, error) {
	body := struct {
		Source string `json:"source"`
	}{source}
	return call[Merged](ctx, c, request{method: http.MethodPost, path: join("v1.1", "subjects", subjectID, "merge"), body: body, repeat: repeatKeyed})
}

// Subject returns a subject.
func (c *Client) Subject(ctx context.Context, subjectID string) (Subject, error) {
	return call[Subject](ctx, c, request{method: http.MethodGet, path: join("v1.1", "subjects", subjectID, "events")})
}

// ListEvents returns a subject's events.
func (c *Client) ListEvents(ctx context.Context, subjectID string) ([]Event, error) {
	s, err := c.Subject(ctx, subjectID)
	return s.Events, err
}

// Events returns the ids of a subject's events.
func (c *Client) Events(ctx context.Context, subjectID string) ([]string, error) {
	list, err := c.ListEvents(ctx, subjectID)
	ids := make([]string, len(list))
	for i, e := range list {
		ids[i] = e.ID
	}
	return ids, err
}

// RegisterEvent adds an event to a subject.
func (c *Client) RegisterEvent(ctx context.Context, subjectID string, p Photo) (Registered, error) {
	return call[Registered](ctx, c, request{
		method: http.MethodPost, path: join("v1.1", "subjects", subjectID, "events"), body: p.body(), repeat: repeatKeyed,
	})
}

// UpdateEvent replaces the photo of an event.
func (c *Client) UpdateEvent(ctx context.Context, subjectID, eventID string, p Photo) (Registered, error) {
	return call[Registered](ctx, c, request{
		method: http.MethodPut, path: join("v1.1", "subjects", subjectID, "events", eventID), body: p.body(), repeat: repeatKeyed,
	})
}

// UnregisterEvent removes an event. Removing the last one removes the subject.
func (c *Client) UnregisterEvent(ctx context.Context, subjectID, eventID string) error {
	return run(ctx, c, request{method: http.MethodDelete, path: join("v1.1", "subjects", subjectID, "events", eventID), repeat: repeatGone})
}

// Status is the state of an entry in the subject list.
type Status string

// The states of an entry.
const (
	Active  Status = "A"
	Deleted Status = "D" // deleted or replaced; removed when its slot is used again
)

// Order is the order of the subject list by the time of the last update.
type Order string

// The orders.
const (
	Ascending  Order = "asc"
	Descending Order = "desc"
)

// PageLengthMax is the longest page of the subject list.
const PageLengthMax = 1000

// Page selects a part of the subject list. Zero fields take the defaults: from the
// start, PageLengthMax entries, ascending.
type Page struct {
	Start, Length int
	Order         Order
	// After is the Next of an earlier page. It has the order, and excludes Start.
	After string
}

// Subjects returns a part of the subject list. An empty one is no error.
func (c *Client) Subjects(ctx context.Context, p Page) (SubjectList, error) {
	return list(ctx, c, p, nil)
}

// Expiring returns a part of the list of what expires before a time, soonest first. Total
// counts all of it. It changes nothing. p has no Start and no Order.
func (c *Client) Expiring(ctx context.Context, before time.Time, p Page) (SubjectList, error) {
	return list(ctx, c, p, wireTime(before))
}

func list(ctx context.Context, c *Client, p Page, expiresBefore *string) (SubjectList, error) {
	var query []string // in the order of the keys
	if p.After != "" {
		query = append(query, "after="+escape(p.After, ""))
	}
	if p.Order != "" {
		query = append(query, "dir="+escape(string(p.Order), ""))
	}
	if expiresBefore != nil {
		query = append(query, "expiresBefore="+escape(*expiresBefore, ""))
	}
	if p.Length != 0 {
		query = append(query, "length="+strconv.Itoa(p.Length))
	}
	if p.Start != 0 {
		query = append(query, "start="+strconv.Itoa(p.Start))
	}
	return call[SubjectList](ctx, c, request{method: http.MethodGet, path: "/v1.1/subjects", query: strings.Join(query, "&"), empty: "subjects"})
}

// SubjectsWith returns the active events of the subject that has an external id, or an empty list.
func (c *Client) SubjectsWith(ctx context.Context, externalID string) (SubjectList, error) {
	return call[SubjectList](ctx, c, request{
		method: http.MethodGet, path: "/v1.1/subjects", query: "externalId=" + escape(externalID, ""), empty: "subjects",
	})
}

// ErrNoCursor is returned by AllSubjects when the service gives no cursors.
var ErrNoCursor = errors.New("the service gives no cursors: upgrade all of its nodes")

// AllSubjects iterates over the whole subject list. An entry that stays as it is meanwhile
// occurs exactly once. A changed subject has another entry at the end of the list, so it
// may occur twice in ascending order, and be missing in descending order. AllSubjects ends
// after an error.
func (c *Client) AllSubjects(ctx context.Context, o Order) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for p := (Page{Length: PageLengthMax, Order: o}); ; {
			list, err := c.Subjects(ctx, p)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range list.Subjects {
				if !yield(e, nil) {
					return
				}
			}
			if list.Next == "" {
				if p.After == "" && len(list.Subjects) < list.Total {
					yield(Entry{}, ErrNoCursor)
				}
				return
			}
			p.After, p.Order = list.Next, ""
		}
	}
}

// Health returns an error unless the service answers that it is healthy.
func (c *Client) Health(ctx context.Context) error {
	got, err := call[struct {
		Status string `json:"status"`
	}](ctx, c, request{method: http.MethodGet, path: "/v1.1/health"})
	if err == nil && got.Status != "OK" {
		err = errors.New("health: " + got.Status)
	}
	return err
}

// WhoamiOf returns what the access key of c may do. The error is ErrForbidden if it can't use the API key of c.
func WhoamiOf(ctx context.Context, c *Client) (Whoami, error) {
	return call[Whoami](ctx, c, request{method: http.MethodGet, path: "/v1.1/whoami"})
}
