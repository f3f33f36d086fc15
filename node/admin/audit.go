package admin

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"facet/internal/id"
	"facet/node/audit"
	"facet/node/audit/entry"
	"facet/router"
	"facet/router/calls"
)

// auditTimeout is how long an order waits for its record.
const auditTimeout = 5 * time.Second

// operator is who gives an order: the name on the certificate, and the address.
type operator struct {
	name   string
	source netip.Addr
}

type operatorKey struct{}

// withOperator returns a request that knows who makes it.
func withOperator(r *http.Request, name string) *http.Request {
	o := operator{name: name}
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		o.source = at.Addr()
	}
	return r.WithContext(context.WithValue(r.Context(), operatorKey{}, o))
}

// ordered returns the tenant with a name when its audit log has the order, which is not carried out
// otherwise. about says what the order is about, beside the tenant.
func (p *Port) ordered(ctx context.Context, tenant, order, about string) (id.Tenant, error) {
	t, err := p.cfg.Router.TenantNamed(ctx, tenant)
	if err != nil {
		return t, err
	}
	e := entry.New(entry.Command, time.Now())
	by, _ := ctx.Value(operatorKey{}).(operator)
	e.Operation, e.Reason, e.Holder = order, entry.Text(about), entry.Text(by.name)
	if by.source.IsValid() {
		e.From(by.source)
	}
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	if err := p.cfg.Audit.Record(ctx, t, audit.Event{Record: e}); err != nil {
		p.cfg.Log.ErrorContext(ctx, "an operator's order is refused: its audit record is not durable", "err", err)
		return t, &router.Error{
			Kind: router.Unavailable, RetryAfter: calls.RetryLater,
			Message: "the tenant's audit log did not record the order, so it was not carried out; try again",
		}
	}
	return t, nil
}
