package httpapi

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"facet/internal/fair"
	"facet/internal/id"
	"facet/internal/trace"
)

// The id of an access key is no secret. Whoever knows it could send bodies without a right signature, whose
// memory must not be the tenant's. So the memory of a body belongs to its address until the signature is right:
//
//	the node's bodies ─┬─ a tenant: right signatures, and those of a key and address that were right lately
//	                   └─ the zero tenant ── an address ── an access key
//
// A request that states the hash of its body, and signs it, is checked before its body is read.

// unproven counts the bytes of bodies whose signature is not checked yet. Each address gets its share of them,
// and each access key its share of the address's.
type unproven struct {
	mu        sync.Mutex // guards keys, and both together; held for arithmetic only
	addresses *fair.Pool[netip.Addr]
	keys      map[id.UUID]int64 // by the pair of access key and address, without zeroes
}

func newUnproven(most int64) *unproven {
	return &unproven{addresses: fair.NewPool[netip.Addr](most), keys: make(map[id.UUID]int64)}
}

// take reserves n bytes and returns true, or returns false when the address or the key has its share.
func (u *unproven) take(p payer, n int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	held := u.keys[p.pair]
	if held > 0 && held+n > fair.Greed*(u.addresses.Left(p.from)-n) || !u.addresses.Take(p.from, n) {
		return false
	}
	u.keys[p.pair] += n
	return true
}

// give returns n bytes.
func (u *unproven) give(p payer, n int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.addresses.Give(p.from, n)
	if u.keys[p.pair] -= n; u.keys[p.pair] == 0 {
		delete(u.keys, p.pair)
	}
}

// payer is whose share the memory of a body is: a tenant's, or, for the zero tenant, an address's and there an
// access key's.
type payer struct {
	tenant id.Tenant
	from   netip.Addr
	pair   id.UUID
}

// takeBody reserves n bytes for a body and returns true, or returns false when the payer has its share.
func (s *Server) takeBody(p payer, n int) bool {
	if !s.bodies.Take(p.tenant, int64(n)) {
		return false
	}
	if p.tenant.IsZero() && !s.unproven.take(p, int64(n)) {
		s.bodies.Give(p.tenant, int64(n))
		return false
	}
	return true
}

// giveBody returns n bytes.
func (s *Server) giveBody(p payer, n int) {
	s.bodies.Give(p.tenant, int64(n))
	if p.tenant.IsZero() {
		s.unproven.give(p, int64(n))
	}
}

// noRoom returns the answer to a body for which there is no memory.
func noRoom() *failure {
	f := gateway(fasthttp.StatusTooManyRequests, "Too many requests.")
	f.retryAfter = time.Second
	return f
}

// prove reads the body into c and checks the signature of a, before the body if the request states its hash.
func (s *Server) prove(ctx context.Context, rc *fasthttp.RequestCtx, c *call, a *attempt) error {
	stated, early := a.claim.BodyHash()
	if early {
		if a.refusal = a.claim.Verify(a.key.Secret, stated); a.refusal != nil {
			c.body.done = drain(rc, s.bodyOf(rc, &c.head))
			return s.wrong(ctx, rc, a)
		}
	}
	pays, use := payer{from: clientOf(rc), pair: a.pair}, keepBody
	switch {
	case !a.known:
		use = hashBody // nothing of it is kept in memory
	case early || a.proven && a.wait == 0:
		pays = payer{tenant: a.key.Tenant}
	}
	var err error
	_, reading := trace.Start(ctx, trace.Stage{Name: trace.Body})
	c.body, err = s.readBody(s.bodyOf(rc, &c.head), pays, use)
	reading.End(err)
	if err != nil {
		if f, ok := errors.AsType[*failure](err); ok && f.status != fasthttp.StatusTooManyRequests && !early {
			s.failures.failed(s.cfg.Now(), a.pair) // or a body that never ends would be a free try
		}
		return err
	}
	c.length = max(c.length, len(c.body.bytes))
	if time.Since(a.began) > keyAge { // the key may have been revoked while the body came
		if err := s.lookUp(ctx, a); err != nil {
			return err
		}
	}
	if a.refusal = a.claim.Verify(a.key.Secret, c.body.hash); a.refusal != nil {
		return s.wrong(ctx, rc, a)
	}
	s.failures.proved(a.pair)
	return nil
}

// charge makes the memory of a body its tenant's.
func (s *Server) charge(b *body, tenant id.Tenant) error {
	s.giveBody(b.payer, b.taken)
	b.payer = payer{tenant: tenant}
	if !s.takeBody(b.payer, b.taken) {
		b.taken = 0
		return noRoom()
	}
	return nil
}
