package admin

import (
	"context"
	"net/http"
	"net/url"

	"facet/node/backup"
	"facet/node/wire"
)

// Backup starts a backup on the first node that answers, and returns its id
// (BackupProgress.ID).
func (c *Client) Backup(ctx context.Context, o wire.BackupOrder) (string, error) {
	return c.begin(ctx, wire.PathBackup, o)
}

// VerifyBackup begins to verify a backup, and gives the id.
func (c *Client) VerifyBackup(ctx context.Context, q wire.BackupQuery) (string, error) {
	return c.begin(ctx, wire.PathBackupVerify, q)
}

// Restore begins to restore a backup, and gives the id.
func (c *Client) Restore(ctx context.Context, o wire.RestoreOrder) (string, error) {
	return c.begin(ctx, wire.PathRestore, o)
}

func (c *Client) begin(ctx context.Context, path string, in any) (string, error) {
	var p wire.BackupProgress
	err := c.any(ctx, call{method: http.MethodPost, path: path, in: in, out: &p})
	return p.ID, err
}

// BackupProgress says how far the one that was begun is, or the last of these if that is longer
// ago, on the first node that answers.
func (c *Client) BackupProgress(ctx context.Context, begun string) (wire.BackupProgress, error) {
	var p wire.BackupProgress
	return p, c.any(ctx, call{method: http.MethodGet, path: wire.PathBackup + "?" + url.Values{"id": {begun}}.Encode(), out: &p})
}

// Backups lists the backups in a folder.
func (c *Client) Backups(ctx context.Context, q wire.BackupQuery) ([]backup.Listed, error) {
	var list []backup.Listed
	return list, c.any(ctx, call{method: http.MethodPost, path: wire.PathBackupList, in: q, out: &list})
}

// Erasures returns the erased subjects that a backup lists.
func (c *Client) Erasures(ctx context.Context, q wire.BackupQuery) ([]backup.Erasure, error) {
	var list []backup.Erasure
	return list, c.any(ctx, call{method: http.MethodPost, path: wire.PathErasures, in: q, out: &list})
}
