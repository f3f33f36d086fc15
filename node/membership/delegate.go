package membership

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hashicorp/memberlist"

	"facet/internal/id"
)

// delegate answers memberlist's questions. Gossip carries nothing but metadata:
// data that must arrive uses streams.
type delegate struct{ m *Membership }

// NodeMeta returns this node's metadata. Update has checked its size.
func (d delegate) NodeMeta(int) []byte {
	d.m.mu.RLock()
	defer d.m.mu.RUnlock()
	return bytes.Clone(d.m.ownWire)
}

func (delegate) NotifyMsg([]byte)                {}
func (delegate) GetBroadcasts(int, int) [][]byte { return nil }
func (delegate) LocalState(bool) []byte          { return nil }
func (delegate) MergeRemoteState([]byte, bool)   {}

// events receives memberlist's events. memberlist holds its lock during a call, so
// these methods neither wait nor call back.
type events struct{ m *Membership }

// NotifyAlive refuses nodes with malformed metadata and nodes of another cluster,
// before memberlist records them.
func (e events) NotifyAlive(n *memberlist.Node) error {
	meta, err := read(n)
	if err != nil {
		return err
	}
	e.m.mu.RLock()
	defer e.m.mu.RUnlock()
	if meta.Member == e.m.self {
		if meta.Incarnation > e.m.own.Incarnation && e.m.twin.CompareAndSwap(false, true) {
			e.m.log.Error("a second process runs with this node's identity: was its data directory copied?",
				"node", n.Name, "address", meta.Address)
		}
		return nil
	}
	if own := e.m.own.Cluster; !own.IsZero() && !meta.Cluster.IsZero() && own != meta.Cluster {
		return fmt.Errorf("it belongs to cluster %s", meta.Cluster)
	}
	if _, known := e.m.members[meta.Member]; !known && len(e.m.members) >= membersMax {
		return errors.New("too many members")
	}
	return nil
}

func (e events) NotifyJoin(n *memberlist.Node) {
	if meta, ok := e.take(n); ok {
		e.m.log.Info("node joined", "node", n.Name, "address", meta.Address)
	}
}

func (e events) NotifyUpdate(n *memberlist.Node) { e.take(n) }

// NotifyLeave removes a node that left or died. The address book keeps its address.
func (e events) NotifyLeave(n *memberlist.Node) {
	member := id.Member(n.Name)
	if member == e.m.self {
		return
	}
	e.m.mu.Lock()
	meta, ok := e.m.members[member]
	delete(e.m.members, member)
	e.m.notify()
	e.m.mu.Unlock()
	if ok {
		e.m.book.remember(member, meta.Address)
		e.m.log.Info("node left", "node", n.Name)
	}
}

// take returns the metadata of n and whether to record it. It skips this node,
// whose metadata Update knows better. NotifyAlive has refused malformed metadata.
func (e events) take(n *memberlist.Node) (Meta, bool) {
	meta, err := read(n)
	if err != nil || meta.Member == e.m.self {
		return Meta{}, false
	}
	e.m.mu.Lock()
	e.m.members[meta.Member] = meta
	e.m.notify()
	e.m.mu.Unlock()
	e.m.book.remember(meta.Member, meta.Address)
	return meta, true
}

// read returns the metadata of a node, which must name that node.
func read(n *memberlist.Node) (Meta, error) {
	meta, err := decodeMeta(n.Meta)
	if err != nil {
		return Meta{}, err
	}
	if string(meta.Member) != n.Name {
		return Meta{}, fmt.Errorf("%w: of another member", ErrMeta)
	}
	return meta, nil
}
