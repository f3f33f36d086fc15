package node

import (
	"context"
	"errors"

	"facet/internal/id"
	"facet/node/backup"
	"facet/node/bucket"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/shard/seal"
)

// Restoration returns the restoration that this node's replica of meta records.
func (n *Node) Restoration() (metafsm.Restoration, bool) { return n.replicas.Meta().Restoration() }

// Erasures returns the subjects that a backup knows as erased.
func (n *Node) Erasures(ctx context.Context, q wire.BackupQuery) ([]backup.Erasure, error) {
	f, err := bucket.OpenFolder(ctx, q.From)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return backup.Deleted(ctx, f, q.Name, n.keys.Master())
}

// NewTenantKey makes an access key of a tenant.
func (n *Node) NewTenantKey(ctx context.Context, tenant string) (router.AccessKey, error) {
	t, err := n.router.TenantNamed(ctx, tenant)
	if err != nil {
		return router.AccessKey{}, err
	}
	return n.router.CreateAccessKey(ctx, t, router.KeyTerms{Role: router.RoleAdmin})
}

// RestoreMeeting restores a backup and calls meets once, before meta loads its records.
func (n *Node) RestoreMeeting(ctx context.Context, q wire.RestoreOrder, meets func()) (backup.Restored, error) {
	from, err := seal.NewMaster(q.Key)
	if len(q.Key) == 0 {
		from, err = n.keys.Master(), nil
	}
	if err != nil {
		return backup.Restored{}, err
	}
	f, err := bucket.OpenFolder(ctx, q.From)
	if err != nil {
		return backup.Restored{}, err
	}
	name, err := backup.Newest(ctx, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return backup.Restored{}, err
	}
	return backup.Restore(ctx, backup.RestoreOptions{URL: q.From, Name: name, From: from, To: n.keys.Master()}, &meeting{n.backups.Target(), meets})
}

type meeting struct {
	backup.Target
	meets func()
}

func (m *meeting) Propose(ctx context.Context, group id.Shard, cmd []byte) ([]byte, error) {
	if group == id.Meta && len(cmd) > 512 && m.meets != nil { // more than what begins a restoration
		m.meets()
		m.meets = nil
	}
	return m.Target.Propose(ctx, group, cmd)
}

// ReplaceKey is Rotate without its checks, as if it had started before a restoration.
func (n *Node) ReplaceKey(ctx context.Context, o wire.RingOrder) (wire.RingAnswer, error) {
	return n.keys.ReplaceKey(ctx, o)
}

// ChangeMaster changes the node's cluster keys. The first one wraps.
func (n *Node) ChangeMaster(secrets ...[]byte) error { return n.keys.Master().Change(secrets) }
