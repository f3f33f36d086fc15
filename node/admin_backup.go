package node

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

func (n *Node) backupRoutes(routes *http.ServeMux) {
	n.handle(routes, "GET "+wire.PathBackup, func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, n.backups.Progress(r.URL.Query().Get("id")))
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
	answer(w, http.StatusAccepted, n.backups.Progress(""))
}

func (n *Node) serveBackup(w http.ResponseWriter, r *http.Request) {
	var q wire.BackupOrder
	if readBody(w, r, &q) {
		n.started(w, n.backups.StartBackup(q))
	}
}

func (n *Node) serveVerify(w http.ResponseWriter, r *http.Request) {
	var q wire.BackupQuery
	if readBody(w, r, &q) {
		n.started(w, n.backups.StartVerify(q))
	}
}

func (n *Node) serveRestore(w http.ResponseWriter, r *http.Request) {
	var q wire.RestoreOrder
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, restoreBodyMax)).Decode(&q); err != nil {
		refuse(w, http.StatusBadRequest, "the body is not the JSON that this needs")
		return
	}
	n.started(w, n.backups.StartRestore(q))
}

func (n *Node) serveBackupList(w http.ResponseWriter, r *http.Request) {
	serveFolder(n, w, r, "list backups", n.backups.List)
}

func (n *Node) serveErasures(w http.ResponseWriter, r *http.Request) {
	serveFolder(n, w, r, "read erasures", n.backups.Erasures)
}

// serveFolder answers a question about a folder of backups.
func serveFolder[T any](n *Node, w http.ResponseWriter, r *http.Request, what string, do func(context.Context, wire.BackupQuery) (T, error)) {
	var q wire.BackupQuery
	if !readBody(w, r, &q) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	out, err := do(ctx, q)
	if err != nil { // the operator gave the address and can mend it
		n.explain(w, what, router.Errorf(router.InvalidRequest, "", "%v", fmt.Errorf("%s: %w", what, err)))
		return
	}
	answer(w, http.StatusOK, out)
}
