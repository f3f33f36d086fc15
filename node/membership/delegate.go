package membership

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/hashicorp/memberlist"

	"facet/internal/id"
)

// delegate is what memberlist asks for. Nothing but metadata travels: whatever
// must arrive goes over streams.
type delegate struct{ m *Membership }

// NodeMeta gives the own metadata, which Update has bounded.
func (d delegate) NodeMeta(int) []byte {
	d.m.mu.RLock()
	defer d.m.mu.RUnlock()
	return bytes.Clone(d.m.ownWire)
}

func (delegate) NotifyMsg([]byte)                {}
func (delegate) GetBroadcasts(int, int) [][]byte { return nil }
func (delegate) LocalState(bool) []byte          { return nil }
func (delegate) MergeRemoteState([]byte, bool)   {}

// events is what memberlist tells. It holds its lock meanwhile, so nothing here
// waits or calls back.
type events struct{ m *Membership }

// NotifyAlive refuses nodes whose metadata is not in order, or that belong to
// another cluster, before anything is kept of them.
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

// NotifyLeave forgets a node that left or died; its address is kept elsewhere.
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

// take keeps what n says of itself, unless it is this node: Update knows better.
// NotifyAlive has refused what can't be read.
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

// read gives a node's metadata, which must be its own.
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

// bridge takes memberlist's log: its errors become warnings, since a node that
// can't be reached heals by itself, and all else is for debugging.
type bridge struct{ log *slog.Logger }

// Write takes one line: "date time [LEVEL] memberlist: text".
func (w bridge) Write(b []byte) (int, error) {
	level, text, _ := strings.Cut(strings.TrimSpace(string(b)), " memberlist: ")
	if strings.HasSuffix(level, "[ERR]") {
		w.log.Warn("gossip", "err", text)
	} else {
		w.log.Debug("gossip", "err", text)
	}
	return len(b), nil
}
