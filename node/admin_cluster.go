package node

import (
	"context"
	"net/http"
	"time"

	"facet/node/wire"
)

// clusterRoutes adds what this file is about to the admin port.
func (n *Node) clusterRoutes(routes *http.ServeMux) {
	n.handle(routes, "POST "+wire.PathCertificates, func(w http.ResponseWriter, r *http.Request) {
		serveAnswer(n, w, r, "change certificates", n.keys.Certificates)
	})
	n.handle(routes, "POST "+wire.PathRings, func(w http.ResponseWriter, r *http.Request) {
		serveAnswer(n, w, r, "replace a shared key", n.keys.Rotate)
	})
	n.handle(routes, "GET "+wire.PathPlan, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
		defer cancel()
		plan, err := n.Plan(ctx)
		if err != nil {
			n.explain(w, "plan moves", err)
			return
		}
		answer(w, http.StatusOK, plan)
	})
}

// serveAnswer carries out what a body asks for and answers with what came of it.
func serveAnswer[Q, A any](n *Node, w http.ResponseWriter, r *http.Request, what string, do func(context.Context, Q) (A, error)) {
	var q Q
	if !readBody(w, r, &q) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout-time.Second)
	defer cancel()
	a, err := do(ctx, q)
	if err != nil {
		n.explain(w, what, err)
		return
	}
	answer(w, http.StatusOK, a)
}
