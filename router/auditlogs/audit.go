// Package auditlogs reads and writes the audit logs of tenants and of the cluster.
package auditlogs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/secrets"
	"facet/shard/auditlog"
	"facet/shard/seal"
)

// AuditRequests serves requests about the audit logs of tenants. A tenant's log has one home shard.
type AuditRequests struct {
	cluster *cluster.Cluster
	cached  auditKeys
}

// auditKeys caches the keys of tenants.
type auditKeys struct {
	mu sync.Mutex // guards of
	of map[id.Tenant]*seal.Key
}

// auditHome returns the shard that has the audit log of a tenant. It depends on nothing that changes.
func (r *AuditRequests) auditHome(tenant id.Tenant) id.Shard {
	record, _ := r.cluster.Groups.Meta().Cluster()
	return id.Shard(metafsm.Jump(binary.BigEndian.Uint64(tenant.UUID[8:]), record.Shards) + 1)
}

// Audit returns how a tenant's audit log is kept. Mode is AuditOff before the cluster is founded.
func (r *AuditRequests) Audit(tenant id.Tenant) metafsm.Audit {
	return metafsm.AuditOf(r.cluster.Groups.Meta(), tenant)
}

// AuditKey returns the key that seals a tenant's records and names subjects in them. The error is NotFound
// if the tenant has no log.
func (r *AuditRequests) AuditKey(tenant id.Tenant) (*seal.Key, error) {
	return r.auditKey(tenant, func() ([]byte, error) { return nil, auditError(auditlog.ErrUnknown) })
}

// BeginAudit returns the key as AuditKey does. It begins the log if the tenant has none.
func (r *AuditRequests) BeginAudit(ctx context.Context, tenant id.Tenant) (*seal.Key, error) {
	return r.auditKey(tenant, func() ([]byte, error) { return r.beginAudit(ctx, tenant) })
}

// auditKey unwraps the key of a tenant, or the one that missing returns if the tenant has none.
func (r *AuditRequests) auditKey(tenant id.Tenant, missing func() ([]byte, error)) (*seal.Key, error) {
	r.cached.mu.Lock()
	known, ok := r.cached.of[tenant]
	r.cached.mu.Unlock()
	if ok {
		return known, nil
	}
	wrapped := r.Audit(tenant).WrappedKey
	if len(wrapped) == 0 {
		var err error
		if wrapped, err = missing(); err != nil {
			return nil, err
		}
	}
	raw, err := r.cluster.Master.Unwrap(wrapped, []byte(secrets.PurposeAudit+tenant.String()))
	if err != nil {
		return nil, fmt.Errorf("unwrap the audit key of tenant %s: %w", tenant, err)
	}
	k, err := seal.NewKey(raw)
	if err != nil {
		return nil, err
	}
	r.cached.mu.Lock()
	defer r.cached.mu.Unlock()
	if r.cached.of == nil || len(r.cached.of) >= cluster.KeysMax {
		r.cached.of = make(map[id.Tenant]*seal.Key)
	}
	r.cached.of[tenant] = k
	return k, nil
}

// beginAudit returns the wrapped audit key of a tenant, which it makes, and begins the log.
func (r *AuditRequests) beginAudit(ctx context.Context, tenant id.Tenant) ([]byte, error) {
	if len(r.Audit(tenant).Former) == 0 { // otherwise FollowAudit begins it, with an entry under the key
		if err := r.beginLog(ctx, shardfsm.BeginLog{Tenant: tenant}); err != nil {
			return nil, err
		}
	}
	var raw [32]byte
	cluster.MustRandom(raw[:])
	set := metafsm.SetAuditKey{Tenant: tenant, WrappedKey: r.cluster.Master.Wrap(raw[:], []byte(secrets.PurposeAudit+tenant.String()))}
	clear(raw[:])
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.SetAuditKeyOp, set)
	switch {
	case err != nil:
		return nil, err
	case a.Status == metafsm.Done:
		return set.WrappedKey, nil
	case a.Status == metafsm.OtherKey:
		return nil, secrets.ErrRetired
	case a.Status != metafsm.Exists:
		return nil, admission.TenantError("give a tenant its audit key", a.Status)
	}
	if err := r.cluster.SyncMeta(ctx); err != nil { // another node was first
		return nil, err
	}
	return r.Audit(tenant).WrappedKey, nil
}

// beginLog begins a log.
func (r *AuditRequests) beginLog(ctx context.Context, c shardfsm.BeginLog) error {
	begun, err := calls.CallLeader(ctx, r.cluster.Calls, auditBegin, r.auditHome(c.Tenant), c)
	if err == nil && begun.Status != shardfsm.Done {
		err = fmt.Errorf("begin the audit log of tenant %s: the shard answered %v", c.Tenant, begun.Status)
	}
	return err
}

// FollowAudit begins the log of a tenant that was restored from a backup, unless there is one. first is its
// first entry, which names the former log (metafsm.Audit.Former).
func (r *AuditRequests) FollowAudit(ctx context.Context, tenant id.Tenant, first auditlog.Entry) error {
	return r.beginLog(ctx, shardfsm.BeginLog{Tenant: tenant, Former: r.Audit(tenant).Former, First: []auditlog.Entry{first}})
}

// AppendAudit appends a batch to its tenant's audit log. A batch that comes again has no second
// effect. After an error the batch may be in the log, and the writer sends it again. The error wraps
// auditlog.ErrWriter if the log does not know the writer's entries before the batch.
func (r *AuditRequests) AppendAudit(ctx context.Context, b auditlog.Batch) (first uint64, err error) {
	a, err := calls.CallLeader(ctx, r.cluster.Calls, auditAppend, r.auditHome(b.Tenant), shardfsm.AppendLog(b))
	switch {
	case err != nil:
		return 0, err
	case a.Status == shardfsm.Done, a.Status == shardfsm.Replayed:
		return a.First, nil
	case a.Status == shardfsm.UnknownLog:
		return 0, router.Errorf(router.NotFound, "", "the tenant has no audit log")
	case a.Status == shardfsm.WriterGap:
		return 0, fmt.Errorf("append to the audit log of tenant %s: %w", b.Tenant, auditlog.ErrWriter)
	case a.Status == shardfsm.LogsFull:
		return 0, &router.Error{Kind: router.Busy, Message: "the tenant has too many writes of unknown outcome", RetryAfter: calls.RetryLater}
	default:
		return 0, fmt.Errorf("append to the audit log of tenant %s: the shard answered %v", b.Tenant, a.Status)
	}
}

// AuditMost returns how many records with contents a tenant's log may have. metafsm.QuotaMax is no bound.
func (r *AuditRequests) AuditMost(tenant id.Tenant) uint64 {
	most, _ := r.cluster.Groups.Meta().Most(tenant, metafsm.QuotaAuditRecords)
	return most
}

// AuditHead returns the head of a tenant's log. The error is NotFound if there is none.
func (r *AuditRequests) AuditHead(ctx context.Context, tenant id.Tenant) (auditlog.Head, error) {
	return calls.CallLeader(ctx, r.cluster.Calls, auditHead, r.auditHome(tenant), tenant)
}

// AuditEntries returns entries of a tenant's log from number first on, at most AuditReadMax.
func (r *AuditRequests) AuditEntries(ctx context.Context, tenant id.Tenant, first uint64, most int) ([]auditlog.Entry, error) {
	return calls.CallLeader(ctx, r.cluster.Calls, auditRead, r.auditHome(tenant), auditRange{Tenant: tenant, First: first, Most: most})
}

// AuditHashes returns the hashes of a tile of a tenant's log, as auditlog.Book.Hashes does.
func (r *AuditRequests) AuditHashes(ctx context.Context, tenant id.Tenant, level int, first uint64, most int) ([]auditlog.Hash, error) {
	return calls.CallLeader(ctx, r.cluster.Calls, auditHashes, r.auditHome(tenant), auditRange{tenant, first, most, level})
}

// auditRange names entries or hashes of a log.
type auditRange struct {
	Tenant id.Tenant `cbor:"1,keyasint"`
	First  uint64    `cbor:"2,keyasint,omitempty"`
	Most   int       `cbor:"3,keyasint"`
	Level  int       `cbor:"4,keyasint,omitempty"`
}

var (
	auditBegin  = cluster.ShardCommand("audit.begin", shardfsm.BeginLogOp, nil)
	auditAppend = cluster.ShardCommand("audit.append", shardfsm.AppendLogOp, nil)
	auditHead   = bookRead("audit.head", func(k *auditlog.Book, tenant id.Tenant) (auditlog.Head, error) { return k.Head(tenant) })
	auditRead   = bookRead("audit.read", func(k *auditlog.Book, q auditRange) ([]auditlog.Entry, error) {
		return k.Read(q.Tenant, q.First, min(q.Most, router.AuditReadMax))
	})
	auditHashes = bookRead("audit.hashes", func(k *auditlog.Book, q auditRange) ([]auditlog.Hash, error) {
		return k.Hashes(q.Tenant, q.Level, q.First, min(q.Most, auditlog.TileWidth))
	})
)

// bookRead returns the method that reads the audit logs of a shard on its leader.
func bookRead[Q, A any](name string, read func(*auditlog.Book, Q) (A, error)) cluster.Method[Q, A] {
	return cluster.MachineRead(name, func(m *shardfsm.Machine, q Q) (A, error) {
		a, err := read(m.Audit(), q)
		return a, auditError(err)
	})
}

// auditError returns the error of a read of an audit log as the router's callers know it.
func auditError(err error) error {
	switch {
	case errors.Is(err, auditlog.ErrUnknown):
		return router.Errorf(router.NotFound, "", "the tenant has no audit log yet")
	case errors.Is(err, auditlog.ErrNoTile):
		return router.Errorf(router.NotFound, "", "the audit log has no such tile")
	default:
		return err
	}
}

// SetAudit sets when the records of a tenant's requests are durable, and for how many days they keep their
// contents. 0 days leave the present number. The errors are those of SetTenantState.
func (r *AuditRequests) SetAudit(ctx context.Context, tenant id.Tenant, mode metafsm.AuditMode, days uint32) error {
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.SetAuditOp, metafsm.SetAudit{Tenant: tenant, Mode: mode, Days: days})
	if err != nil {
		return err
	}
	if err := admission.TenantError("set a tenant's audit", a.Status); err != nil {
		return err
	}
	return r.cluster.SyncMeta(ctx) // so that this node's view has the change
}
