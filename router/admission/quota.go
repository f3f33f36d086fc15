package admission

import (
	"context"
	"math"
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/operation"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
)

// Share returns what a tenant may have a shard remember, for a command.
func Share(r *cluster.Cluster, of id.Tenant) shardfsm.Share {
	return shardfsm.Share{Tenant: of, Writes: most(r.Groups.Meta(), of, metafsm.QuotaWrites)}
}

// Room refuses a write that its shard has no room to remember. It is asked before the models
// run on an image; the command decides. This node's replica may say yes. A no is the leader's,
// since a replica that is behind may not know that the write was done before.
func Room(ctx context.Context, r *cluster.Cluster, at id.Shard, of id.Tenant, w router.Write) error {
	q := roomQuery{Op: w.Operation, Keyed: w.Keyed, Share: Share(r, of)}
	if m, ok := r.Groups.Shard(at); ok && q.ask(m).Refusal == 0 {
		return nil
	}
	return leaderRoom(ctx, r, at, q)
}

// leaderRoom refuses a write if its shard's leader has no room to remember it.
func leaderRoom(ctx context.Context, r *cluster.Cluster, at id.Shard, q roomQuery) error {
	if q.Share.Tenant.IsZero() {
		return nil // a node does not know the method
	}
	a, err := calls.CallLeader(ctx, r.Calls, shardRoom, at, q)
	switch {
	case err != nil:
		return err
	case a.Refusal == shardfsm.OverWrites:
		return OverQuota(metafsm.QuotaWrites, waitUntil(a.At))
	case a.Refusal != 0:
		return operationsFull(waitUntil(a.At))
	default:
		return nil
	}
}

// Refusal returns the error for the status of a write on a shard, and nil for success. The
// shard says from when on it has room.
func Refusal(ctx context.Context, r *cluster.Cluster, s shardfsm.Status, at id.Shard, of id.Tenant, w router.Write) error {
	if s == shardfsm.OverWrites || s == shardfsm.OpsFull {
		q := roomQuery{Op: w.Operation, Keyed: w.Keyed, Share: Share(r, of)}
		if err := leaderRoom(ctx, r, at, q); err != nil {
			return err
		}
	}
	return WriteError(s)
}

// EnrolRefusal is Refusal for the answer to a write of an event.
func EnrolRefusal(ctx context.Context, r *cluster.Cluster, a shardfsm.RegisterAnswer, at id.Shard, of id.Tenant, w router.Write) error {
	if a.Status == shardfsm.Refused {
		return ExternalTaken(a.Subject)
	}
	return Refusal(ctx, r, a.Status, at, of, w)
}

// roomQuery asks whether a shard has room to remember a write.
type roomQuery struct {
	Op    id.Operation   `cbor:"1,keyasint"`
	Keyed bool           `cbor:"2,keyasint,omitempty"`
	Share shardfsm.Share `cbor:"3,keyasint"`
}

func (q roomQuery) ask(m *shardfsm.Machine) (a roomAnswer) {
	a.At, a.Refusal = m.RoomAt(time.Now().UnixMilli(), operation.Name{Op: q.Op, Keyed: q.Keyed}, q.Share)
	return a
}

// roomAnswer is the result of shardfsm.Machine.RoomAt.
type roomAnswer struct {
	At      int64           `cbor:"1,keyasint,omitempty"`
	Refusal shardfsm.Status `cbor:"2,keyasint,omitempty"`
}

// shardRoom answers a roomQuery on the shard's leader.
var shardRoom = cluster.MachineRead("shard.room", func(m *shardfsm.Machine, q roomQuery) (roomAnswer, error) {
	return q.ask(m), nil
})

// waitUntil returns the time from now until the time at in milliseconds since 1970, at least
// a second.
func waitUntil(at int64) time.Duration {
	return max(time.Until(time.UnixMilli(at)), time.Second)
}

// JobShare returns what a tenant may have a shard keep of jobs, as Share.
func JobShare(r *cluster.Cluster, of id.Tenant) shardfsm.JobShare {
	meta := r.Groups.Meta()
	return shardfsm.JobShare{Tenant: of, Jobs: most(meta, of, metafsm.QuotaJobs), Items: most(meta, of, metafsm.QuotaJobItems)}
}

func most(meta *metafsm.Machine, of id.Tenant, q metafsm.Quota) uint32 {
	n, _ := meta.Most(of, q)
	return uint32(min(n, math.MaxUint32))
}

// StoredExpiry returns the stored form of a time of expiry. The zero time, none, is 0.
func StoredExpiry(clock router.Clock, at time.Time) (int64, error) {
	if at.IsZero() {
		return 0, nil
	}
	if !at.After(clock.Now()) {
		return 0, router.Errorf(router.InvalidRequest, "", "the time in expires must be in the future")
	}
	return at.UnixMilli(), nil
}

// MemoryRetry is the Retry-After of a registration that is refused for lack of
// memory.
const MemoryRetry = time.Minute
