package fsmtest_test

import (
	"cmp"
	"fmt"
	"slices"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

// knownLevel is the level that the machines of the test know.
const knownLevel = int(metafsm.Level + 2)

func nodeID(n int) id.Node { return id.Node{UUID: id.UUID{0xf, byte(n)}} }

// node returns a PutNode, a SetNodeState, a RaiseLevel, a SetReplicas or a SetSigner.
func (w *metaWorld) node() []byte {
	switch w.IntN(11) {
	case 10:
		c := metafsm.SetSigner{Signer: metafsm.Signer{Public: [32]byte{byte(w.IntN(9))}, WrappedSeed: [][]byte{nil, {1, 2}, {3}}[w.IntN(3)]}}
		return send(w, metafsm.SetSignerOp, c, w.model.setSigner)
	case 0, 1, 2, 3:
		n := nodeID(w.IntN(4))
		c := metafsm.PutNode{Node: metafsm.Node{
			ID: n, Member: id.NewMember(n, uint32(w.IntN(2))), Name: fmt.Sprint("node ", w.IntN(3)), Joined: int64(w.IntN(9)),
			Zone: fmt.Sprint("zone ", w.IntN(2)), Level: w.level(),
		}}
		return send(w, metafsm.PutNodeOp, c, w.model.putNode)
	case 4, 5, 6:
		c := metafsm.SetNodeState{Node: nodeID(w.IntN(5)), State: metafsm.NodeState(w.IntN(3))}
		if w.IntN(3) == 0 {
			c.Heir = nodeID(w.IntN(5))
		}
		return send(w, metafsm.SetNodeStateOp, c, w.model.setNodeState)
	case 7:
		return send(w, metafsm.SetReplicasOp, metafsm.SetReplicas{Replicas: w.IntN(6)}, w.model.setReplicas)
	default:
		return send(w, metafsm.RaiseLevelOp, metafsm.RaiseLevel{Level: w.level()}, w.model.raiseLevel)
	}
}

// level returns a level that the machines know, seldom one of before.
func (w *metaWorld) level() uint32 {
	if w.IntN(8) == 0 {
		return uint32(w.IntN(int(metafsm.LevelFirst)))
	}
	return metafsm.LevelFirst + uint32(w.IntN(knownLevel-int(metafsm.LevelFirst)+1))
}

// metaBackup is a backup whose restoration is in progress.
type metaBackup struct {
	name    [32]byte
	whole   bool
	records []metafsm.Copied
}

func (w *metaWorld) newBackup() {
	w.backups++
	b := &metaBackup{name: [32]byte{byte(w.backups)}, whole: w.IntN(3) == 0}
	t := metafsm.Tenant{ID: tenantID(4 + w.IntN(2)), Name: fmt.Sprint("tenant ", 3+w.IntN(4)), Seq: uint64(w.IntN(9)), Quotas: w.ownQuotas(), State: metafsm.TenantState(w.IntN(8) / 7)}
	b.records = append(b.records, metafsm.Copied{Tenant: &t})
	for range 1 + w.IntN(3) {
		g := w.gallery()
		g.ID, g.Seq, g.Created = galleryID(20+w.IntN(6)), uint64(w.IntN(9)), 7
		if w.IntN(4) > 0 {
			g.Tenant = t.ID
		}
		a := w.application()
		a.Tenant, a.Gallery, a.Seq = g.Tenant, g.ID, uint64(w.IntN(9))
		of := &metafsm.GrantsOf{Gallery: g.ID, Grants: []metafsm.ShardGrant{{Shard: 1, Total: 1 + uint32(w.IntN(120)), Reclaimed: 1}, {Shard: 2, Total: 1}}}
		k := &metafsm.AccessKey{ID: fmt.Sprint("key ", w.IntN(8)), Tenant: g.Tenant, Role: 1, SealedSecret: []byte{1}, Created: 5}
		b.records = append(b.records, metafsm.Copied{Gallery: &g}, metafsm.Copied{Grants: of}, metafsm.Copied{Application: &a}, metafsm.Copied{AccessKey: k})
	}
	w.backup = b
}

// load returns a Load that starts or continues a restoration, or that is wrong.
func (w *metaWorld) load() []byte {
	now := w.model.restoration
	if w.backup == nil || w.IntN(30) == 0 || now != nil && now.Done && w.IntN(2) == 0 {
		w.newBackup()
	}
	b := w.backup
	c := metafsm.Load{Backup: b.name, Whole: b.whole, Time: w.time}
	if now != nil && now.Backup == b.name {
		c.Have = min(now.Loaded, uint64(len(b.records)))
		for _, r := range b.records[c.Have:min(uint64(len(b.records)), c.Have+uint64(w.IntN(8)))] {
			c.Records = append(c.Records, r.Encode())
		}
		c.Done = c.Have+uint64(len(c.Records)) == uint64(len(b.records))
	}
	switch w.IntN(16) {
	case 0:
		c.Have++
	case 1:
		c.Whole = !c.Whole
	case 2:
		c.Backup[1]++
	}
	return send(w, metafsm.LoadOp, c, w.model.load)
}

func (m *metaModel) node(n id.Node) int {
	return slices.IndexFunc(m.nodes, func(r metafsm.Node) bool { return r.ID == n })
}

func (m *metaModel) putNode(c metafsm.PutNode) metafsm.StatusAnswer {
	if c.Node.Level < max(metafsm.LevelFirst, m.level) {
		return metafsm.StatusAnswer{Status: metafsm.TooOld}
	}
	if i := m.node(c.Node.ID); i >= 0 {
		old := m.nodes[i]
		c.Node.Joined, c.Node.State, c.Node.Heir = old.Joined, old.State, old.Heir
		m.nodes[i] = c.Node
	} else {
		m.nodes = append(m.nodes, c.Node)
	}
	return metafsm.StatusAnswer{Status: metafsm.Done}
}

func (m *metaModel) setNodeState(c metafsm.SetNodeState) metafsm.StatusAnswer {
	i, heir := m.node(c.Node), m.node(c.Heir)
	removed := func(i int) bool { return m.nodes[i].State == metafsm.NodeRemoved }
	unknown := metafsm.StatusAnswer{Status: metafsm.UnknownNode}
	switch {
	case i < 0, !c.Heir.IsZero() && (heir < 0 || removed(heir)):
		return unknown
	case removed(i) && (c.State != metafsm.NodeRemoved || c.Heir != m.nodes[i].Heir):
		return unknown // removal is final
	}
	m.nodes[i].State, m.nodes[i].Heir = c.State, c.Heir
	return metafsm.StatusAnswer{Status: metafsm.Done}
}

func (m *metaModel) raiseLevel(c metafsm.RaiseLevel) metafsm.RaiseLevelAnswer {
	known := slices.ContainsFunc(m.nodes, func(n metafsm.Node) bool {
		return n.State != metafsm.NodeRemoved && n.Level < c.Level
	})
	status := metafsm.Done
	switch {
	case c.Level <= max(metafsm.LevelFirst, m.level):
	case known:
		status = metafsm.TooOld
	default:
		m.level = c.Level
	}
	return metafsm.RaiseLevelAnswer{Status: status, Level: max(metafsm.LevelFirst, m.level)}
}

func (m *metaModel) setReplicas(c metafsm.SetReplicas) metafsm.StatusAnswer {
	if m.cluster != nil && c.Replicas > 0 {
		set := *m.cluster
		if set.Replicas != c.Replicas || set.Wanted > c.Replicas {
			set.Replicas, set.Wanted = c.Replicas, c.Replicas
		}
		m.cluster = &set
	}
	return metafsm.StatusAnswer{Status: metafsm.Done}
}

func (m *metaModel) setSigner(c metafsm.SetSigner) metafsm.StatusAnswer {
	switch {
	case m.cluster == nil || m.cluster.Signer.WrappedSeed != nil || c.Signer.WrappedSeed == nil:
		return metafsm.StatusAnswer{Status: metafsm.Exists}
	case !m.wrapped(c.Signer.WrappedSeed):
		return metafsm.StatusAnswer{Status: metafsm.OtherKey}
	}
	set := *m.cluster
	set.Signer = c.Signer
	m.cluster = &set
	return metafsm.StatusAnswer{Status: metafsm.Done}
}

// load applies a Load.
func (m *metaModel) load(c metafsm.Load) metafsm.LoadAnswer {
	answer := func(s metafsm.Status) metafsm.LoadAnswer {
		if m.restoration == nil {
			return metafsm.LoadAnswer{Status: s}
		}
		return metafsm.LoadAnswer{Status: s, Restoration: *m.restoration}
	}
	begins := c.Have == 0 && len(c.Records) == 0 && !c.Done
	now := m.restoration
	switch {
	case now == nil, now.Done && now.Backup != c.Backup, now.Done && !now.Whole && begins:
		if !begins || c.Whole && len(m.tenants) > 0 {
			return answer(metafsm.Exists)
		}
		m.restoration = &metafsm.Restoration{Backup: c.Backup, Whole: c.Whole, Time: c.Time}
		return answer(metafsm.Done)
	case now.Backup != c.Backup || now.Whole != c.Whole:
		return answer(metafsm.Exists)
	case now.Done || c.Have != now.Loaded:
		return answer(metafsm.Done)
	}
	next := *now
	m.restoration = &next
	for _, raw := range c.Records {
		r, err := metafsm.CopiedOf(raw)
		if err == nil && !m.wrapped(secretOf(r)) {
			return answer(metafsm.OtherKey)
		}
		if err != nil || !m.restore(r) {
			return answer(metafsm.Conflict)
		}
		next.Loaded++
	}
	next.Done = c.Done
	return answer(metafsm.Done)
}

func secretOf(c metafsm.Copied) []byte {
	switch {
	case c.Gallery != nil:
		return c.Gallery.WrappedKey
	case c.AccessKey != nil:
		return c.AccessKey.SealedSecret
	case c.Application != nil:
		return c.Application.SealedKey
	}
	return nil
}

// restore adds a record of a backup, unless it contradicts the other records.
func (m *metaModel) restore(c metafsm.Copied) bool {
	switch {
	case c.Tenant != nil:
		if i := m.tenant(c.Tenant.ID); i >= 0 {
			return m.tenants[i].Name == c.Tenant.Name && !m.leaving(c.Tenant.ID)
		}
		c.Tenant.Seq = m.next()
		if slices.ContainsFunc(m.tenants, func(t metafsm.Tenant) bool { return t.Name == c.Tenant.Name }) {
			return false
		}
		m.tenants = append(m.tenants, *c.Tenant)
	case c.Gallery != nil && m.leaving(c.Gallery.Tenant), c.AccessKey != nil && m.leaving(c.AccessKey.Tenant):
		return false
	case c.Gallery != nil:
		c.Gallery.Seq = m.next()
		if m.tenant(c.Gallery.Tenant) < 0 || slices.ContainsFunc(m.galleries, func(g metafsm.Gallery) bool {
			return g.ID == c.Gallery.ID || g.Tenant == c.Gallery.Tenant && g.Name == c.Gallery.Name
		}) {
			return false
		}
		m.galleries = append(m.galleries, *c.Gallery)
	case c.AccessKey != nil:
		if m.tenant(c.AccessKey.Tenant) < 0 || slices.ContainsFunc(m.keys, func(k metafsm.AccessKey) bool { return k.ID == c.AccessKey.ID }) {
			return false
		}
		m.keys = append(m.keys, *c.AccessKey)
	case c.Application != nil:
		c.Application.Seq = m.next()
		g := m.gallery(c.Application.Gallery)
		if g < 0 || m.galleries[g].Tenant != c.Application.Tenant || m.taken(*c.Application) {
			return false
		}
		m.applications = append(m.applications, *c.Application)
	case c.Grants != nil:
		return m.restoreGrants(*c.Grants)
	}
	return true
}

func (m *metaModel) restoreGrants(c metafsm.GrantsOf) bool {
	i := m.gallery(c.Gallery)
	if i < 0 || len(m.grants[c.Gallery]) > 0 {
		return false
	}
	sum := uint32(0)
	for _, of := range c.Grants {
		sum += of.Total - of.Reclaimed
	}
	if sum > m.galleries[i].Size {
		return false
	}
	m.grants[c.Gallery] = map[id.Shard]metafsm.ShardGrant{}
	for _, of := range c.Grants {
		m.grants[c.Gallery][of.Shard] = of
	}
	return true
}

// sortedNodes returns the nodes in the order of Machine.Nodes.
func (m *metaModel) sortedNodes() []metafsm.Node {
	list := append([]metafsm.Node{}, m.nodes...)
	slices.SortFunc(list, func(a, b metafsm.Node) int {
		return cmp.Or(cmp.Compare(a.Joined, b.Joined), slices.Compare(a.ID.UUID[:], b.ID.UUID[:]))
	})
	return list
}
