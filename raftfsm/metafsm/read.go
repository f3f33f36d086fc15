package metafsm

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"facet/internal/id"
)

// Cluster gives what was founded; ok is false before that.
func (m *Machine) Cluster() (c Cluster, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.state.cluster == nil {
		return Cluster{}, false
	}
	return *m.state.cluster, true
}

// Nodes gives the nodes that joined, in order of joining, then of ids.
func (m *Machine) Nodes() []Node {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([]Node, 0, len(m.state.nodes))
	for _, n := range m.state.nodes {
		out = append(out, *n)
	}
	slices.SortFunc(out, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Joined, b.Joined), bytes.Compare(a.ID.UUID[:], b.ID.UUID[:]))
	})
	return out
}

// Node returns the record of a node that joined.
func (m *Machine) Node(node id.Node) (Node, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if n := m.state.nodes[node]; n != nil {
		return *n, true
	}
	return Node{}, false
}

// Shards gives the shard map; its epoch is 0 if there is none yet.
func (m *Machine) Shards() ShardMap {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return ShardMap{m.state.shards.Epoch, cloneVoters(m.state.shards.Shards)}
}

// Tenants gives all tenants in order of creation.
func (m *Machine) Tenants() []Tenant {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([]Tenant, 0, len(m.state.tenants))
	for _, t := range m.state.tenants {
		out = append(out, *t.record)
	}
	slices.SortFunc(out, func(a, b Tenant) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// AccessKey gives the access key of that id, unless it is revoked.
func (m *Machine) AccessKey(keyID string) (AccessKey, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if k := m.state.keys[keyID]; k != nil && k.State == KeyLive {
		return k.clone(), true
	}
	return AccessKey{}, false
}

// AccessKeys gives the access keys of a tenant, revoked ones included, in order of
// their ids.
func (m *Machine) AccessKeys(t id.Tenant) []AccessKey {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out []AccessKey
	for _, keyID := range slices.Sorted(maps.Keys(m.state.keys)) {
		if k := m.state.keys[keyID]; k.Tenant == t {
			out = append(out, k.clone())
		}
	}
	return out
}

// ApplicationByMAC gives the application whose API key has that MAC.
func (m *Machine) ApplicationByMAC(mac [32]byte) (Application, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if a := m.state.applications[m.state.byMAC[mac]]; a != nil {
		return a.clone(), true
	}
	return Application{}, false
}

// Application gives the application of that id.
func (m *Machine) Application(a id.Application) (Application, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if record := m.state.applications[a]; record != nil {
		return record.clone(), true
	}
	return Application{}, false
}

// Gallery gives the gallery of that id. One that is being deleted is unknown to this
// and all other reads but Deleting.
func (m *Machine) Gallery(g id.Gallery) (Gallery, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if record := m.state.gallery(g); record != nil {
		return record.clone(), true
	}
	return Gallery{}, false
}

// GalleryByName gives a tenant's gallery of that name.
func (m *Machine) GalleryByName(t id.Tenant, name string) (Gallery, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if of := m.state.tenants[t]; of != nil {
		if g, ok := of.byName[name]; ok && !m.state.galleries[g].Deleting {
			return m.state.galleries[g].clone(), true
		}
	}
	return Gallery{}, false
}

// Galleries gives a tenant's galleries in order of creation.
func (m *Machine) Galleries(t id.Tenant) []Gallery {
	m.mu.RLock()
	defer m.mu.RUnlock()
	of := m.state.tenants[t]
	if of == nil {
		return nil
	}
	out := make([]Gallery, 0, len(of.galleries))
	for _, g := range of.galleries {
		if record := m.state.gallery(g); record != nil {
			out = append(out, record.clone())
		}
	}
	return out
}

// Deleting gives the galleries of all tenants whose deletion has begun and is not
// over, in order of creation.
func (m *Machine) Deleting() []Gallery {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out []Gallery
	for _, g := range m.state.galleries {
		if g.Deleting {
			out = append(out, g.clone())
		}
	}
	slices.SortFunc(out, func(a, b Gallery) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// Applications gives a tenant's applications in order of creation.
func (m *Machine) Applications(t id.Tenant) []Application {
	m.mu.RLock()
	defer m.mu.RUnlock()
	of := m.state.tenants[t]
	if of == nil {
		return nil
	}
	out := make([]Application, 0, len(of.applications))
	for _, a := range of.applications {
		out = append(out, m.state.applications[a].clone())
	}
	return out
}

// Grants gives what was granted of a gallery, in order of shards.
func (m *Machine) Grants(g id.Gallery) []ShardGrant {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Clone(m.state.grants[g])
}

// FreeSlots counts the slots of a gallery that are granted to no shard.
func (m *Machine) FreeSlots(g id.Gallery) uint32 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if record := m.state.gallery(g); record != nil {
		return m.state.free(record)
	}
	return 0
}
