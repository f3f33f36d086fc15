package httpapi

import (
	"context"

	"github.com/valyala/fasthttp"

	"facet/node/console"
	"facet/node/wire"
)

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
