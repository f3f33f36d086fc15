package subjects

import (
	"context"
	"time"

	"facet/engine/portrait"
	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/calls"
	"facet/router/claims"
	"facet/router/cluster"
	"facet/router/lookup"
	"facet/shard"
	"facet/shard/seal"
)

// replaceRounds is the most times that an update seals its face again because
// another write changed the subject meanwhile.
const replaceRounds = 16

// RegisterEvent adds a face to a subject. The error is NotFound for an unknown
// subject. A retry with the same Write gets the first answer.
func (r *SubjectRequests) RegisterEvent(ctx context.Context, e router.Enrolment) (router.Registered, error) {
	g, app, err := r.cluster.At(ctx, e.Access, e.Subject.Shard(), admission.SubjectNotFound)
	if err != nil {
		return router.Registered{}, err
	}
	expires, err := admission.StoredExpiry(r.cluster.Clock, e.Expires)
	if err != nil {
		return router.Registered{}, err
	}
	face, tags, err := r.extractEnrolment(ctx, g, e.Subject.Shard(), app, registrationOf(e))
	if err != nil {
		return router.Registered{}, err
	}
	return r.Put(ctx, Placement{
		Gallery: g, Application: app, Home: e.Subject.Shard(), Subject: e.Subject, further: true,
		Write: e.Write, Face: face, Tags: tags, Expires: expires,
	})
}

// UpdateSubject replaces the face of a subject's oldest active event. The ids of
// subject and event stay. The error is NotFound for an unknown subject. A retry
// with the same Write gets the first answer.
func (r *SubjectRequests) UpdateSubject(ctx context.Context, e router.Enrolment) (router.Registered, error) {
	return r.replace(ctx, e, true)
}

// UpdateEvent replaces the face of one event, in the way of UpdateSubject.
func (r *SubjectRequests) UpdateEvent(ctx context.Context, e router.Enrolment) (router.Registered, error) {
	return r.replace(ctx, e, false)
}

func (r *SubjectRequests) replace(ctx context.Context, e router.Enrolment, oldest bool) (router.Registered, error) {
	g, app, err := r.cluster.At(ctx, e.Access, e.Subject.Shard(), admission.SubjectNotFound)
	if err != nil {
		return router.Registered{}, err
	}
	expires, err := admission.StoredExpiry(r.cluster.Clock, e.Expires)
	if err != nil {
		return router.Registered{}, err
	}
	face, tags, err := r.extractEnrolment(ctx, g, e.Subject.Shard(), app, registrationOf(e))
	if err != nil {
		return router.Registered{}, err
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err != nil {
		return router.Registered{}, err
	}
	u := update{Enrolment: e, gallery: g, key: key, face: face, tags: tags, expires: expires, oldest: oldest}
	for range replaceRounds {
		a, err := r.replaceOnce(ctx, &u)
		if err != nil {
			return router.Registered{}, err
		}
		if a.Status != shardfsm.Moved && a.Status != shardfsm.Barred {
			if err := admission.EnrolRefusal(ctx, r.cluster, a, e.Subject.Shard(), g.Tenant, e.Write); err != nil {
				return router.Registered{}, err
			}
			return r.registeredAnswer(g, key, a, face)
		}
	}
	return router.Registered{}, admission.WriteError(shardfsm.Moved)
}

// registrationOf returns the write as that of a new subject.
func registrationOf(e router.Enrolment) router.Registration {
	return router.Registration{Access: e.Access, Write: e.Write, Image: e.Image, Tags: e.Tags, Expires: e.Expires}
}

// update is a face that replaces another one.
type update struct {
	router.Enrolment
	gallery cluster.Gallery
	key     *seal.Key
	face    portrait.Taken
	tags    []uint32
	expires int64 // in milliseconds since 1970, or 0
	oldest  bool
}

// replaceOnce tries an update once. The seals of face and note are bound to the event and its
// revision, so these are read first. An unknown target is proposed too: this may be a retry, which
// gets its first answer.
func (r *SubjectRequests) replaceOnce(ctx context.Context, u *update) (shardfsm.RegisterAnswer, error) {
	g := u.gallery
	target, err := r.target(ctx, g, u.Enrolment, u.oldest)
	if err != nil {
		return shardfsm.RegisterAnswer{}, err
	}
	old, err := g.OpenNote(u.key, u.Subject, target)
	if err != nil {
		return shardfsm.RegisterAnswer{}, err
	}
	var had router.Note
	if old != nil {
		had = *old
	}
	note, ref := u.Note.Of(had), g.FaceRef(u.Subject, target.Event)
	if u.oldest || old != nil { // the event carries the note
		note = salted(r.cluster.Groups.Meta(), g, note)
	}
	ref.Revision = target.Revision + 1
	c := shardfsm.ReplaceEvent{
		EventWrite: shardfsm.EventWrite{
			Gallery: g.ID, Generation: g.Generation, Op: u.Write.Operation, Request: u.Write.Request, Keyed: u.Write.Keyed,
			Subject: u.Subject, Event: target.Event, Time: time.Now().UnixMilli(), Share: admission.Share(r.cluster, g.Tenant),
		},
		Tags: u.tags, KeepTags: u.Tags == nil, Sealed: shard.SealFace(u.key, ref, u.face.Face), Revision: ref.Revision, Oldest: u.oldest,
		Note: shard.SealNote(u.key, ref, note), Noted: old != nil, Expires: u.expires, NoExpiry: u.NoExpiry,
	}
	var fresh claims.Named // the external id that the subject gets
	switch {
	case target.Event.IsZero(): // there is no such subject
		c.Note = nil
	case note.ExternalID != had.ExternalID:
		fresh = claims.NameOf(g, u.key, note.ExternalID)
	}
	if !fresh.Name.IsZero() {
		if c.Claimed, err = r.claims.ClaimFor(ctx, fresh, c.EventWrite); err != nil {
			return shardfsm.RegisterAnswer{}, err
		}
	}
	a, err := calls.CallLeader(ctx, r.cluster.Calls, shardReplace, u.Subject.Shard(), c)
	switch {
	case err != nil || admission.WriteError(a.Status) != nil:
		r.claims.Tidy(ctx, fresh, u.Subject)
	case note.ExternalID != had.ExternalID:
		r.claims.Tidy(ctx, claims.NameOf(g, u.key, had.ExternalID), u.Subject)
	}
	return a, err
}

// target returns the event to replace, with the note that it carries. For an unknown event it
// returns revision 0, as for the first replacement of any event.
func (r *SubjectRequests) target(ctx context.Context, g cluster.Gallery, e router.Enrolment, oldest bool) (shard.Active, error) {
	events, err := lookup.Events(ctx, r.cluster, g, e.Subject)
	if err != nil {
		return shard.Active{}, err
	}
	for _, a := range events {
		if oldest || a.Event == e.Event {
			return a, nil
		}
	}
	return shard.Active{Event: e.Event}, nil
}

// Events returns a subject's active events. The error is NotFound for an unknown subject.
func (r *SubjectRequests) Events(ctx context.Context, access router.Access, subject id.Subject) (out router.ActiveEvents, err error) {
	g, _, err := r.cluster.At(ctx, access, subject.Shard(), admission.SubjectNotFound)
	if err != nil {
		return out, err
	}
	events, err := lookup.Events(ctx, r.cluster, g, subject)
	if err != nil {
		return out, err
	}
	if len(events) == 0 {
		return out, admission.SubjectNotFound()
	}
	for _, a := range events {
		out.List = append(out.List, router.ActiveEvent{ID: a.Event, Expires: cluster.ExpiresAt(g.Kept(), a.Time, a.Expires)})
	}
	if len(events[0].Note) == 0 { // the first event carries it
		return out, nil
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err == nil {
		out.Note, err = g.OpenNote(key, subject, events[0])
	}
	return out, err
}

// UnregisterEvent removes one event. Removing the last one removes the subject. The
// error is NotFound for an unknown subject, and for an event of another subject. op is as in Unregister.
func (r *SubjectRequests) UnregisterEvent(ctx context.Context, access router.Access, subject id.Subject, event id.Event, op id.Operation) error {
	g, _, err := r.cluster.At(ctx, access, subject.Shard(), admission.SubjectNotFound)
	if err != nil {
		return err
	}
	a, err := afterMerges(ctx, func() (RemovedAnswer, error) {
		return r.RemoveEvent(ctx, g, shardfsm.RemoveEvent{
			EventWrite: shardfsm.EventWrite{
				Gallery: g.ID, Generation: g.Generation, Op: op,
				Subject: subject, Event: event, Time: time.Now().UnixMilli(), Share: admission.Share(r.cluster, g.Tenant),
			},
		})
	})
	if err != nil {
		return err
	}
	return removalRefusal(ctx, r.cluster, a.Status, g, subject, router.Write{Operation: op})
}

// RemoveEvent carries out c. If the event carries the subject's note, RemoveEvent gives the note
// to the subject's next event, or the claim to its external id up.
func (r *SubjectRequests) RemoveEvent(ctx context.Context, g cluster.Gallery, c shardfsm.RemoveEvent) (RemovedAnswer, error) {
	for range replaceRounds {
		a, err := calls.CallLeader(ctx, r.cluster.Calls, shardRemove, c.Subject.Shard(), c)
		if err != nil || a.Status != shardfsm.Moved {
			if err == nil && a.Status == shardfsm.Done {
				r.claims.Tidy(ctx, claims.Named{Gallery: g, Name: a.External}, c.Subject) // it stays if another event has it now
			}
			return a, err
		}
		state, err := lookup.Subject(ctx, r.cluster, g, lookup.SubjectQuery{Subject: c.Subject, Heir: true})
		if err != nil {
			return a, err
		}
		if c.Heir, err = r.heir(g, c.Subject, state); err != nil {
			return a, err
		}
	}
	return RemovedAnswer{}, admission.WriteError(shardfsm.Moved)
}

// heir returns the second event of a subject with the note of the first.
func (r *SubjectRequests) heir(g cluster.Gallery, subject id.Subject, state lookup.SubjectAnswer) (shardfsm.Heir, error) {
	if len(state.Events) < 2 || len(state.Heir) == 0 {
		return shardfsm.Heir{}, nil // others removed one meanwhile
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err != nil {
		return shardfsm.Heir{}, err
	}
	note, err := g.OpenNote(key, subject, state.Events[0])
	if err != nil || note == nil {
		return shardfsm.Heir{}, err
	}
	next := state.Events[1]
	ref := g.FaceRef(subject, next.Event)
	ref.Revision = next.Revision
	return shardfsm.Heir{Event: next.Event, Revision: next.Revision, Sealed: state.Heir, Note: shard.SealNote(key, ref, *note), Expires: g.Ends(next)}, nil
}

var shardReplace = cluster.ShardCommand("shard.replace", shardfsm.ReplaceEventOp, func(c *shardfsm.ReplaceEvent) *int64 { return &c.Time })
