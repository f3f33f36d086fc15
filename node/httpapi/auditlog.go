package httpapi

import (
	"context"
	"errors"
	"strings"

	"github.com/valyala/fasthttp"

	"facet/node/audit/reading"
)

const auditPrefix = "/api/audit/"

// auditLog returns the audit log of the caller's tenant.
func (c *call) auditLog() reading.Log { return reading.Log{Service: c.service, Tenant: c.key.Tenant} }

// getAudit serves GET audit: a page of records.
func getAudit(ctx context.Context, c *call) (answer, error) {
	all, err := parameters(c.query)
	if err != nil {
		return answer{}, err
	}
	q, err := reading.ParseQuery(all)
	if err != nil {
		return answer{}, err
	}
	page, err := c.auditLog().Page(ctx, q)
	page.Recording = c.recorded()
	return answer{fasthttp.StatusOK, page}, err
}

// getAuditFile serves GET audit/key, audit/checkpoint and audit/tile/….
func getAuditFile(ctx context.Context, c *call) (answer, error) {
	b, mediaType, err := c.auditLog().File(ctx, strings.TrimPrefix(c.path, auditPrefix))
	switch {
	case errors.Is(err, reading.ErrNoTile):
		return answer{}, notFound("", "There is no such tile.")
	case errors.Is(err, reading.ErrNoTileYet):
		return answer{}, notFound("", "The audit log has no such tile yet.")
	case errors.Is(err, reading.ErrGone):
		return answer{}, gateway(fasthttp.StatusGone, "The retention of these records has passed; their hashes are in the tile of level 0.")
	}
	return answer{fasthttp.StatusOK, rawBody{b, mediaType}}, err
}
