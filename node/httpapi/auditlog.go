package httpapi

import (
	"context"
	"errors"
	"strings"

	"github.com/valyala/fasthttp"

	"facet/internal/answers"
	"facet/node/audit/reading"
)

const auditPrefix = "/api/audit/"

// auditLog returns the audit log of the caller's tenant.
func (c *call) auditLog(r Reader) reading.Log { return reading.Log{Service: r, Tenant: c.key.Tenant} }

// getAudit serves GET audit: a page of records.
var getAudit = reads(func(_ context.Context, c *call) (reading.Query, error) {
	all, err := parameters(c.query)
	if err != nil {
		return reading.Query{}, err
	}
	return reading.ParseQuery(all)
}, func(ctx context.Context, c *call, r Reader, q reading.Query) (answers.AuditPage, error) {
	page, err := c.auditLog(r).Page(ctx, q)
	page.Recording = c.recorded()
	return page, err
}, showsItself, says[reading.Query, answers.AuditPage]{})

// getAuditFile serves GET audit/key, audit/checkpoint and audit/tile/….
var getAuditFile = reads(readsNothing, func(ctx context.Context, c *call, r Reader, _ nothing) (rawBody, error) {
	b, mediaType, err := c.auditLog(r).File(ctx, strings.TrimPrefix(c.path, auditPrefix))
	switch {
	case errors.Is(err, reading.ErrNoTile):
		err = notFound("", "There is no such tile.")
	case errors.Is(err, reading.ErrNoTileYet):
		err = notFound("", "The audit log has no such tile yet.")
	case errors.Is(err, reading.ErrGone):
		err = gateway(fasthttp.StatusGone, "The retention of these records has passed; their hashes are in the tile of level 0.")
	}
	return rawBody{b, mediaType}, err
}, showsItself, says[nothing, rawBody]{})
