package admin

import (
	"errors"
	"net/http"

	"facet/internal/id"
	"facet/node/audit"
	"facet/node/audit/entry"
	"facet/node/audit/reading"
	"facet/router"
)

// clusterLog records orders in the cluster's own audit log, and serves the log.
type clusterLog struct{ *Port }

func (p clusterLog) log() reading.Log {
	return reading.Log{Service: p.cfg.Router, Tenant: id.ClusterLog}
}

// serveAudit answers with a page of the cluster's audit log.
func (p clusterLog) serveAudit(w http.ResponseWriter, r *http.Request) {
	all := map[string]string{}
	for name, values := range r.URL.Query() {
		all[name] = values[0]
	}
	q, err := reading.ParseQuery(all)
	if err != nil {
		p.explain(w, "read the cluster's audit log", err)
		return
	}
	page, err := p.log().Page(r.Context(), q)
	if err != nil {
		p.explain(w, "read the cluster's audit log", err)
		return
	}
	page.Recording = p.cfg.Audit.Keeps(id.ClusterLog)
	p.noteRead(r)
	answer(w, http.StatusOK, page)
}

// serveAuditFile answers with a file of the cluster's audit log.
func (p clusterLog) serveAuditFile(w http.ResponseWriter, r *http.Request) {
	b, mediaType, err := p.log().File(r.Context(), r.PathValue("file"))
	switch {
	case errors.Is(err, reading.ErrNoTile), errors.Is(err, reading.ErrNoTileYet):
		err = router.Errorf(router.NotFound, "", "%v", err)
	case errors.Is(err, reading.ErrGone):
		refuse(w, http.StatusGone, err.Error())
		return
	}
	if err != nil {
		p.explain(w, "read the cluster's audit log", err)
		return
	}
	p.noteRead(r)
	w.Header().Set("Content-Type", mediaType)
	_, _ = w.Write(b) // an error means that the caller has gone
}

// noteRead records that an operator has read the cluster's audit log. Nothing waits for it.
func (p clusterLog) noteRead(r *http.Request) {
	e := command(r.Context(), entry.Command, r.Method+" "+r.URL.Path, "")
	e.Status = http.StatusOK
	p.cfg.Audit.Correct(id.ClusterLog, audit.Event{Record: e})
}
