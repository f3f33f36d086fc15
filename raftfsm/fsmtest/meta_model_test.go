package fsmtest_test

import (
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

// metaModel is meta implemented with plain lists.
type metaModel struct {
	clock        int64
	seq          uint64
	cluster      *metafsm.Cluster
	shards       metafsm.ShardMap
	nodes        []metafsm.Node
	level        uint32
	restoration  *metafsm.Restoration
	tenants      []metafsm.Tenant
	keys         []metafsm.AccessKey
	galleries    []metafsm.Gallery
	applications []metafsm.Application
	grants       map[id.Gallery]map[id.Shard]metafsm.ShardGrant
	tags         map[id.Gallery]*modelTags
	ops          []metaOp
}

type modelTags struct {
	last          uint32
	live, dormant []metafsm.Tag
}

type metaOp struct {
	write metafsm.Write
	kind  string
	scope id.UUID
	// the ids of the created records
	tenant      id.Tenant
	gallery     id.Gallery
	application id.Application
	identity    uint32
	// owner is the tenant against whose quota the operation counts.
	owner id.Tenant
}

func newMetaModel() *metaModel {
	return &metaModel{grants: map[id.Gallery]map[id.Shard]metafsm.ShardGrant{}, tags: map[id.Gallery]*modelTags{}}
}

func (m *metaModel) next() uint64 { m.seq++; return m.seq }

// once advances the clock and returns a remembered operation, or Conflict.
func (m *metaModel) once(w metafsm.Write, by id.Tenant, kind string, scope id.UUID) (done metaOp, status metafsm.Status) {
	m.clock = max(m.clock, w.Time)
	m.ops = slices.DeleteFunc(m.ops, func(o metaOp) bool {
		keep := int64(10 * 60_000)
		if o.write.Keyed {
			keep = 24 * 3_600_000
		}
		return o.write.Time+keep < m.clock
	})
	for _, o := range m.ops {
		switch {
		case o.write.Op != w.Op:
		case o.kind == kind && o.scope == scope && o.write.Request == w.Request:
			return o, metafsm.Replayed
		default:
			return o, metafsm.Conflict
		}
	}
	o := metaOp{write: w, kind: kind, scope: scope}
	if o.owner = by; m.tenant(by) >= 0 && m.changes(by, w.Keyed) >= m.most(by, metafsm.QuotaChanges) {
		return o, metafsm.OverChanges
	}
	return o, 0
}

func (m *metaModel) remember(o metaOp) {
	o.write.Time = m.clock
	m.ops = append(m.ops, o)
}

func (m *metaModel) tenant(t id.Tenant) int {
	return slices.IndexFunc(m.tenants, func(x metafsm.Tenant) bool { return x.ID == t })
}

// gallery returns the place of a gallery that is not under deletion, or −1.
func (m *metaModel) gallery(g id.Gallery) int {
	return slices.IndexFunc(m.galleries, func(x metafsm.Gallery) bool { return x.ID == g && !x.Deleting })
}

func (m *metaModel) application(a id.Application) int {
	return slices.IndexFunc(m.applications, func(x metafsm.Application) bool { return x.ID == a })
}

func (m *metaModel) taken(a metafsm.Application) bool {
	return slices.ContainsFunc(m.applications, func(x metafsm.Application) bool { return x.ID == a.ID || x.KeyMAC == a.KeyMAC })
}

func (m *metaModel) found(c metafsm.Found) metafsm.FoundAnswer {
	if m.cluster != nil {
		return metafsm.FoundAnswer{Status: metafsm.Exists, Cluster: *m.cluster}
	}
	m.cluster, m.level = &c.Cluster, max(metafsm.LevelFirst, m.level)
	return metafsm.FoundAnswer{Status: metafsm.Done, Cluster: c.Cluster}
}

func (m *metaModel) putShards(c metafsm.PutShards) metafsm.PutShardsAnswer {
	ignoreMoved := cmpopts.IgnoreFields(metafsm.ShardVoters{}, "Moved") // set by the machine
	same := m.shards.Epoch == c.Previous+1 && cmp.Equal(m.shards.Shards, c.Shards, ignoreMoved)
	if m.shards.Epoch != c.Previous && !same {
		return metafsm.PutShardsAnswer{Status: metafsm.StaleEpoch, Map: m.shards}
	}
	next := slices.Clone(c.Shards)
	for i, v := range next {
		for _, old := range m.shards.Shards {
			if old.Shard == v.Shard {
				next[i].Moved = old.Moved || !cmp.Equal(old.Voters, v.Voters, cmpopts.SortSlices(func(a, b id.Member) bool { return a < b }))
			}
		}
	}
	if !same {
		m.shards = metafsm.ShardMap{Epoch: c.Previous + 1, Shards: next}
	}
	return metafsm.PutShardsAnswer{Status: metafsm.Done, Map: m.shards}
}

func (m *metaModel) createTenant(c metafsm.CreateTenant) metafsm.CreateTenantAnswer {
	if r := m.restoration; r != nil && r.Whole && !r.Done {
		return metafsm.CreateTenantAnswer{Status: metafsm.Restoring}
	}
	o, status := m.once(c.Write, id.Tenant{}, "tenant", id.UUID{})
	if status == metafsm.Replayed {
		if i := m.tenant(o.tenant); i >= 0 {
			return metafsm.CreateTenantAnswer{Status: status, Tenant: m.tenants[i]}
		}
		return metafsm.CreateTenantAnswer{Status: metafsm.UnknownTenant}
	}
	if status != 0 {
		return metafsm.CreateTenantAnswer{Status: status}
	}
	for _, t := range m.tenants {
		if t.Name == c.Tenant.Name {
			return metafsm.CreateTenantAnswer{Status: metafsm.Exists, Tenant: t}
		}
	}
	if m.tenant(c.Tenant.ID) >= 0 {
		return metafsm.CreateTenantAnswer{Status: metafsm.Conflict}
	}
	c.Tenant.Seq = m.next()
	m.tenants = append(m.tenants, c.Tenant)
	o.tenant = c.Tenant.ID
	m.remember(o)
	return metafsm.CreateTenantAnswer{Status: metafsm.Done, Tenant: c.Tenant}
}

func (m *metaModel) putAccessKey(c metafsm.PutAccessKey) metafsm.StatusAnswer {
	if m.tenant(c.Key.Tenant) < 0 || m.leaving(c.Key.Tenant) {
		return metafsm.StatusAnswer{Status: metafsm.UnknownTenant}
	}
	if !m.wrapped(c.Key.SealedSecret) {
		return metafsm.StatusAnswer{Status: metafsm.OtherKey}
	}
	found := false
	for i, k := range m.keys {
		if k.ID != c.Key.ID {
			continue
		}
		if k.Tenant != c.Key.Tenant {
			return metafsm.StatusAnswer{Status: metafsm.Conflict}
		}
		if k.State == metafsm.KeyRevoked && c.Key.State == metafsm.KeyLive && m.beyond(c.Key.Tenant, metafsm.QuotaAccessKeys, 1) {
			return metafsm.StatusAnswer{Status: metafsm.OverAccessKeys}
		}
		c.Key.Created, c.Key.Used = k.Created, k.Used
		found = true
		m.keys = slices.Delete(m.keys, i, i+1)
		break
	}
	if !found && c.Key.State == metafsm.KeyLive && m.beyond(c.Key.Tenant, metafsm.QuotaAccessKeys, 1) {
		return metafsm.StatusAnswer{Status: metafsm.OverAccessKeys}
	}
	m.keys = append(m.keys, c.Key)
	return metafsm.StatusAnswer{Status: metafsm.Done}
}

func (m *metaModel) noteKeyUses(c metafsm.NoteKeyUses) metafsm.StatusAnswer {
	for _, u := range c.Uses {
		for i, k := range m.keys {
			if k.ID == u.Key && k.State == metafsm.KeyLive {
				m.keys[i].Used = max(k.Used, u.At)
			}
		}
	}
	return metafsm.StatusAnswer{Status: metafsm.Done}
}

func (m *metaModel) deleteAccessKey(c metafsm.DeleteAccessKey) metafsm.StatusAnswer {
	for i, k := range m.keys {
		if k.ID != c.Key {
			continue
		}
		if k.Tenant != c.Tenant {
			return metafsm.StatusAnswer{Status: metafsm.Conflict}
		}
		m.keys = slices.Delete(m.keys, i, i+1)
		break
	}
	return metafsm.StatusAnswer{Status: metafsm.Done}
}

func (m *metaModel) free(g metafsm.Gallery) uint32 {
	free := g.Size
	for _, of := range m.grants[g.ID] {
		free -= of.Total - of.Reclaimed
	}
	return free
}

// current returns a gallery of a generation, or the status that says why there is none.
func (m *metaModel) current(g id.Gallery, generation uint32) (metafsm.Gallery, metafsm.Status) {
	i := m.gallery(g)
	switch {
	case i < 0:
		return metafsm.Gallery{}, metafsm.UnknownGallery
	case m.galleries[i].Generation != generation:
		return metafsm.Gallery{}, metafsm.StaleGeneration
	}
	if m.grants[g] == nil {
		m.grants[g] = map[id.Shard]metafsm.ShardGrant{}
	}
	return m.galleries[i], metafsm.Done
}

func (m *metaModel) grant(c metafsm.Grant) metafsm.GrantAnswer {
	g, status := m.current(c.Gallery, c.Generation)
	if status != metafsm.Done {
		return metafsm.GrantAnswer{Status: status}
	}
	if g.Settled > 0 && m.cluster != nil && slices.Index(metafsm.ShardsOf(g.ID, m.cluster.Shards, m.cluster.Shards), c.Shard) >= g.Settled {
		return metafsm.GrantAnswer{Status: metafsm.Unsettled}
	}
	of := m.grants[g.ID][c.Shard]
	if of.Shard = c.Shard; of.Total <= c.Have {
		of.Total += min(c.Want, m.free(g))
	}
	if of.Total > 0 {
		m.grants[g.ID][c.Shard] = of
	}
	return metafsm.GrantAnswer{Status: metafsm.Done, Total: of.Total}
}

func (m *metaModel) reclaim(c metafsm.Reclaim) metafsm.ReclaimAnswer {
	g, status := m.current(c.Gallery, c.Generation)
	if status != metafsm.Done {
		return metafsm.ReclaimAnswer{Status: status}
	}
	of := m.grants[g.ID][c.Shard]
	if c.Returned > of.Total {
		return metafsm.ReclaimAnswer{Status: metafsm.Conflict, Free: m.free(g)}
	}
	if of.Total > 0 {
		of.Reclaimed = max(of.Reclaimed, c.Returned)
		m.grants[g.ID][c.Shard] = of
	}
	return metafsm.ReclaimAnswer{Status: metafsm.Done, Free: m.free(g)}
}

func (m *metaModel) settle(c metafsm.Settle) metafsm.StatusAnswer {
	g, status := m.current(c.Gallery, c.Generation)
	switch {
	case status != metafsm.Done:
		return metafsm.StatusAnswer{Status: status}
	case g.Epoch != c.Epoch:
		return metafsm.StatusAnswer{Status: metafsm.StaleEpoch}
	}
	m.galleries[m.gallery(g.ID)].Settled = 0
	return metafsm.StatusAnswer{Status: metafsm.Done}
}
