package shardfsm

import (
	"facet/internal/id"
	"facet/raftfsm/operation"
)

// A shard does not know the quotas of tenants. So the proposer sends a tenant's share with
// each command that takes room. It is the quota for one shard (metafsm.QuotaWrites and the
// following), as the proposer's replica of meta has it.

// Share bounds the operations that a shard remembers for a tenant. The zero Share bounds and
// counts nothing.
type Share struct {
	Tenant id.Tenant `cbor:"1,keyasint"`
	// Writes is the most operations of one kind, keyed or not.
	Writes uint32 `cbor:"2,keyasint"`
}

// JobShare bounds the jobs that a shard keeps for a tenant. The zero JobShare bounds and
// counts nothing.
type JobShare struct {
	Tenant id.Tenant `cbor:"1,keyasint"`
	Jobs   uint32    `cbor:"2,keyasint"`
	Items  uint32    `cbor:"3,keyasint"`
}

// Taken is how much of its shares a tenant has taken on a shard.
type Taken struct {
	Writes uint32 `cbor:"1,keyasint"`
	Jobs   uint32 `cbor:"2,keyasint"`
	Items  uint32 `cbor:"3,keyasint"`
	// Records are those with contents in the tenant's audit log, if the shard has it.
	Records uint64 `cbor:"40,keyasint,omitempty"`
}

// Larger returns the larger numbers of two shards.
func (t Taken) Larger(of Taken) Taken {
	return Taken{Writes: max(t.Writes, of.Writes), Jobs: max(t.Jobs, of.Jobs), Items: max(t.Items, of.Items), Records: max(t.Records, of.Records)}
}

// Taken returns how much of its shares each tenant has taken.
func (m *Machine) Taken() map[id.Tenant]Taken {
	taken := make(map[id.Tenant]Taken)
	for t, n := range m.jobs.Owned() {
		taken[t] = Taken{Jobs: uint32(n.Jobs), Items: uint32(n.Items)}
	}
	for t, n := range m.audit.Held() {
		of := taken[t]
		of.Records = n
		taken[t] = of
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for t, n := range m.ops.Owners() {
		of := taken[t]
		of.Writes = uint32(n)
		taken[t] = of
	}
	return taken
}

// RoomAt returns when the machine has room for an operation that is new: for the group's own
// bound, or for the tenant's share, with the status that refuses the operation until then.
// The status is 0 if the operation has room at the time now, or was done before. Apply does
// not depend on it: no command need come at now.
func (m *Machine) RoomAt(now int64, name operation.Name, share Share) (at int64, refusal Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, done := m.ops.Recall(name.Op); done {
		return 0, 0
	}
	if at = m.ops.RoomAt(name); at > now {
		return at, OpsFull
	}
	if share.Tenant.IsZero() {
		return 0, 0
	}
	if at = m.ops.OwnerRoomAt(share.Tenant, name.Keyed, int(share.Writes)); at > now {
		return at, OverWrites
	}
	return 0, 0
}
