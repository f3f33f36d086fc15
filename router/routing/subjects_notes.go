package routing

import (
	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/shard"
)

// salted returns a note with a salt, if the tenant's requests have audit records and the note has none.
func salted(m *metafsm.Machine, g enrolment, n router.Note) router.Note {
	if n.Salt == ([shard.SaltBytes]byte{}) && audits(m, g.Tenant) {
		mustRandom(n.Salt[:])
	}
	return n
}

// audits reports whether a tenant's requests have audit records.
func audits(m *metafsm.Machine, tenant id.Tenant) bool {
	return metafsm.AuditOf(m, tenant).Mode != metafsm.AuditOff
}
