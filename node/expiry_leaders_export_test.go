package node

import (
	"context"
	"testing"
	"time"

	"facet/internal/id"
	"facet/router"
)

// aheadClock is a clock that is ahead of the node's, and that the others confirm.
type aheadClock struct{ by time.Duration }

func (c aheadClock) Now() time.Time             { return time.Now().Add(c.by) }
func (c aheadClock) Trusted() (time.Time, bool) { return c.Now(), true }

// ExpireMeeting expires the events and the cases that are due after a time, on the shards that this node leads. It
// calls meets between the answer to each expiry and its record. An error is one of a leader that has changed.
func (n *Node) ExpireMeeting(t *testing.T, after time.Duration, meets func()) {
	t.Helper()
	r := router.New(router.Config{
		Groups: n.replicas, Peers: n.peers, Extractor: n.cfg.Extractor, Table: n.cfg.Table, Master: n.keys.Master(), Log: n.log, Memory: n.limits,
		Clock: aheadClock{after}, Acted: func(a router.Act) {
			meets()
			recordAct(n, a)
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := r.ExpireEvents(ctx); err != nil {
		t.Logf("node %s expires events: %v", n.cfg.Name, err)
	}
	if err := r.RedactDuplicates(ctx); err != nil {
		t.Logf("node %s expires cases: %v", n.cfg.Name, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// HandOver lets another node lead shard 1, and waits until it does.
func (n *Node) HandOver(t *testing.T, to *Node) {
	t.Helper()
	g, ok := n.replicas.Group(id.Shard(1))
	other, there := to.replicas.Group(id.Shard(1))
	if !ok || !there {
		t.Error("a node has no replica of shard 1")
		return
	}
	if err := g.Transfer(t.Context(), to.member); err != nil {
		t.Errorf("hand shard 1 over: %v", err)
		return
	}
	for late := time.Now().Add(10 * time.Second); !other.IsLeader(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Error("shard 1 has no new leader")
			return
		}
	}
}
