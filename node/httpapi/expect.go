package httpapi

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"facet/internal/requestlog"
	"facet/node/audit"
)

// A client that sends "Expect: 100-continue" waits for the server's go-ahead before
// it sends the body. A node that is too busy answers with its refusal instead. The
// client then never sends the body, and the node has nothing to read and throw
// away. Every other refusal comes after the go-ahead, as it does for other clients.

// expect returns 100, or the status of the refusal that it wrote into the response
// (fasthttp.Server.ExpectHandler).
func (s *Server) expect(rc *fasthttp.RequestCtx) int {
	c := &call{server: s, service: s.cfg.Service, requestID: newRequestID(), version: v11, began: time.Now()}
	err := s.hopelessAhead(rc, c)
	if err == nil {
		return fasthttp.StatusContinue
	}
	s.write(rc, c, s.explain(rc, c, err))
	rc.Response.SetConnectionClose() // as fasthttp does: the body may come all the same
	forget(rc)
	s.observe(rc, c)
	return rc.Response.StatusCode()
}

// hopelessAhead calls hopeless for a request of which only the headers were read.
// It makes no remote call: an access key that is not cached is looked up after the
// body is read.
func (s *Server) hopelessAhead(rc *fasthttp.RequestCtx, c *call) (err error) {
	if c.head, err = readHead(&rc.Request.Header, s.cfg.Limits.BodyBytes); err != nil {
		return nil // serve reports the error
	}
	op, _, _ := s.table.find(c.method, c.segments)
	if op == nil || op.takes == aLittle {
		return nil
	}
	c.op, c.version = op, op.version
	claim, err := s.rules.Load().verifier.Parse(request(c), s.cfg.Now())
	if err != nil {
		return nil
	}
	if wait, proven := s.failures.blocked(s.cfg.Now(), pairOf(claim.AccessKey, clientOf(rc))); wait > 0 && !proven {
		s.refused(rc, audit.TooOften)
		return wrongTooOften(wait)
	}
	if !s.accessKeys.knows(claim.AccessKey) {
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
