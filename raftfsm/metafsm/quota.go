package metafsm

import (
	"cmp"
	"slices"

	"facet/internal/id"
	"facet/raftfsm/operation"
)

// Quota is a bound on what one tenant takes, so that it leaves room for the others. The
// numbers are stored.
type Quota uint8

// The quotas. Meta keeps the first five by itself. The proposers of commands to
// shards send the next three with the commands. Each node keeps the next two by itself.
const (
	// QuotaSubjects bounds the sum of the sizes of a tenant's galleries.
	QuotaSubjects Quota = 1
	// QuotaGalleries and QuotaApplications bound their numbers.
	QuotaGalleries    Quota = 2
	QuotaApplications Quota = 3
	// QuotaAccessKeys bounds the access keys in use. The router allows two of each role.
	QuotaAccessKeys Quota = 4
	// QuotaChanges bounds the changes of galleries, applications and tags that meta
	// remembers, of each kind: keyed ones and others.
	QuotaChanges Quota = 5
	// QuotaWrites bounds the writes of events that each shard remembers, of each kind.
	QuotaWrites Quota = 6
	// QuotaJobs and QuotaJobItems bound the jobs that each shard keeps, and their items.
	QuotaJobs     Quota = 7
	QuotaJobItems Quota = 8
	// QuotaRequests bounds the requests in a second to each node.
	QuotaRequests Quota = 9
	// QuotaSearches bounds the searches in work on each node.
	QuotaSearches Quota = 10
	// QuotaAuditRecords bounds the records with contents in the tenant's audit log. Nodes keep it by the log's shard.
	QuotaAuditRecords Quota = 11
)

// QuotaMax is the largest value of a quota. It stands for no bound.
const QuotaMax = 1_000_000_000_000_000

// quotas has the name of each quota and its value for a tenant that has no other. Apply
// depends on the first five values, so other numbers need a new level. They leave three
// quarters of what a group keeps to others (limits, and those of shardfsm and shard/job);
// of a shard's writes without a key they leave half.
var quotas = [...]quotaRow{
	QuotaSubjects:     {"subjects", 10_000_000},
	QuotaGalleries:    {"galleries", 1000},
	QuotaApplications: {"applications", 10_000},
	QuotaAccessKeys:   {"accessKeys", 8},
	QuotaChanges:      {"changes", 1 << 14},
	QuotaWrites:       {"writes", 1 << 17},
	QuotaJobs:         {"jobs", 1 << 14},
	QuotaJobItems:     {"jobItems", 1 << 18},
	QuotaRequests:     {"requests", 2000},
	QuotaSearches:     {"searches", 256},
	QuotaAuditRecords: {"auditRecords", QuotaMax},
}

type quotaRow struct {
	name string
	most uint64
}

// Quotas returns all quotas in order.
func Quotas() []Quota {
	list := make([]Quota, 0, len(quotas)-1)
	for q := 1; q < len(quotas); q++ {
		list = append(list, Quota(q))
	}
	return list
}

// QuotaNamed returns the quota with a name. ok is false if there is none.
func QuotaNamed(name string) (q Quota, ok bool) {
	i := slices.IndexFunc(quotas[1:], func(q quotaRow) bool { return q.name == name })
	return Quota(i + 1), i >= 0
}

// String returns the name of the quota, as clients and operators see it.
func (q Quota) String() string { return quotas[q].name }

// QuotaValue is a tenant's own value of a quota.
type QuotaValue struct {
	Quota Quota `cbor:"1,keyasint"`
	// Most is 1 to QuotaMax. In SetTenant, 0 stands for the default.
	Most uint64 `cbor:"2,keyasint"`
}

// Most returns the value of a quota for the tenant. own is false for the default.
func (t Tenant) Most(q Quota) (most uint64, own bool) {
	for _, v := range t.Quotas {
		if v.Quota == q {
			return v.Most, true
		}
	}
	return quotas[q].most, false
}

// With returns the tenant with these quotas set, as SetTenant sets them. Others stay.
func (t Tenant) With(quotas []QuotaValue) Tenant {
	t.Quotas = slices.Clone(t.Quotas)
	for _, v := range quotas {
		t.Quotas = slices.DeleteFunc(t.Quotas, func(old QuotaValue) bool { return old.Quota == v.Quota })
		if v.Most > 0 {
			t.Quotas = append(t.Quotas, v)
		}
	}
	slices.SortFunc(t.Quotas, func(a, b QuotaValue) int { return cmp.Compare(a.Quota, b.Quota) })
	if len(t.Quotas) == 0 {
		t.Quotas = nil // as after a restart
	}
	return t
}

// SetTenant sets quotas of a tenant; others stay. What the tenant has beyond a quota stays
// too. The status is Done or UnknownTenant.
type SetTenant struct {
	Tenant id.Tenant    `cbor:"1,keyasint"`
	Quotas []QuotaValue `cbor:"2,keyasint"`
}

func (c SetTenant) apply(m *Machine) Status {
	t := m.state.tenants[c.Tenant]
	if t == nil {
		return UnknownTenant
	}
	record := t.record.With(c.Quotas)
	if !slices.Equal(record.Quotas, t.record.Quotas) {
		t.record = &record
		m.touch()
	}
	return Done
}

// beyond reports whether more of something would exceed a quota of a tenant.
func (m *Machine) beyond(t *tenant, q Quota, more uint64) bool {
	if t == nil {
		return false
	}
	most, _ := t.record.Most(q)
	return m.used(t, q)+more > most
}

// changedTooMuch reports whether a tenant has used up QuotaChanges with operations of one
// kind.
func (m *Machine) changedTooMuch(by id.Tenant, keyed bool) bool {
	t := m.state.tenants[by]
	if t == nil {
		return false
	}
	most, _ := t.record.Most(QuotaChanges)
	return uint64(m.ops.Owned(by, keyed)) >= most
}

// RoomAt returns the time from which on meta has room to remember a change of a tenant, by its
// own bound and by the tenant's quota, if it remembers nothing else until then. It is in the
// past if there is room.
func (m *Machine) RoomAt(by id.Tenant, keyed bool) int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	at := m.ops.RoomAt(operation.Name{Keyed: keyed})
	if t := m.state.tenants[by]; t != nil {
		most, _ := t.record.Most(QuotaChanges)
		at = max(at, m.ops.OwnerRoomAt(by, keyed, int(most)))
	}
	return at
}

// used returns how much of a quota that meta keeps a tenant has used. Galleries under
// deletion do not count, so a deletion gives their part back at once.
func (m *Machine) used(t *tenant, q Quota) (n uint64) {
	switch q {
	case QuotaSubjects, QuotaGalleries:
		for _, g := range t.galleries {
			switch record := m.state.galleries[g]; {
			case record.Deleting:
			case q == QuotaGalleries:
				n++
			default:
				n += uint64(record.Size)
			}
		}
	case QuotaApplications:
		n = uint64(len(t.applications))
	case QuotaAccessKeys:
		for _, k := range m.state.keys { // any order will do
			if k.Tenant == t.record.ID && k.State == KeyLive {
				n++
			}
		}
	case QuotaChanges:
		n = uint64(max(m.ops.Owned(t.record.ID, true), m.ops.Owned(t.record.ID, false)))
	default:
		panic("bug: meta does not keep the quota " + q.String())
	}
	return n
}

// MetaQuotas are the quotas that meta keeps by itself.
var MetaQuotas = []Quota{QuotaSubjects, QuotaGalleries, QuotaApplications, QuotaAccessKeys, QuotaChanges}

// Used returns how much of each of MetaQuotas each tenant has used.
func (m *Machine) Used() map[id.Tenant]map[Quota]uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	keys := make(map[id.Tenant]uint64)
	for _, k := range m.state.keys {
		if k.State == KeyLive {
			keys[k.Tenant]++
		}
	}
	all := make(map[id.Tenant]map[Quota]uint64, len(m.state.tenants))
	for who, t := range m.state.tenants {
		used := map[Quota]uint64{QuotaAccessKeys: keys[who]}
		for _, q := range MetaQuotas {
			if q != QuotaAccessKeys {
				used[q] = m.used(t, q)
			}
		}
		all[who] = used
	}
	return all
}

// Most returns the value of a quota for a tenant. own is false for the default, which an
// unknown tenant has.
func (m *Machine) Most(who id.Tenant, q Quota) (most uint64, own bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if t := m.state.tenants[who]; t != nil {
		return t.record.Most(q)
	}
	return Tenant{}.Most(q)
}
