package importing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"facet.internal/client"
	"facet/cmd/facet/importing/state"
)

// seeTime is how long a run asks at its end for the gallery's newest change.
const seeTime = 5 * time.Second

// doubts reports whether a row that was brought in may need more: its tags, expiry or user data
// are others now, or --known replace asks whether the gallery still has its photo.
func (r *run) doubts(t *task) bool {
	if t.was.Details != t.details {
		return true
	}
	_, ended := r.seenAfter(*t.was)
	return r.Known == Replace && t.person != 0 && ended
}

func (r *run) seenAfter(rec state.Record) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.SeenAfter(rec)
}

// see notes the gallery's newest change, so that a later run knows which of its rows others have
// changed since. Without it the later run takes the rows for in.
func (r *run) see(ctx context.Context) {
	if !mayChange(r.role) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), seeTime)
	defer cancel()
	var newest client.SubjectList
	err := r.insist(ctx, func(ctx context.Context) (err error) {
		newest, err = r.client.Subjects(ctx, client.Page{Length: 1, Order: client.Descending})
		return err
	})
	if err != nil || len(newest.Subjects) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.state.Sees(newest.Subjects[0].LastUpdated); err != nil {
		r.stop(err)
	}
}

// correct treats a row whose photo, tags, expiry or user data were changed in the list since an
// earlier run brought it in, and one that others have changed in the gallery. done is false for
// all other rows, and for one whose event is gone.
func (r *run) correct(ctx context.Context, t *task) (l line, done bool, err error) {
	rec, reason := t.was, "imported %s with other tags, expiry or user data: --known replace brings in what the list has now"
	if rec == nil {
		if rec, err = r.former(t); rec == nil || err != nil {
			return l, false, err
		}
		reason = "another photo was imported for this row %s: --known replace puts this one in its place, and --known add keeps both"
	} else if rec.Details == t.details {
		if same, err := r.unchanged(ctx, t); same || err != nil {
			return r.wasIn(*rec, t.row), err == nil, err
		}
	}
	switch {
	case r.Known == Replace:
		return r.apply(ctx, t, *rec)
	case r.Known == Add && t.was == nil:
		return l, false, nil
	}
	r.changed.Add(1)
	return line{outcome: Skipped, subject: rec.Subject, event: rec.Event, reason: fmt.Sprintf(reason, when(*rec))}, true, nil
}

// former returns the record of a row of the same person whose photo was changed or which has left
// the list: the one with this file, or else the newest. It is nil if there is none.
func (r *run) former(t *task) (*state.Record, error) {
	if t.person == 0 {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	records, err := r.state.Former(t.person)
	i := slices.IndexFunc(records, func(rec state.Record) bool { return rec.File == t.file })
	if i < 0 {
		i = slices.IndexFunc(records, func(rec state.Record) bool { return !r.look.files[rec.File] })
	}
	if i < 0 || err != nil {
		return nil, err
	}
	return &records[i], nil
}

// unchanged reports whether the gallery has the row's event as the earlier run left it.
func (r *run) unchanged(ctx context.Context, t *task) (bool, error) {
	at, _ := r.seenAfter(*t.was)
	got, err := r.entries(ctx, t.row.ExternalID)
	return slices.ContainsFunc(got.Subjects, func(e client.Entry) bool {
		return e.EventID == t.was.Event.String() && !e.LastUpdated.After(at)
	}), err
}

// apply replaces the event of a record by the row. done is false if the event is gone.
func (r *run) apply(ctx context.Context, t *task, rec state.Record) (l line, done bool, err error) {
	p, err := r.photoOf(t)
	if err != nil {
		return l, false, err
	}
	p.ExternalID, p.NoExpiry = nil, p.Expires.IsZero()
	if p.Tags == nil {
		p.Tags = []string{} // none
	}
	t.replaces = rec.Number + 1
	var events []string
	err = r.insist(ctx, func(ctx context.Context) (err error) {
		events, err = r.client.Events(ctx, rec.Subject.String())
		return err
	})
	place := slices.Index(events, rec.Event.String())
	if err == nil && place >= 0 {
		l, err = r.write(ctx, t, Replaced, func(ctx context.Context) (client.Registered, error) {
			if place == 0 { // the oldest, which has the subject's user data
				return r.client.Update(ctx, rec.Subject.String(), p)
			}
			p.UserData = nil
			return r.client.UpdateEvent(ctx, rec.Subject.String(), rec.Event.String(), p)
		})
	}
	if errors.Is(err, client.ErrNotFound) || err == nil && place < 0 {
		return line{}, false, nil
	}
	return l, true, err
}
