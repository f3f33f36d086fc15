package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"facet/internal/id"
	"facet/node/audit"
	"facet/node/audit/entry"
	"facet/node/bucket"
	"facet/node/receipt"
	"facet/node/wire"
	"facet/router"
	"facet/router/calls"
)

const (
	// auditTimeout is how long an order about a tenant waits for the record in the tenant's log.
	auditTimeout = 5 * time.Second
	// intentTimeout is how long an order waits for its intent in the cluster's log.
	intentTimeout = 2 * time.Second
)

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

// orderRecord is the order that a request gives, for the records of its outcome.
type orderRecord struct {
	id        [16]byte
	operation string
	// tenant is whose log has the outcome, too, or zero. begun reports whether that log has the intent. about says
	// what the order was about, beside the tenant; made is what it made.
	tenant      id.Tenant
	begun       bool
	about, made string
}

type orderKey struct{}

// ordered returns the tenant with a name when its audit log has the intent of the order, which is not carried
// out otherwise. about says what the order is about, beside the tenant. recorded adds the outcome.
func (p *Port) ordered(ctx context.Context, tenant, about string) (id.Tenant, *orderRecord, error) {
	o, _ := ctx.Value(orderKey{}).(*orderRecord)
	t, err := p.cfg.Router.TenantNamed(ctx, tenant)
	if err != nil {
		return t, o, err
	}
	intent := command(ctx, entry.Intent, o.operation, about)
	intent.ID = o.id
	o.tenant, o.about, o.begun = t, about, p.cfg.Audit.Keeps(t)
	return t, o, inTenantLog(ctx, p, t, intent)
}

// inTenantLog returns nil when the log of a tenant has a record of what an operator is about to do.
func inTenantLog(ctx context.Context, p *Port, t id.Tenant, e *entry.Record) error {
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	err := p.cfg.Audit.Record(ctx, t, audit.Event{Record: e})
	if err == nil {
		return nil
	}
	p.cfg.Log.ErrorContext(ctx, "an operator's order is refused: its audit record is not durable", "err", err)
	return &router.Error{
		Kind: router.Unavailable, RetryAfter: calls.RetryLater,
		Message: "the tenant's audit log did not record the order, so it was not carried out; try again",
	}
}

// command returns a record of an operator's order.
func command(ctx context.Context, kind entry.Kind, order, about string) *entry.Record {
	e := entry.New(kind, time.Now())
	by, _ := ctx.Value(operatorKey{}).(operator)
	e.Operation, e.Reason, e.Holder = order, entry.Text(about), entry.Text(by.name)
	if by.source.IsValid() {
		e.From(by.source)
	}
	return e
}

// recorded returns a handler that calls next. The cluster's audit log has the intent before and the outcome
// afterwards, and so has the log of the tenant that ordered has named. An order is carried out without its intent
// in the cluster's log if neither this node's disk nor the log's shard takes it in time: what an operator does may
// be the repair of that.
func (p clusterLog) recorded(order string, about func(*http.Request) string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), orderTimeout)
		defer cancel()
		o, began := &orderRecord{operation: order}, time.Now()
		_, _ = rand.Read(o.id[:]) // it never fails, by its documentation
		r = r.WithContext(context.WithValue(ctx, orderKey{}, o))
		intent := command(ctx, entry.Intent, order, about(r))
		intent.ID = o.id
		p.intend(ctx, intent)
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next(seen, r)
		outcome := func(log id.Tenant, about string) {
			e := command(ctx, entry.Command, order, about)
			e.ID, e.Status, e.Micros = o.id, seen.status, uint64(time.Since(began).Microseconds())
			p.cfg.Audit.Correct(log, audit.Event{Record: e})
		}
		outcome(id.ClusterLog, about(r))
		if o.tenant != (id.Tenant{}) && (o.begun || p.cfg.Audit.Keeps(o.tenant)) { // the order may have switched the log on
			outcome(o.tenant, cmp.Or(o.made, o.about))
		}
	}
}

// intend waits for the record of an intent in the cluster's log.
func (p clusterLog) intend(ctx context.Context, e *entry.Record) {
	ctx, cancel := context.WithTimeout(ctx, intentTimeout)
	defer cancel()
	if err := p.cfg.Audit.Record(ctx, id.ClusterLog, audit.Event{Record: e}); err != nil {
		p.cfg.Log.WarnContext(ctx, "the cluster's audit log did not record an operator's order in time; it is carried out", "err", err)
	}
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// about returns what the records of an order say of it: no key, no secret, no certificate.
func about(order any) string {
	var words []any
	switch o := order.(type) {
	case wire.Order:
		words = []any{o.Node, o.State, forced(o.Force)}
	case wire.ShardOrder:
		words = []any{"shard", o.Shard, "from", o.From, "to", o.To}
	case wire.ReplicasOrder:
		words = []any{o.Replicas, forced(o.Force)}
	case wire.WriteOrder:
		words = []any{"shard", o.Shard}
	case wire.CertificateOrder:
		words = []any{o.Node, len(o.Authorities), "bytes of authorities,", len(o.Certificate), "of a certificate"}
	case wire.RingOrder:
		words = []any{o.Ring}
	case wire.NewTenant:
		words = []any{o.Name}
	case wire.SetTenant:
		words = []any{o.Name, changes(o)}
	case wire.SetTenantState:
		words = []any{o.Name, o.State}
	case wire.NewKey:
		words = []any{o.Tenant, termsText(o.Role, &o.KeyTerms)}
	case receipt.Order:
		words = []any{len(o.Subjects), "subjects"}
	case wire.BackupOrder:
		words = []any{bucket.WithoutSecrets(o.To), o.Name, strings.Join(o.Galleries, " ")}
	case wire.BackupQuery:
		words = []any{bucket.WithoutSecrets(o.From), o.Name}
	case wire.RestoreOrder:
		words = []any{bucket.WithoutSecrets(o.From), o.Name, o.Gallery}
	}
	return strings.Join(strings.Fields(fmt.Sprintln(words...)), " ")
}

// termsText returns the terms of an access key.
func termsText(role string, t *wire.KeyTerms) string {
	words := []string{role, t.Holder}
	if len(t.Galleries) > 0 {
		words = append(words, "galleries "+strings.Join(t.Galleries, ", "))
	}
	if len(t.Networks) > 0 {
		words = append(words, "networks "+strings.Join(t.Networks, ", "))
	}
	if t.Ends != nil {
		words = append(words, "until "+t.Ends.UTC().Format(time.RFC3339))
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

func forced(force bool) string {
	if force {
		return "forced"
	}
	return ""
}
