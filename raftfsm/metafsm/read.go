package metafsm

import (
	"bytes"
	"cmp"
	"slices"

	"facet/internal/id"
)

// find returns a copy of the record that pick returns. ok is false if that is nil.
func find[T any](m *Machine, pick func(*state) *T) (record T, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if r := pick(m.state); r != nil {
		return own(*r), true
	}
	return record, false
}

// list returns copies of the records that pick returns.
func list[T any](m *Machine, pick func(*state) []*T) []T {
	m.mu.RLock()
	defer m.mu.RUnlock()
	records := pick(m.state)
	out := make([]T, len(records))
	for i, r := range records {
		out[i] = own(*r)
	}
	return out
}

// own returns r with its own copies of secrets and lists, so that a caller may change it.
func own[T any](r T) T {
	switch r := any(&r).(type) {
	case *AccessKey:
		r.SealedSecret = bytes.Clone(r.SealedSecret)
		r.Galleries, r.Networks = slices.Clone(r.Galleries), slices.Clone(r.Networks)
	case *Gallery:
		r.WrappedKey = bytes.Clone(r.WrappedKey)
	case *Application:
		r.SealedKey = bytes.Clone(r.SealedKey)
	case *Tenant:
		r.Quotas, r.Audit.WrappedKey = slices.Clone(r.Quotas), slices.Clone(r.Audit.WrappedKey)
	}
	return r
}

// Cluster returns the decisions of the founding. ok is false before the founding.
func (m *Machine) Cluster() (c Cluster, ok bool) {
	return find(m, func(st *state) *Cluster { return st.cluster })
}

// Nodes returns the nodes that joined, in order of joining, then of ids.
func (m *Machine) Nodes() []Node {
	return list(m, func(st *state) []*Node {
		return sorted(st.nodes, func(a, b *Node) int {
			return cmp.Or(cmp.Compare(a.Joined, b.Joined), bytes.Compare(a.ID.UUID[:], b.ID.UUID[:]))
		})
	})
}

// Node returns the record of a node that joined.
func (m *Machine) Node(node id.Node) (Node, bool) {
	return find(m, func(st *state) *Node { return st.nodes[node] })
}

// Shards returns the shard map. Its epoch is 0 if there is none yet.
func (m *Machine) Shards() ShardMap {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return ShardMap{m.state.shards.Epoch, cloneVoters(m.state.shards.Shards)}
}

// Tenants returns all tenants in order of creation.
func (m *Machine) Tenants() []Tenant {
	return list(m, func(st *state) (records []*Tenant) {
		for _, t := range st.tenants {
			records = append(records, t.record)
		}
		slices.SortFunc(records, func(a, b *Tenant) int { return cmp.Compare(a.Seq, b.Seq) })
		return records
	})
}

// TenantState returns the state of a tenant. One that does not exist is TenantDeleting.
func (m *Machine) TenantState(t id.Tenant) TenantState {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if of := m.state.tenants[t]; of != nil {
		return of.record.State
	}
	return TenantDeleting
}

// AccessKey returns the access key with that id, unless it is revoked.
func (m *Machine) AccessKey(keyID string) (AccessKey, bool) {
	return find(m, func(st *state) *AccessKey {
		if k := st.keys[keyID]; k != nil && k.State == KeyLive {
			return k
		}
		return nil
	})
}

// AccessKeys returns the access keys of a tenant in order of their ids, revoked ones
// included.
func (m *Machine) AccessKeys(t id.Tenant) []AccessKey {
	return list(m, func(st *state) []*AccessKey {
		keys := sorted(st.keys, func(a, b *AccessKey) int { return cmp.Compare(a.ID, b.ID) })
		return slices.DeleteFunc(keys, func(k *AccessKey) bool { return k.Tenant != t })
	})
}

// ApplicationByMAC returns the application whose API key has that MAC.
func (m *Machine) ApplicationByMAC(mac [32]byte) (Application, bool) {
	return find(m, func(st *state) *Application { return st.applications[st.byMAC[mac]] })
}

// Application returns the application with that id.
func (m *Machine) Application(a id.Application) (Application, bool) {
	return find(m, func(st *state) *Application { return st.applications[a] })
}

// Gallery returns the gallery with that id. Only Deleting returns a gallery under
// deletion.
func (m *Machine) Gallery(g id.Gallery) (Gallery, bool) {
	return find(m, func(st *state) *Gallery { return st.gallery(g) })
}

// SubjectTemplates reports whether the gallery with that id has the setting of this name.
func (m *Machine) SubjectTemplates(g id.Gallery) bool {
	gallery, known := m.Gallery(g)
	return known && gallery.SubjectTemplates
}

// GalleryByName returns a tenant's gallery with that name.
func (m *Machine) GalleryByName(t id.Tenant, name string) (Gallery, bool) {
	return find(m, func(st *state) *Gallery {
		if of := st.tenants[t]; of != nil {
			return st.gallery(of.byName[name])
		}
		return nil
	})
}

// Galleries returns a tenant's galleries in order of creation.
func (m *Machine) Galleries(t id.Tenant) []Gallery {
	return list(m, func(st *state) (records []*Gallery) {
		if of := st.tenants[t]; of != nil {
			for _, g := range of.galleries {
				if record := st.gallery(g); record != nil {
					records = append(records, record)
				}
			}
		}
		return records
	})
}

// Deleting returns the galleries of all tenants that are under deletion, in order of
// creation.
func (m *Machine) Deleting() []Gallery {
	return list(m, func(st *state) (records []*Gallery) {
		for _, g := range st.galleries {
			if g.Deleting {
				records = append(records, g)
			}
		}
		slices.SortFunc(records, bySeq)
		return records
	})
}

// Applications returns a tenant's applications in order of creation.
func (m *Machine) Applications(t id.Tenant) []Application {
	return list(m, func(st *state) (records []*Application) {
		if of := st.tenants[t]; of != nil {
			for _, a := range of.applications {
				records = append(records, st.applications[a])
			}
		}
		return records
	})
}

// Grants returns the slots of a gallery that each shard was granted, in order of shards.
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
