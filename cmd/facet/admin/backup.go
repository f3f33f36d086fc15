package admin

import (
	"context"
	"net/http"

	"facet/node"
	"facet/node/backup"
)

// Backup begins a backup on the first node that answers.
func (c *Client) Backup(ctx context.Context, o node.BackupOrder) error {
	return c.any(ctx, call{method: http.MethodPost, path: node.PathBackup, in: o})
}

// VerifyBackup begins to verify a backup.
func (c *Client) VerifyBackup(ctx context.Context, q node.BackupQuery) error {
	return c.any(ctx, call{method: http.MethodPost, path: node.PathBackupVerify, in: q})
}

// Restore begins to restore a backup.
func (c *Client) Restore(ctx context.Context, o node.RestoreOrder) error {
	return c.any(ctx, call{method: http.MethodPost, path: node.PathRestore, in: o})
}

// BackupProgress says how far the last of these is, on the first node that answers.
func (c *Client) BackupProgress(ctx context.Context) (node.BackupProgress, error) {
	var p node.BackupProgress
	return p, c.any(ctx, call{method: http.MethodGet, path: node.PathBackup, out: &p})
}

// Backups lists the backups in a folder.
func (c *Client) Backups(ctx context.Context, q node.BackupQuery) ([]backup.Listed, error) {
	var list []backup.Listed
	return list, c.any(ctx, call{method: http.MethodPost, path: node.PathBackupList, in: q, out: &list})
}

// Erasures gives the subjects that a backup knows to be erased.
func (c *Client) Erasures(ctx context.Context, q node.BackupQuery) ([]backup.Erasure, error) {
	var list []backup.Erasure
	return list, c.any(ctx, call{method: http.MethodPost, path: node.PathErasures, in: q, out: &list})
}
