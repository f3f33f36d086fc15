package subjects

import (
	"facet/internal/id"
	"facet/router"
	"facet/router/cluster"
	"facet/shard"
)

// actNamesMax is the most subjects that one act names.
const actNamesMax = 100

// expiredSubjects returns the subjects of events that are about to expire on a shard of this node, with their
// salts, which may go with the events. Without records it returns none.
func expiredSubjects(r *cluster.Cluster, s *shard.Shard, x *shard.Expiration) (list []router.Salted, err error) {
	g, ok := r.Find(x.Gallery)
	if !ok || !audits(r.Groups.Meta(), g.Tenant) {
		return nil, nil
	}
	key, err := r.DataKey(g.Gallery)
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
			return nil, cluster.Outdated(err)
		}
		if len(events) == 0 {
			continue // others have removed it meanwhile
		}
		note, err := g.OpenNote(key, e.Subject, events[0])
		if err != nil {
			return nil, err
		}
		named := router.Salted{Subject: e.Subject}
		if note != nil {
			named.Salt = note.Salt
		}
		list = append(list, named)
	}
	return list, nil
}
