package fsmtest_test

import (
	"cmp"
	"slices"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
)

// ownQuotas returns small quotas, often none.
func (w *metaWorld) ownQuotas() (list []metafsm.QuotaValue) {
	for _, q := range metafsm.MetaQuotas {
		if w.IntN(8) == 0 {
			list = append(list, metafsm.QuotaValue{Quota: q, Most: 1 + uint64(w.IntN(4))})
		}
	}
	return list
}

// setTenant returns a SetTenant with few quotas, small or default.
func (w *metaWorld) setTenant() []byte {
	c := metafsm.SetTenant{Tenant: tenantID(w.IntN(5))}
	for range 1 + w.IntN(3) {
		v := metafsm.QuotaValue{Quota: metafsm.MetaQuotas[w.IntN(len(metafsm.MetaQuotas))], Most: uint64(w.IntN(5))}
		if v.Quota == metafsm.QuotaSubjects {
			v.Most *= 100
		}
		c.Quotas = append(c.Quotas, v)
	}
	return send(w, metafsm.SetTenantOp, c, w.model.setTenant)
}

func (m *metaModel) setTenant(c metafsm.SetTenant) metafsm.StatusAnswer {
	i := m.tenant(c.Tenant)
	if i < 0 {
		return metafsm.StatusAnswer{Status: metafsm.UnknownTenant}
	}
	own := map[metafsm.Quota]uint64{}
	for _, v := range slices.Concat(m.tenants[i].Quotas, c.Quotas) {
		own[v.Quota] = v.Most
	}
	m.tenants[i].Quotas = nil
	for q, most := range own {
		if most > 0 {
			m.tenants[i].Quotas = append(m.tenants[i].Quotas, metafsm.QuotaValue{Quota: q, Most: most})
		}
	}
	slices.SortFunc(m.tenants[i].Quotas, func(a, b metafsm.QuotaValue) int { return cmp.Compare(a.Quota, b.Quota) })
	return metafsm.StatusAnswer{Status: metafsm.Done}
}

func (m *metaModel) most(t id.Tenant, q metafsm.Quota) uint64 {
	most, _ := m.tenants[m.tenant(t)].Most(q)
	return most
}

func (m *metaModel) beyond(t id.Tenant, q metafsm.Quota, more uint64) bool {
	return m.used(t)[q]+more > m.most(t, q)
}

// changes counts the remembered operations of a tenant of one kind.
func (m *metaModel) changes(t id.Tenant, keyed bool) (n uint64) {
	for _, o := range m.ops {
		if o.owner == t && o.write.Keyed == keyed {
			n++
		}
	}
	return n
}

// used counts what a tenant has of each quota, from the lists.
func (m *metaModel) used(t id.Tenant) map[metafsm.Quota]uint64 {
	n := map[metafsm.Quota]uint64{
		metafsm.QuotaSubjects: 0, metafsm.QuotaGalleries: 0, metafsm.QuotaApplications: 0, metafsm.QuotaAccessKeys: 0,
		metafsm.QuotaChanges: max(m.changes(t, true), m.changes(t, false)),
	}
	for _, g := range m.galleries {
		if g.Tenant == t && !g.Deleting {
			n[metafsm.QuotaGalleries]++
			n[metafsm.QuotaSubjects] += uint64(g.Size)
		}
	}
	for _, a := range m.applications {
		if a.Tenant == t {
			n[metafsm.QuotaApplications]++
		}
	}
	for _, k := range m.keys {
		if k.Tenant == t && k.State == metafsm.KeyLive {
			n[metafsm.QuotaAccessKeys]++
		}
	}
	return n
}

// share returns a small share of one of two tenants, or none.
func (w *shardWorld) share() shardfsm.Share {
	if w.IntN(3) == 0 {
		return shardfsm.Share{}
	}
	return shardfsm.Share{Tenant: tenantID(w.IntN(2)), Writes: uint32(2 + w.IntN(30))}
}
