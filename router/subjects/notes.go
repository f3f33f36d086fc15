package subjects

import (
	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/cluster"
	"facet/shard"
)

// salted returns a note with a salt, if the tenant's requests have audit records and the note has none.
func salted(m *metafsm.Machine, g cluster.Gallery, n router.Note) router.Note {
	if n.Salt == ([shard.SaltBytes]byte{}) && audits(m, g.Tenant) {
		cluster.MustRandom(n.Salt[:])
	}
	return n
}

// audits reports whether a tenant's requests have audit records.
func audits(m *metafsm.Machine, tenant id.Tenant) bool {
	return metafsm.AuditOf(m, tenant).Mode != metafsm.AuditOff
}
