// Package cluster has what all parts of a router share: calls to other nodes, this node's replica
// of meta, keys and the clock.
//
// Cluster trusts its replica of meta for a short time, and looks things up by ConfirmedLookup.
// Methods between nodes that change or read a shard are made by ShardCommand, ShardRead and
// ShardReadAny. The package knows nothing of what requests ask for.
package cluster

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"facet/internal/id"
	"facet/router"
	"facet/router/calls"
	"facet/shard/seal"
)

// Every node refuses a revoked or deleted key within two seconds. Meta's log brings
// the change to a node, mostly in milliseconds. But a node that is cut off, was away
// or has a slow disk does not notice that the log is late. So a record in this
// node's replica of meta counts only if the replica was level with meta's leader a
// moment ago:
//
//	0 ────────── refreshAfter ─────────────── trustMax ──────────→  age of that moment
//	 it counts  │ it counts; the replica      │ the request waits until the
//	            │ catches up in passing       │ replica has caught up, or fails
//
// The time of the last contact (raftfsm.Status) is no substitute: after a partition
// heartbeats come back seconds before the log does.
const (
	refreshAfter = 500 * time.Millisecond
	trustMax     = 1500 * time.Millisecond
)

// syncing is this node's last successful round of catching up with meta's leader, and the
// node's own writes to meta. It is safe for concurrent use.
type syncing struct {
	last   atomic.Pointer[syncRound]
	writes atomic.Uint64 // that have ended
}

type syncRound struct {
	began  time.Time
	writes uint64 // that had ended before
}

// begin returns a round that begins now.
func (s *syncing) begin() *syncRound { return &syncRound{time.Now(), s.writes.Load()} }

// age returns the time since the last round began. It returns trustMax when there was none since this
// node's last write, which the replica may lack.
func (s *syncing) age() time.Duration {
	last := s.last.Load()
	if last == nil || last.writes != s.writes.Load() {
		return trustMax
	}
	return time.Since(last.began)
}

// keys caches the unwrapped data keys of galleries. Each key belongs to one
// generation of its gallery.
type keys struct {
	mu  sync.Mutex
	key map[keyName]*seal.Key
}

type keyName struct {
	gallery    id.Gallery
	generation uint32
}

// Cluster is what all parts of a router share. It is safe for concurrent use.
type Cluster struct {
	Groups router.Groups
	Peers  router.Peers
	Calls  *calls.Caller
	Master *seal.Master
	Log    *slog.Logger
	Clock  router.Clock
	Acted  func(router.Act)

	keys   keys
	sync   Rounds
	synced syncing

	followMu sync.Mutex // guards follows
	follows  map[id.Shard]*Rounds
}
