package membership

import (
	"bytes"
	"errors"
	"fmt"
	"log"
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
	if meta.Member == e.m.self {
		return nil
	}
	e.m.mu.RLock()
	defer e.m.mu.RUnlock()
	if own := e.m.own.Cluster; !own.IsZero() && !meta.Cluster.IsZero() && own != meta.Cluster {
		return fmt.Errorf("it belongs to cluster %s", meta.Cluster)
	}
	if _, known := e.m.members[meta.Member]; !known && len(e.m.members) >= membersMax {
		return errors.New("too many members")
	}
	return nil
}

func (e events) NotifyJoin(n *memberlist.Node)   { e.take(n, "node joined") }
func (e events) NotifyUpdate(n *memberlist.Node) { e.take(n, "") }

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

// take keeps what n says of itself.
func (e events) take(n *memberlist.Node, message string) {
	meta, err := read(n)
	if err != nil || meta.Member == e.m.self {
		return // NotifyAlive has refused the former; Update knows better about self
	}
	e.m.mu.Lock()
	e.m.members[meta.Member] = meta
	e.m.notify()
	e.m.mu.Unlock()
	e.m.book.remember(meta.Member, meta.Address)
	if message != "" {
		e.m.log.Info(message, "node", n.Name, "address", meta.Address)
	}
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

// bridge gives memberlist a logger that writes to l: its errors as warnings, since
// a node that can't be reached heals by itself, and all else for debugging.
func bridge(l *slog.Logger) *log.Logger { return log.New(bridgeWriter{l}, "", 0) }

type bridgeWriter struct{ log *slog.Logger }

// Write takes one line: "[LEVEL] memberlist: text".
func (w bridgeWriter) Write(b []byte) (int, error) {
	text := strings.TrimSpace(string(b))
	if rest, ok := strings.CutPrefix(text, "[ERR] memberlist: "); ok {
		w.log.Warn("gossip", "err", rest)
		return len(b), nil
	}
	w.log.Debug("gossip", "err", text)
	return len(b), nil
}
