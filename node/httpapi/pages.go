package httpapi

import (
	"context"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"facet/node/console"
	"facet/node/wire"
)

// pages lists what the web console and the interface's pages need from a node besides the interface. It is answered to
// everybody and touches no data of a tenant.
var pages = []operation{
	{"GET", console.Root, v11, anybody, keyIgnored, aLittle, getPage},
	{"GET", console.SessionPath, v11, anybody, keyIgnored, aLittle, getSession},
	{"GET", console.Root + "/*", v11, anybody, keyIgnored, aLittle, getPage},
	{"GET", console.Docs, v11, anybody, keyIgnored, aLittle, getPage},
	{"GET", console.Docs + "/*", v11, anybody, keyIgnored, aLittle, getPage},
}

// home leads people who type the address of a node to the console.
var home = operation{"GET", "/", v11, anybody, keyIgnored, aLittle, getPage}

// route is find, and finds pages unless they are switched off. HEAD of a page is its GET without
// the body, which fasthttp leaves out.
func (s *Server) route(h *head) (op *operation, parameters []string, err error) {
	if s.rules.Load().Console == ConsoleOn && (h.method == fasthttp.MethodGet || h.method == fasthttp.MethodHead) {
		if h.path == home.pattern && h.typed() {
			return &home, nil, nil
		}
		i := slices.IndexFunc(pages, func(o operation) bool {
			_, ok := match(o.pattern, h.segments)
			return ok
		})
		if i >= 0 {
			return &pages[i], nil, nil
		}
	}
	return find(h.method, h.segments)
}

// typed reports whether a request wants a page and has no signature, as when a person types its address.
func (h *head) typed() bool {
	accepts, _ := h.header("accept")
	_, signed := h.header("authorization")
	return !signed && strings.Contains(accepts, "text/html")
}

// getPage serves a file of the console or of the interface's pages, or the interface's description.
func getPage(_ context.Context, c *call) (answer, error) {
	r := console.Request{Path: c.path}
	r.AcceptEncoding, _ = c.header("accept-encoding")
	r.IfNoneMatch, _ = c.header("if-none-match")
	a := console.Load().Answer(r)
	return answer{a.Status, a}, nil
}

// getSession serves GET /console/session.
func getSession(_ context.Context, c *call) (answer, error) {
	return answer{fasthttp.StatusOK, console.Session{
		How: console.ByNode, Version: wire.Version, Region: c.server.cfg.Region, Rights: []console.Right{},
	}}, nil
}
