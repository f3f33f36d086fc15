package subjects

import (
	"context"
	"fmt"
	"time"

	"facet/engine/portrait"
	"facet/internal/id"
	"facet/raftfsm/metafsm"
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

// Register enrols the one face of an image as a new subject with one event. A retry
// with the same Write gets the first answer.
func (r *SubjectRequests) Register(ctx context.Context, reg router.Registration) (router.Registered, error) {
	g, app, err := r.cluster.Of(reg.Access)
	if err != nil {
		return router.Registered{}, err
	}
	expires, err := admission.StoredExpiry(r.cluster.Clock, reg.Expires)
	if err != nil {
		return router.Registered{}, err
	}
	var face portrait.Taken
	var tags []uint32
	extracted := false
	return cluster.WithFreshShards(ctx, r.cluster, g, func(g cluster.Gallery) (router.Registered, error) {
		home, err := r.Home(ctx, g, reg.Write.Operation)
		if err == nil && !extracted {
			face, tags, err = r.extractEnrolment(ctx, g, home, app, reg)
			extracted = true
		}
		if err != nil {
			return router.Registered{}, err
		}
		return r.Put(ctx, Placement{
			Gallery: g, Application: app, Home: home, Subject: g.Subject(reg.Write.Operation, home),
			Write: reg.Write, Face: face, Tags: tags, Note: reg.Note, Expires: expires,
		})
	})
}

// Home returns the shard of a new subject.
func (r *SubjectRequests) Home(ctx context.Context, g cluster.Gallery, op id.Operation) (id.Shard, error) {
	return g.Home(op, func(earlier id.Shard) (bool, error) {
		return calls.CallLeader(ctx, r.cluster.Calls, shardKnows, earlier, knowsQuery{
			Made: lookup.EventsQuery{Gallery: g.ID, Generation: g.Generation, Subject: g.Subject(op, earlier)}, Event: g.Event(op, earlier), Operation: op, Epoch: g.Epoch,
		})
	})
}

// Put commits a face and the note of its subject. It first claims the note's external
// id, and gives the claim up if the subject gets no note.
func (r *SubjectRequests) Put(ctx context.Context, p Placement) (router.Registered, error) {
	key, err := r.cluster.DataKey(p.Gallery.Gallery)
	if err != nil {
		return router.Registered{}, err
	}
	if p.Note.ExternalID == "" {
		return r.putClaimed(ctx, p, key)
	}
	n := claims.NameOf(p.Gallery, key, p.Note.ExternalID)
	if p.claimed, err = r.claims.ClaimFor(ctx, n, r.eventWrite(p)); err != nil {
		return router.Registered{}, err
	}
	out, err := r.putClaimed(ctx, p, key)
	if err != nil {
		r.claims.Tidy(ctx, n, p.Subject)
	}
	return out, err
}

// putClaimed commits a face. If the application guards its enrolments, putClaimed first
// checks that the gallery does not have the person.
func (r *SubjectRequests) putClaimed(ctx context.Context, p Placement, key *seal.Key) (router.Registered, error) {
	ref := p.Gallery.FaceRef(p.Subject, p.Event())
	if !p.further {
		p.Note = salted(r.cluster.Groups.Meta(), p.Gallery, p.Note)
	}
	sealed, note := shard.SealFace(key, ref, p.Face.Face), shard.SealNote(key, ref, p.Note)
	for range guardRounds {
		a, err := r.commit(ctx, p, sealed, note, p.Application.Guard)
		if err != nil {
			return router.Registered{}, err
		}
		if p.Application.Guard && a.Status == shardfsm.Done {
			var found guarded
			if a.RegisterAnswer, found, err = r.activateUnlessKnown(ctx, p, a.Claim); router.KindOf(err) == router.Duplicate {
				return found.refused(p), err
			}
			if err != nil {
				return router.Registered{}, err
			}
			if a.Status == shardfsm.UnknownEvent { // a rival withdrew it
				continue
			}
		}
		if err := admission.EnrolRefusal(ctx, r.cluster, a.RegisterAnswer, p.Home, p.Gallery.Tenant, p.Write); err != nil {
			return router.Registered{}, err
		}
		if err := r.stillThere(ctx, p, a.RegisterAnswer); err != nil {
			return router.Registered{}, err
		}
		return r.registeredAnswer(p.Gallery, key, a.RegisterAnswer, p.Face)
	}
	return router.Registered{}, &router.Error{Kind: router.Busy, Message: "this person is being enrolled by others; try again", RetryAfter: calls.RetryLater}
}

// stillThere returns the error for a repeated registration without an
// Idempotency-Key whose subject was removed since: an answer with the id of a subject
// that is gone would look like a success. A retry with a key gets its first answer,
// which its client may never have seen.
func (r *SubjectRequests) stillThere(ctx context.Context, p Placement, a shardfsm.RegisterAnswer) error {
	if a.Status != shardfsm.Replayed || p.Write.Keyed || len(a.Sealed) > 0 {
		return nil
	}
	g := p.Gallery
	events, err := lookup.Events(ctx, r.cluster, g, a.Subject)
	if err != nil || len(events) > 0 {
		return err
	}
	return admission.DeletedSince(router.ReasonSubjectDeleted, "subject")
}

func (r *SubjectRequests) eventWrite(p Placement) shardfsm.EventWrite {
	g, w := p.Gallery, p.Write
	return shardfsm.EventWrite{
		Gallery: g.ID, Generation: g.Generation, Op: w.Operation, Request: w.Request, Keyed: w.Keyed,
		Subject: p.Subject, Event: p.Event(), Time: time.Now().UnixMilli(), Share: admission.Share(r.cluster, g.Tenant),
	}
}

// commit proposes a face to its shard. It finds a slot for it when the shard has
// none.
func (r *SubjectRequests) commit(ctx context.Context, p Placement, sealed, note []byte, pending bool) (RegisterAnswer, error) {
	g := p.Gallery
	return r.WithSlot(ctx, g, p.Home, func(recycle bool) (RegisterAnswer, error) {
		c := shardfsm.Register{
			EventWrite: r.eventWrite(p), Tags: p.Tags, Sealed: sealed, Recycle: recycle, Pending: pending, Note: note, Claimed: p.claimed, Expires: p.Expires,
		}
		if p.further { // on its subject's shard, whatever the epoch
			return calls.CallLeader(ctx, r.cluster.Calls, ShardAdd, p.Home, shardfsm.AddEvent{Register: c})
		}
		c.Epoch = g.Epoch
		return calls.CallLeader(ctx, r.cluster.Calls, shardRegister, p.Home, c)
	})
}

// registeredAnswer turns the shard's answer to a write that is done into the client's. A
// retry gets the attributes of the first try while its event lives.
func (r *SubjectRequests) registeredAnswer(g cluster.Gallery, key *seal.Key, a shardfsm.RegisterAnswer, face portrait.Taken) (router.Registered, error) {
	out := router.Registered{Subject: a.Subject, Event: a.Event, Attributes: face.Attributes, Ignored: face.Ignored}
	if len(a.Sealed) > 0 {
		ref := g.FaceRef(a.Subject, a.Event)
		ref.Revision = a.Revision
		first, err := shard.OpenFace(key, ref, a.Sealed)
		if err != nil {
			return router.Registered{}, fmt.Errorf("open a registered face: %w", err)
		}
		out.Attributes = first.Attributes
	}
	return out, nil
}

// Unregister removes a subject and its events, and returns where the log has this. An unknown
// subject is NotFound; the log has that, too. The subject's shard remembers the outcome of op, which must
// be new.
func (r *SubjectRequests) Unregister(ctx context.Context, access router.Access, subject id.Subject, op id.Operation) (router.Committed, error) {
	g, _, err := r.cluster.At(ctx, access, subject.Shard(), admission.SubjectNotFound)
	if err != nil {
		return router.Committed{}, err
	}
	a, err := afterMerges(ctx, func() (RemovedAnswer, error) {
		return calls.CallLeader(ctx, r.cluster.Calls, shardUnregister, subject.Shard(), shardfsm.Unregister{
			Gallery: g.ID, Generation: g.Generation, Op: op, Time: time.Now().UnixMilli(), Subject: subject, Share: admission.Share(r.cluster, g.Tenant),
		})
	})
	if err != nil {
		return router.Committed{}, err
	}
	if a.Status == shardfsm.Done {
		r.claims.Tidy(ctx, claims.Named{Gallery: g, Name: a.External}, subject)
	}
	return router.Committed{Group: subject.Shard(), Index: a.Applied}, removalRefusal(ctx, r.cluster, a.Status, g, subject, router.Write{Operation: op})
}

// removalRefusal returns the error for the status of a removal, as refusal does. The error for a
// subject that was merged into another one lately names the other one, which has its faces.
func removalRefusal(ctx context.Context, r *cluster.Cluster, s shardfsm.Status, g cluster.Gallery, subject id.Subject, w router.Write) error {
	if s != shardfsm.UnknownSubject {
		return admission.Refusal(ctx, r, s, subject.Shard(), g.Tenant, w)
	}
	state, err := lookup.Merge(ctx, r, subject)
	switch {
	case err != nil:
		return err
	case state.Into.IsZero() || state.Gallery != g.ID:
		return admission.SubjectNotFound()
	default:
		return router.Errorf(router.NotFound, router.ReasonSubjectMerged, "the subject was merged into another one, which has its faces: %s", state.Into)
	}
}

// extractEnrolment extracts the one face of an image, by the settings of app, and
// finds the identities of tags. Unknown tags, and a write that the shard has no room
// to remember, are refused before any work on the image.
func (r *SubjectRequests) extractEnrolment(
	ctx context.Context, g cluster.Gallery, at id.Shard, app metafsm.Application, reg router.Registration,
) (portrait.Taken, []uint32, error) {
	tags, err := cluster.TagIdentities(ctx, r.cluster, g, reg.Tags)
	if err != nil {
		return portrait.Taken{}, nil, err
	}
	if err := admission.Room(ctx, r.cluster, at, g.Tenant, reg.Write); err != nil {
		return portrait.Taken{}, nil, err
	}
	face, err := r.faces.Enrolled(ctx, reg.Image, app)
	return face, tags, err
}
