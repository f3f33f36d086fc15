package router

import (
	"context"
	"errors"
	"slices"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router/calls"
	"facet/shard"
	"facet/shard/seal"
)

// Note is what a subject has beside its faces: an external id and user data.
type Note = shard.Note

// Limits of notes.
const (
	// ExternalIDMax is the most characters of an external id.
	ExternalIDMax = 128
	// UserDataMax is the most bytes of user data.
	UserDataMax = shard.UserDataMax
)

// NotePatch contains the changes to a note. A nil field changes nothing, and an empty one
// removes.
type NotePatch struct {
	ExternalID *string
	UserData   *[]byte
}

// IsZero reports whether the patch changes nothing.
func (p NotePatch) IsZero() bool { return p.ExternalID == nil && p.UserData == nil }

func (p NotePatch) of(n Note) Note {
	set(&n.ExternalID, p.ExternalID)
	set(&n.UserData, p.UserData)
	return n
}

// errHolders is returned when a home answers for another number of names than it was asked for.
var errHolders = errors.New("router: a shard answered with another number of claims")

// salted returns a note with a salt, if the tenant's requests have audit records and the note has none.
func salted(m *metafsm.Machine, g enrolment, n Note) Note {
	if n.Salt == ([shard.SaltBytes]byte{}) && audits(m, g.Tenant) {
		mustRandom(n.Salt[:])
	}
	return n
}

// audits reports whether a tenant's requests have audit records.
func audits(m *metafsm.Machine, tenant id.Tenant) bool {
	return metafsm.AuditOf(m, tenant).Mode != metafsm.AuditOff
}

// nameOf returns the name of an external id in a gallery; the empty id has none.
func nameOf(g enrolment, key *seal.Key, externalID string) named {
	if externalID == "" {
		return named{gallery: g}
	}
	return named{g, shard.NameExternal(key, g.ID, g.Generation, externalID)}
}

// openNote decrypts the note of a subject that its event a carries. Without a note it returns nil.
func openNote(g enrolment, key *seal.Key, subject id.Subject, a shard.Active) (*Note, error) {
	if len(a.Note) == 0 {
		return nil, nil
	}
	ref := faceRef(g, subject, a.Event)
	ref.Revision = a.Revision
	n, err := shard.OpenNote(key, ref, a.Note)
	if err != nil {
		return nil, err
	}
	return &n, nil
}

// byExternal returns the gallery of an access, its key, and the name of an external id in it.
func (r *claims) byExternal(access Access, externalID string) (enrolment, *seal.Key, named, error) {
	g, _, err := r.enrolment(access)
	if err != nil {
		return g, nil, named{}, err
	}
	key, err := r.dataKey(g.Gallery)
	if err != nil {
		return g, nil, named{}, err
	}
	return g, key, nameOf(g, key, externalID), nil
}

// SubjectWith returns the subject that has an external id. The error is NotFound if none has.
func (r *claims) SubjectWith(ctx context.Context, access Access, externalID string) (id.Subject, error) {
	g, _, n, err := r.byExternal(access, externalID)
	if err != nil {
		return id.Subject{}, err
	}
	return withFreshShards(ctx, r.cluster, g, func(g enrolment) (id.Subject, error) {
		subject, _, err := r.find(ctx, named{g, n.name})
		return subject, err
	})
}

// SubjectToRename returns the subject that has an external id, for a write that gives it another
// one, or none. For a retry it returns the subject of the first try, whoever has the id now.
func (r *claims) SubjectToRename(ctx context.Context, access Access, externalID string, w Write) (id.Subject, error) {
	g, _, n, err := r.byExternal(access, externalID)
	if err != nil {
		return id.Subject{}, err
	}
	return withFreshShards(ctx, r.cluster, g, func(g enrolment) (id.Subject, error) {
		first, err := calls.Scatter(ctx, r.calls, shardReplaced, g.shards, replacedQuery{g.ID, g.Generation, g.Epoch, w.Operation})
		if err != nil {
			return id.Subject{}, err
		}
		for _, subject := range first {
			if !subject.IsZero() {
				return subject, nil
			}
		}
		subject, _, err := r.find(ctx, named{g, n.name})
		return subject, err
	})
}

// replacedQuery asks a shard for the subject whose face an operation replaced.
type replacedQuery struct {
	Gallery    id.Gallery   `cbor:"1,keyasint"`
	Generation uint32       `cbor:"2,keyasint"`
	Epoch      uint32       `cbor:"3,keyasint"` // as in searchQuery
	Operation  id.Operation `cbor:"4,keyasint"`
}

// shardReplaced returns the zero subject for an operation that the shard does not remember.
var shardReplaced = method[replacedQuery, id.Subject]{Name: "shard.replaced", Run: func(ctx context.Context, r *Router, group id.Shard, q replacedQuery) (id.Subject, error) {
	m, err := r.leaderMachine(ctx, group)
	if err == nil {
		err = m.Shard().CheckEpoch(q.Gallery, q.Generation, q.Epoch)
	}
	if err != nil {
		return id.Subject{}, outdated(err)
	}
	subject, _ := m.Replaced(q.Gallery, q.Operation)
	return subject, nil
}}

// SubjectsWith returns the list of the active events of the subject that has an external id. It
// is empty if none has.
func (r *claims) SubjectsWith(ctx context.Context, access Access, externalID string) (Listing, error) {
	g, key, n, err := r.byExternal(access, externalID)
	if err != nil {
		return Listing{}, err
	}
	return withFreshShards(ctx, r.cluster, g, func(g enrolment) (Listing, error) {
		subject, a, err := r.find(ctx, named{g, n.name})
		if KindOf(err) == NotFound {
			return Listing{}, nil
		}
		if err != nil {
			return Listing{}, err
		}
		note, err := openNote(g, key, subject, a.Events[0])
		if err != nil {
			return Listing{}, err
		}
		out := Listing{Total: len(a.Entries)}
		for _, e := range a.Entries {
			entry := entryOf(e, note)
			if i := slices.IndexFunc(a.Events, func(of shard.Active) bool { return of.Event == e.Event }); i >= 0 {
				entry.Expires = expiresAt(g.kept(), a.Events[i].Time, a.Events[i].Expires)
			}
			out.Entries = append(out.Entries, entry)
		}
		return out, nil
	})
}
