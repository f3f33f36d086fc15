package admin

import (
	"context"
	"fmt"
	"net/http"

	"facet/node/wire"
	"facet/router"
)

// restoreBodyMax is the most bytes of an order to restore, which may list erasures.
const restoreBodyMax = 64 << 20

// backupRoutes returns the handlers of requests about backups.
func (p *Port) backupRoutes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET " + wire.PathBackup: func(w http.ResponseWriter, r *http.Request) {
			answer(w, http.StatusOK, p.cfg.Backups.Progress(r.URL.Query().Get("id")))
		},
		"POST " + wire.PathBackup:       started(p, adminBodyMax, "start a backup", p.cfg.Backups.StartBackup),
		"POST " + wire.PathBackupVerify: started(p, adminBodyMax, "verify a backup", p.cfg.Backups.StartVerify),
		"POST " + wire.PathRestore:      started(p, restoreBodyMax, "start a restoration", p.cfg.Backups.StartRestore),
		"POST " + wire.PathBackupList:   post(p, http.StatusOK, "list backups", inFolder("list backups", p.cfg.Backups.List)),
		"POST " + wire.PathErasures:     post(p, http.StatusOK, "read erasures", inFolder("read erasures", p.cfg.Backups.Erasures)),
	}
}

// started returns a handler for an order in the request's body. The handler calls start with
// the order and answers with the progress.
func started[Q any](p *Port, bodyMax int64, what string, start func(Q) bool) http.HandlerFunc {
	return withBody(bodyMax, func(q Q) http.HandlerFunc {
		return clusterLog{p}.recorded(what, func(*http.Request) string { return about(q) }, func(w http.ResponseWriter, _ *http.Request) {
			if !start(q) {
				refuse(w, http.StatusConflict, "this node makes, verifies or restores a backup already")
				return
			}
			answer(w, http.StatusAccepted, p.cfg.Backups.Progress(""))
		})
	})
}

// inFolder returns a function that calls do. It reports every error as an invalid request,
// because the operator named the folder.
func inFolder[A any](what string, do func(context.Context, wire.BackupQuery) (A, error)) func(context.Context, wire.BackupQuery) (A, error) {
	return func(ctx context.Context, q wire.BackupQuery) (A, error) {
		a, err := do(ctx, q)
		if err != nil {
			err = router.Errorf(router.InvalidRequest, "", "%v", fmt.Errorf("%s: %w", what, err))
		}
		return a, err
	}
}
