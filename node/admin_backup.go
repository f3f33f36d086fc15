package node

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"facet/node/backup"
	"facet/node/bucket"
	"facet/node/wire"
	"facet/router"
)

const (
	// backupNameFormat is the name of a backup that was given none: its time.
	backupNameFormat = "20060102T150405Z"
	// restoreBodyMax bounds an order with a list of erasures.
	restoreBodyMax = 64 << 20
)

// backups is the one thing about backups that this node does, and the one before: who waits for
// that may ask when a scheduled one has begun.
type backups struct {
	mu          sync.Mutex
	now, before wire.BackupProgress
}

// begin starts a thing on a goroutine of the node's, unless one runs.
func (n *Node) begin(what string, f func(ctx context.Context, p func(done, total int)) (*wire.BackupResult, *backup.Restored, error)) bool {
	b := &n.backups
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now.Running || n.ctx.Err() != nil {
		return false
	}
	b.before, b.now = b.now, wire.BackupProgress{ID: rand.Text(), What: what, Running: true, Began: time.Now().UTC()}
	n.work.Go(func() { // ends with n.ctx
		result, restored, err := f(n.ctx, b.progress)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.now.Running, b.now.Ended = false, time.Now().UTC()
		b.now.Backup, b.now.Restored = result, restored
		if err != nil {
			b.now.Error, b.now.Backup, b.now.Restored = err.Error(), nil, nil
			n.log.Error("it did not succeed", "job", what, "err", err)
			return
		}
		n.log.Info("it is done", "job", what, "ms", time.Since(b.now.Began).Milliseconds())
	})
	return true
}

func (b *backups) progress(done, total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now.Done, b.now.Total = done, total
}

func (b *backups) get(id string) wire.BackupProgress {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id != "" && id == b.before.ID {
		return b.before
	}
	return b.now
}

func (n *Node) backupRoutes(routes *http.ServeMux) {
	n.handle(routes, "GET "+wire.PathBackup, func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, n.backups.get(r.URL.Query().Get("id")))
	})
	n.handle(routes, "POST "+wire.PathBackup, n.serveBackup)
	n.handle(routes, "POST "+wire.PathBackupVerify, n.serveVerify)
	n.handle(routes, "POST "+wire.PathBackupList, n.serveBackupList)
	n.handle(routes, "POST "+wire.PathErasures, n.serveErasures)
	n.handle(routes, "POST "+wire.PathRestore, n.serveRestore)
}

// started answers whether a thing was begun.
func (n *Node) started(w http.ResponseWriter, begun bool) {
	if !begun {
		refuse(w, http.StatusConflict, "this node makes, verifies or restores a backup already")
		return
	}
	answer(w, http.StatusAccepted, n.backups.get(""))
}

func (n *Node) serveBackup(w http.ResponseWriter, r *http.Request) {
	var q wire.BackupOrder
	if !readBody(w, r, &q) {
		return
	}
	n.started(w, n.begin("backup", func(ctx context.Context, p func(int, int)) (*wire.BackupResult, *backup.Restored, error) {
		m, err := n.Backup(ctx, q, p)
		return &wire.BackupResult{Head: m.Head, Digest: m.Digest, Events: m.Active()}, nil, err
	}))
}

func (n *Node) serveVerify(w http.ResponseWriter, r *http.Request) {
	var q wire.BackupQuery
	if !readBody(w, r, &q) {
		return
	}
	n.started(w, n.begin("verify", func(ctx context.Context, p func(int, int)) (*wire.BackupResult, *backup.Restored, error) {
		m, err := n.Verify(ctx, q, p)
		return &wire.BackupResult{Head: m.Head, Digest: m.Digest, Events: m.Active()}, nil, err
	}))
}

// Verify reads all of a backup.
func (n *Node) Verify(ctx context.Context, q wire.BackupQuery, progress func(done, total int)) (m backup.Manifest, err error) {
	master, err := n.masterOf(q.Key)
	if err != nil {
		return m, err
	}
	if q.Name, err = n.named(ctx, q.From, q.Name); err != nil {
		return m, err
	}
	f, err := bucket.OpenFolder(ctx, q.From)
	if err != nil {
		return m, err
	}
	defer func() { _ = f.Close() }() // what was written is closed by then
	return backup.Verify(ctx, f, q.Name, master, progress)
}

func (n *Node) serveRestore(w http.ResponseWriter, r *http.Request) {
	var q wire.RestoreOrder
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, restoreBodyMax)).Decode(&q); err != nil {
		refuse(w, http.StatusBadRequest, "the body is not the JSON that this needs")
		return
	}
	n.started(w, n.begin("restore", func(ctx context.Context, p func(int, int)) (*wire.BackupResult, *backup.Restored, error) {
		done, err := n.Restore(ctx, q, p)
		return nil, &done, err
	}))
}

func (n *Node) serveBackupList(w http.ResponseWriter, r *http.Request) {
	serveFolder(n, w, r, "list backups", func(ctx context.Context, f *bucket.Folder, _ wire.BackupQuery) ([]backup.Listed, error) {
		return backup.List(ctx, f)
	})
}

func (n *Node) serveErasures(w http.ResponseWriter, r *http.Request) {
	serveFolder(n, w, r, "read erasures", func(ctx context.Context, f *bucket.Folder, q wire.BackupQuery) ([]backup.Erasure, error) {
		master, err := n.masterOf(q.Key)
		if err == nil && q.Name == "" {
			q.Name, err = backup.Newest(ctx, f)
		}
		if err != nil {
			return nil, err
		}
		return backup.Deleted(ctx, f, q.Name, master)
	})
}

// serveFolder answers a question about a folder of backups.
func serveFolder[T any](n *Node, w http.ResponseWriter, r *http.Request, what string, do func(context.Context, *bucket.Folder, wire.BackupQuery) (T, error)) {
	var q wire.BackupQuery
	if !readBody(w, r, &q) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	out, err := func() (out T, err error) {
		f, err := bucket.OpenFolder(ctx, q.From)
		if err != nil {
			return out, err
		}
		defer func() { _ = f.Close() }() // nothing was written
		return do(ctx, f, q)
	}()
	if err != nil { // the operator gave the address and can mend it
		n.explain(w, what, router.Errorf(router.InvalidRequest, "", "%v", fmt.Errorf("%s: %w", what, err)))
		return
	}
	answer(w, http.StatusOK, out)
}
