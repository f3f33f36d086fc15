package router

import (
	"facet/internal/id"
	"facet/shard"
)

// actNamesMax is the most subjects that one act names.
const actNamesMax = 100

// Act is something that the cluster has done by itself, for the audit log.
type Act struct {
	// Log is the tenant whose audit log records the act, or id.ClusterLog.
	Log       id.Tenant
	Operation string
	// Reason says more of it, or is empty.
	Reason  string
	Gallery GalleryVersion
	// Case is the review that expired.
	Case id.UUID
	// Count is how many events expired.
	Count int
	// Subjects lost events, at most actNamesMax of them.
	Subjects []Salted
	// Erased has groups, and up to which index of each this node's disk keeps nothing that commands have
	// removed, in turns.
	Erased []uint64
	// Former is the signed checkpoint of the log that the cluster's follows since a restoration, or empty.
	Former string
}

// GalleryVersion is a gallery and its generation.
type GalleryVersion struct {
	ID         id.Gallery
	Generation uint32
}

// Salted is a subject and the salt of its name in audit records. The salt is zero if the subject has none.
type Salted struct {
	Subject id.Subject
	Salt    [shard.SaltBytes]byte
}

// expiredSubjects returns the subjects of events that are about to expire on a shard of this node, with their
// salts, which may go with the events. Without records it returns none.
func expiredSubjects(r *cluster, s *shard.Shard, x *shard.Expiration) (list []Salted, err error) {
	g, ok := r.gallery(x.Gallery)
	if !ok || !audits(r.groups.Meta(), g.Tenant) {
		return nil, nil
	}
	key, err := r.dataKey(g.Gallery)
	if err != nil {
		return nil, err
	}
	seen := map[id.Subject]bool{}
	for _, e := range x.Events {
		if seen[e.Subject] {
			continue
		}
		if seen[e.Subject] = true; len(seen) > actNamesMax {
			break
		}
		events, err := s.Events(x.Gallery, x.Generation, e.Subject)
		if err != nil {
			return nil, outdated(err)
		}
		if len(events) == 0 {
			continue // others have removed it meanwhile
		}
		note, err := g.openNote(key, e.Subject, events[0])
		if err != nil {
			return nil, err
		}
		named := Salted{Subject: e.Subject}
		if note != nil {
			named.Salt = note.Salt
		}
		list = append(list, named)
	}
	return list, nil
}
