package admin

import (
	"errors"
	"net/http"

	"facet/internal/answers"
	"facet/internal/id"
	"facet/node/audit"
	"facet/node/audit/entry"
	"facet/node/audit/reading"
	"facet/router"
)

// clusterLog records orders in the cluster's own audit log, and serves audit logs to operators.
type clusterLog struct{ *Port }

// readLog returns the log that an operator reads: the cluster's, or that of the tenant that the parameter tenant names.
func (p clusterLog) readLog(r *http.Request) (reading.Log, error) {
	l := reading.Log{Service: p.cfg.Router, Tenant: id.ClusterLog}
	name := r.URL.Query().Get("tenant")
	if name == "" {
		return l, nil
	}
	var err error
	l.Tenant, err = p.cfg.Router.TenantNamed(r.Context(), name)
	return l, err
}

// serveAudit answers with a page of a log.
func (p clusterLog) serveAudit(w http.ResponseWriter, r *http.Request) {
	all := map[string]string{}
	for name, values := range r.URL.Query() {
		all[name] = values[0]
	}
	var page answers.AuditPage
	q, err := reading.ParseQuery(all)
	if err == nil {
		err = p.read(r, func(l reading.Log) (err error) {
			page, err = l.Page(r.Context(), q)
			page.Recording = p.cfg.Audit.Keeps(l.Tenant)
			return err
		})
	}
	if err != nil {
		p.explain(w, readOrder, err)
		return
	}
	answer(w, http.StatusOK, page)
}

// serveAuditFile answers with a file of a log.
func (p clusterLog) serveAuditFile(w http.ResponseWriter, r *http.Request) {
	var b []byte
	var mediaType string
	err := p.read(r, func(l reading.Log) (err error) {
		b, mediaType, err = l.File(r.Context(), r.PathValue("file"))
		return err
	})
	switch {
	case errors.Is(err, reading.ErrNoTile), errors.Is(err, reading.ErrNoTileYet):
		err = router.Errorf(router.NotFound, "", "%v", err)
	case errors.Is(err, reading.ErrGone):
		refuse(w, http.StatusGone, err.Error())
		return
	}
	if err != nil {
		p.explain(w, readOrder, err)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	_, _ = w.Write(b) // an error means that the caller has gone
}

// readOrder is the name of the order to read a log, in errors.
const readOrder = "read an audit log"

// read calls do with the log that an operator reads, and records the read in that log. A tenant's log has the
// record before the operator has the answer; for the cluster's, nothing waits.
func (p clusterLog) read(r *http.Request, do func(reading.Log) error) error {
	l, err := p.readLog(r)
	if err == nil {
		err = do(l)
	}
	if err != nil {
		return err
	}
	e := command(r.Context(), entry.Command, r.Method+" "+r.URL.Path, "")
	e.Status = http.StatusOK
	if l.Tenant != id.ClusterLog {
		return inTenantLog(r.Context(), p.Port, l.Tenant, e)
	}
	p.cfg.Audit.Correct(id.ClusterLog, audit.Event{Record: e})
	return nil
}
