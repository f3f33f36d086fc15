package node

import (
	"context"

	"facet/node/backup"
	"facet/node/bucket"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// Restoration gives what this node's replica of meta knows of a restoration.
func (n *Node) Restoration() (metafsm.Restoration, bool) { return n.groups.metaState.Restoration() }

// Erasures gives what a backup knows to be erased.
func (n *Node) Erasures(ctx context.Context, q BackupQuery) ([]backup.Erasure, error) {
	f, err := bucket.OpenFolder(ctx, q.From)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return backup.Deleted(ctx, f, q.Name, n.master)
}

// NewTenantKey makes an access key of a tenant.
func (n *Node) NewTenantKey(ctx context.Context, tenant string) (router.AccessKey, error) {
	t, err := n.router.TenantNamed(ctx, tenant)
	if err != nil {
		return router.AccessKey{}, err
	}
	return n.router.CreateAccessKey(ctx, t, router.RoleAdmin)
}

// ChangeMaster has the node use other cluster keys, the first one to wrap.
func (n *Node) ChangeMaster(secrets ...[]byte) error { return n.master.Change(secrets) }
