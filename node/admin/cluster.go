package admin

import (
	"context"
	"net/http"
	"time"

	"facet/node/wire"
)

// clusterRoutes adds what this file is about to the admin port.
func (p *Port) clusterRoutes(routes *http.ServeMux) {
	p.handle(routes, "POST "+wire.PathCertificates, func(w http.ResponseWriter, r *http.Request) {
		serveAnswer(p, w, r, "change certificates", p.cfg.Keys.Certificates)
	})
	p.handle(routes, "POST "+wire.PathRings, func(w http.ResponseWriter, r *http.Request) {
		serveAnswer(p, w, r, "replace a shared key", p.cfg.Keys.Rotate)
	})
	p.handle(routes, "GET "+wire.PathPlan, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
		defer cancel()
		plan, err := p.Plan(ctx)
		if err != nil {
			p.explain(w, "plan moves", err)
			return
		}
		answer(w, http.StatusOK, plan)
	})
}

// serveAnswer carries out what a body asks for and answers with what came of it.
func serveAnswer[Q, A any](p *Port, w http.ResponseWriter, r *http.Request, what string, do func(context.Context, Q) (A, error)) {
	var q Q
	if !readBody(w, r, &q) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout-time.Second)
	defer cancel()
	a, err := do(ctx, q)
	if err != nil {
		p.explain(w, what, err)
		return
	}
	answer(w, http.StatusOK, a)
}
