package node

import (
	"bytes"
	"sync/atomic"

	"facet/internal/id"
	"facet/node/replicas"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// behind has a node's groups with an old state of meta, until a caller asks for meta's
// group.
type behind struct {
	*replicas.Replicas
	then   *metafsm.Machine
	caught atomic.Bool
}

func (b *behind) Meta() *metafsm.Machine {
	if b.caught.Load() {
		return b.Replicas.Meta()
	}
	return b.then
}

// Group returns the replica of a group; who asks for meta's waits for it (router.syncMeta).
func (b *behind) Group(number id.Shard) (*raftfsm.Group, bool) {
	if number == id.Meta {
		b.caught.Store(true)
	}
	return b.Replicas.Group(number)
}

// RouterBehind returns a router on this node that sees no change of meta after the call
// unless it syncs. Close it before the node.
func (n *Node) RouterBehind() (*router.Router, error) {
	frozen, err := n.replicas.Meta().Freeze()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := frozen.WriteTo(&b); err != nil {
		return nil, err
	}
	then := metafsm.New()
	if err := then.Restore(&b); err != nil {
		return nil, err
	}
	return router.New(router.Config{
		Groups: &behind{Replicas: n.replicas, then: then}, Peers: n.peers, Extractor: n.cfg.Extractor, Table: n.cfg.Table,
		Master: n.keys.Master(), Log: n.log, Bulk: true, Memory: n.limits,
	}), nil
}

// AccessTo returns the first application of a tenant's gallery.
func (n *Node) AccessTo(tenant id.Tenant, gallery string) (a router.Access, ok bool) {
	m := n.replicas.Meta()
	g, known := m.GalleryByName(tenant, gallery)
	for _, app := range m.Applications(tenant) {
		if known && app.Gallery == g.ID {
			return router.Access{Tenant: tenant, Gallery: g.ID, Application: app.ID}, true
		}
	}
	return a, false
}
