package httpapi

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"facet/internal/requestlog"
)

// A client that says "Expect: 100-continue" sends its body when it is told to. A node
// that is too busy for the body says so in place of that: then the body is never sent,
// and nothing of it has to be read and thrown away. Every other refusal comes as it does
// to other clients, after the go-ahead.

// expect answers an expectation: 100, or the status of the refusal, which is then in the
// response (fasthttp.Server.ExpectHandler).
func (s *Server) expect(rc *fasthttp.RequestCtx) int {
	c := &call{server: s, service: s.cfg.Service, requestID: newRequestID(), version: v11, began: time.Now()}
	err := s.hopelessAhead(rc, c)
	if err == nil {
		return fasthttp.StatusContinue
	}
	s.write(rc, c, s.explain(rc, c, err))
	s.observe(rc, c)
	return rc.Response.StatusCode()
}

// hopelessAhead is hopeless for a request of which nothing but the headers was read. It
// asks nobody: the key of one who was not here lately is looked up later.
func (s *Server) hopelessAhead(rc *fasthttp.RequestCtx, c *call) (err error) {
	if c.head, err = readHead(&rc.Request.Header, s.cfg.Limits.BodyBytes); err != nil {
		return nil // serve says what is wrong
	}
	op, _, _ := find(c.method, c.segments)
	if op == nil || op.takes != anImage {
		return nil
	}
	c.op, c.version = op, op.version
	claim, err := s.verifier.Parse(request(c), s.cfg.Now())
	if err != nil || !s.accessKeys.knows(claim.AccessKey) {
		return nil
	}
	ctx, cancel := context.WithTimeout(requestlog.With(context.Background(), c.requestID), lookupTimeout)
	defer cancel()
	key, err := s.cfg.Service.AccessKey(ctx, claim.AccessKey)
	if err != nil {
		return nil
	}
	return s.hopeless(op, key.Tenant)
}
