package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"facet/node/wire"
	"facet/router"
)

// restoreBodyMax bounds an order with a list of erasures.
const restoreBodyMax = 64 << 20

func (p *Port) backupRoutes(routes *http.ServeMux) {
	p.handle(routes, "GET "+wire.PathBackup, func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, p.cfg.Backups.Progress(r.URL.Query().Get("id")))
	})
	p.handle(routes, "POST "+wire.PathBackup, p.serveBackup)
	p.handle(routes, "POST "+wire.PathBackupVerify, p.serveVerify)
	p.handle(routes, "POST "+wire.PathBackupList, p.serveBackupList)
	p.handle(routes, "POST "+wire.PathErasures, p.serveErasures)
	p.handle(routes, "POST "+wire.PathRestore, p.serveRestore)
}

// started answers whether a thing was begun.
func (p *Port) started(w http.ResponseWriter, begun bool) {
	if !begun {
		refuse(w, http.StatusConflict, "this node makes, verifies or restores a backup already")
		return
	}
	answer(w, http.StatusAccepted, p.cfg.Backups.Progress(""))
}

func (p *Port) serveBackup(w http.ResponseWriter, r *http.Request) {
	var q wire.BackupOrder
	if readBody(w, r, &q) {
		p.started(w, p.cfg.Backups.StartBackup(q))
	}
}

func (p *Port) serveVerify(w http.ResponseWriter, r *http.Request) {
	var q wire.BackupQuery
	if readBody(w, r, &q) {
		p.started(w, p.cfg.Backups.StartVerify(q))
	}
}

func (p *Port) serveRestore(w http.ResponseWriter, r *http.Request) {
	var q wire.RestoreOrder
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, restoreBodyMax)).Decode(&q); err != nil {
		refuse(w, http.StatusBadRequest, "the body is not the JSON that this needs")
		return
	}
	p.started(w, p.cfg.Backups.StartRestore(q))
}

func (p *Port) serveBackupList(w http.ResponseWriter, r *http.Request) {
	serveFolder(p, w, r, "list backups", p.cfg.Backups.List)
}

func (p *Port) serveErasures(w http.ResponseWriter, r *http.Request) {
	serveFolder(p, w, r, "read erasures", p.cfg.Backups.Erasures)
}

// serveFolder answers a question about a folder of backups.
func serveFolder[T any](p *Port, w http.ResponseWriter, r *http.Request, what string, do func(context.Context, wire.BackupQuery) (T, error)) {
	var q wire.BackupQuery
	if !readBody(w, r, &q) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	out, err := do(ctx, q)
	if err != nil { // the operator gave the address and can mend it
		p.explain(w, what, router.Errorf(router.InvalidRequest, "", "%v", fmt.Errorf("%s: %w", what, err)))
		return
	}
	answer(w, http.StatusOK, out)
}
