package admin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"facet/internal/id"
	"facet/node/audit"
	"facet/node/cert"
	"facet/node/listener"
	"facet/node/receipt"
	"facet/node/wire"
	"facet/router"
)

// Bounds of the admin port.
const (
	adminBodyMax = 64 << 10
	adminTimeout = 30 * time.Second
	// adminHeadTime is the time for a TLS handshake, and then for the headers of a request.
	adminHeadTime   = 5 * time.Second
	orderTimeout    = adminTimeout - time.Second // leaves time for the answer
	adminIdle       = time.Minute
	adminHeaderMax  = 16 << 10
	adminCloseGrace = 2 * time.Second
	// adminConnections is the most connections, adminConnectionsPerIP the most from one
	// address.
	adminConnections      = 256
	adminConnectionsPerIP = 64

	scrapesMax    = 4
	scrapeTimeout = 8 * time.Second
)

// statusRequests lists the requests for which a status certificate is enough.
var statusRequests = map[string]bool{
	"GET " + wire.PathStatus: true,
	"GET " + wire.PathPlan:   true,
}

// Open opens the admin port with the node's certificate.
func Open(ctx context.Context, c Config) (*Port, error) {
	ln, err := c.Network.Listen(ctx, c.Address)
	if err != nil {
		return nil, fmt.Errorf("open admin port: %w", err)
	}
	p := &Port{cfg: c, conns: map[*tls.Conn]struct{}{}}
	p.http = http.Server{
		Handler: p.routes(), ReadHeaderTimeout: adminHeadTime, ReadTimeout: adminTimeout, WriteTimeout: adminTimeout,
		IdleTimeout: adminIdle, MaxHeaderBytes: adminHeaderMax, ConnState: p.note,
		ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	// A certificate must be valid if it is shown. A caller without one reaches only the open
	// paths.
	config := p.cfg.Keys.Node().AdminServerConfig()
	verify := config.VerifyConnection
	config.ClientAuth = tls.RequestClientCert
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		from := hello.Conn.RemoteAddr().String()
		of := config.Clone()
		of.VerifyConnection = func(c tls.ConnectionState) error {
			if len(c.PeerCertificates) == 0 {
				return nil
			}
			err := verify(c)
			if err != nil {
				countRefused(p, from, audit.WrongCertificate)
			}
			return err
		}
		return of, nil
	}
	bounded := listener.New(ln, listener.Limits{Connections: adminConnections, PerIP: adminConnectionsPerIP})
	p.work.Go(func() {
		if err := p.http.Serve(tls.NewListener(bounded, config)); !errors.Is(err, http.ErrServerClosed) {
			p.cfg.Fail(fmt.Errorf("serve admin port: %w", err))
		}
	})
	return p, nil
}

// note records the connections whose handshake is over, and which have a request.
func (p *Port) note(c net.Conn, state http.ConnState) {
	conn, ok := c.(*tls.Conn)
	if !ok {
		return
	}
	listener.Track(conn, state)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateActive, http.StateIdle:
		p.conns[conn] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(p.conns, conn)
	case http.StateNew:
	}
}

// Cut closes the connections with a matching certificate and returns their number.
func (p *Port) Cut(match func(leaf *x509.Certificate) bool) int {
	p.mu.Lock()
	conns := slices.Collect(maps.Keys(p.conns))
	p.mu.Unlock()
	count := 0
	for _, c := range conns {
		if shown := c.ConnectionState().PeerCertificates; len(shown) > 0 && match(shown[0]) {
			_ = c.NetConn().Close()
			count++
		}
	}
	return count
}

// Close closes the port and waits up to adminCloseGrace for requests in progress.
func (p *Port) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), adminCloseGrace)
	defer cancel()
	err := p.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = p.http.Close()
	}
	p.work.Wait()
	return err
}

func (p *Port) routes() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("GET "+wire.PathLive, p.serveLive)
	routes.HandleFunc("GET "+wire.PathReady, p.serveReady)
	routes.Handle("GET "+wire.PathMetrics, promhttp.HandlerFor(p.cfg.Metrics, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(p.cfg.Log.Handler(), slog.LevelWarn), MaxRequestsInFlight: scrapesMax, Timeout: scrapeTimeout,
	}))
	for pattern, next := range certified(p) {
		p.handle(routes, pattern, next)
	}
	return routes
}

// certified returns the handlers of the requests that need a certificate, by their patterns.
func certified(p *Port) map[string]http.HandlerFunc {
	all := map[string]http.HandlerFunc{
		"GET " + wire.PathStatus: func(w http.ResponseWriter, r *http.Request) {
			answer(w, http.StatusOK, p.Status(r.Context()))
		},
		"GET " + wire.PathPlan: respond(p, http.StatusOK, "plan moves", func(ctx context.Context, _ *http.Request) (wire.Plan, error) {
			return p.Plan(ctx)
		}),
		"POST " + wire.PathNodes:               order(p, http.StatusOK, "change a node's state", echo(p.SetNodeState)),
		"POST " + wire.PathShards:              order(p, http.StatusOK, "move a shard", echo(p.MoveShard)),
		"POST " + wire.PathReplicas:            order(p, http.StatusOK, "change the number of replicas", p.SetReplicas),
		"POST " + wire.PathWrites:              order(p, http.StatusOK, "put a write back", p.PutBack),
		"POST " + wire.PathCertificates:        order(p, http.StatusOK, "change certificates", p.cfg.Keys.Certificates),
		"POST " + wire.PathRings:               order(p, http.StatusOK, "replace a shared key", p.cfg.Keys.Rotate),
		"POST " + wire.PathReceipt:             withBody(receipt.OrderBytesMax, carryOut(p, http.StatusOK, "make a receipt", p.Receipts().Receipt)),
		"GET " + wire.PathAudit:                clusterLog{p}.serveAudit,
		"GET " + wire.PathAudit + "/{file...}": clusterLog{p}.serveAuditFile,
		"GET " + wire.PathLog:                  p.serveLog,
		"GET " + wire.PathSettings:             p.serveSettings,
		"GET " + wire.PathProfiles + "{name}":  p.serveProfile,
	}
	maps.Copy(all, tenantRoutes(p))
	maps.Copy(all, p.backupRoutes())
	return all
}

// tenantRoutes returns the handlers of requests about tenants and their access keys.
func tenantRoutes(p *Port) map[string]http.HandlerFunc {
	ofQuery := func(r *http.Request) string { return r.URL.Query().Get("tenant") }
	return map[string]http.HandlerFunc{
		"POST " + wire.PathTenants:  order(p, http.StatusCreated, "create tenant", p.newTenant),
		"PATCH " + wire.PathTenants: order(p, http.StatusOK, "set tenant", p.setTenant),
		"GET " + wire.PathTenants: respond(p, http.StatusOK, "list tenants", func(ctx context.Context, _ *http.Request) ([]wire.Tenant, error) {
			return p.tenants(ctx)
		}),
		"DELETE " + wire.PathTenants: clusterLog{p}.recorded("delete tenant", ofQuery,
			respond(p, http.StatusOK, "delete tenant", func(ctx context.Context, r *http.Request) (wire.TenantDeletion, error) {
				return p.deleteTenant(ctx, ofQuery(r))
			})),
		"GET " + wire.PathProcessing: respond(p, http.StatusOK, "make a record of processing", func(ctx context.Context, r *http.Request) (wire.Processing, error) {
			return processing(ctx, p, ofQuery(r))
		}),
		"POST " + wire.PathTenantStates: order(p, http.StatusOK, "set a tenant's state", echo(p.setTenantState)),
		"POST " + wire.PathKeys:         order(p, http.StatusCreated, "create access key", p.newKey),
		"GET " + wire.PathKeys: respond(p, http.StatusOK, "list access keys", func(ctx context.Context, r *http.Request) ([]wire.Key, error) {
			return p.keys(ctx, ofQuery(r))
		}),
		"DELETE " + wire.PathKeys + "/{key}": clusterLog{p}.recorded("revoke access key", func(r *http.Request) string { return ofQuery(r) + " " + r.PathValue("key") },
			respond(p, http.StatusOK, "revoke access key", func(ctx context.Context, r *http.Request) (map[string]string, error) {
				return p.revokeKey(ctx, ofQuery(r), r.PathValue("key"))
			})),
	}
}

// handle adds a handler for the callers that mayOrder allows.
func (p *Port) handle(routes *http.ServeMux, pattern string, next http.HandlerFunc) {
	routes.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		name, no := p.mayOrder(r.TLS, pattern)
		if no.why != "" {
			countRefused(p, r.RemoteAddr, no.kind)
			refuse(w, http.StatusForbidden, no.why)
			return
		}
		next(w, withOperator(r, name))
	})
}

// countRefused counts a request, or a connection with a wrong certificate, from an address with its port.
func countRefused(p *Port, from string, kind audit.Refusal) {
	at, _ := netip.ParseAddrPort(from) // the zero address stands for an unknown one
	p.cfg.Audit.Refused(at.Addr(), kind)
}

// refusal is why a request is refused.
type refusal struct {
	kind audit.Refusal
	why  string
}

// mayOrder returns the name of the holder of a certificate, and why it may not make a request, or the zero
// refusal. It checks each request, because a connection may outlive the validity of its certificate.
func (p *Port) mayOrder(c *tls.ConnectionState, pattern string) (name string, no refusal) {
	if c == nil || len(c.PeerCertificates) == 0 {
		return "", refusal{audit.NoCertificate, "this needs the cluster's admin certificate"}
	}
	role, name, err := p.cfg.Keys.Node().Holder(c.PeerCertificates[0])
	switch {
	case err != nil:
		return "", refusal{audit.WrongCertificate, "the certificate is not trusted any more"}
	case role == cert.RoleAdmin:
		return name, refusal{}
	case role == cert.RoleNode:
		return name, refusal{audit.WrongRole, "this is the certificate of a node, which may give no orders: " + wire.RenewForStatus}
	case !statusRequests[pattern]:
		return name, refusal{audit.WrongRole, "this needs the cluster's admin certificate: a status certificate is good for facet status, facet cluster status and facet shard balance only (\"facet cluster admin\" makes an admin certificate here)"}
	}
	if u, err := id.Parse(name); err != nil || p.cfg.IsRemoved(id.Node{UUID: u}) {
		return name, refusal{audit.WrongCertificate, "the certificate is of a node that was removed"}
	}
	return name, refusal{}
}

// respond returns a handler that answers with the result of do or its error.
func respond[A any](p *Port, status int, what string, do func(context.Context, *http.Request) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), orderTimeout)
		defer cancel()
		a, err := do(ctx, r)
		if err != nil {
			p.explain(w, what, err)
			return
		}
		answer(w, status, a)
	}
}

// post returns a handler that reads a Q from the body and answers with the result of do.
func post[Q, A any](p *Port, status int, what string, do func(context.Context, Q) (A, error)) http.HandlerFunc {
	return withBody(adminBodyMax, func(q Q) http.HandlerFunc {
		return respond(p, status, what, func(ctx context.Context, _ *http.Request) (A, error) { return do(ctx, q) })
	})
}

// order is post for an order: the cluster's audit log records it.
func order[Q, A any](p *Port, status int, what string, do func(context.Context, Q) (A, error)) http.HandlerFunc {
	return withBody(adminBodyMax, carryOut(p, status, what, do))
}

// carryOut returns the handlers of orders by what the order is.
func carryOut[Q, A any](p *Port, status int, what string, do func(context.Context, Q) (A, error)) func(Q) http.HandlerFunc {
	return func(q Q) http.HandlerFunc {
		return clusterLog{p}.recorded(what, func(*http.Request) string { return about(q) },
			respond(p, status, what, func(ctx context.Context, _ *http.Request) (A, error) { return do(ctx, q) }))
	}
}

// withBody returns a handler that reads a Q from a body of at most bytesMax bytes, and continues with the
// handler for it.
func withBody[Q any](bytesMax int64, next func(Q) http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q Q
		if readBody(w, r, bytesMax, &q) {
			next(q)(w, r)
		}
	}
}

// echo returns a function that calls do with an order and returns the same order.
func echo[O any](do func(context.Context, O) error) func(context.Context, O) (O, error) {
	return func(ctx context.Context, o O) (O, error) { return o, do(ctx, o) }
}

// readBody reads a JSON body of at most bytesMax bytes into v. If the body is bad, readBody
// answers the request and returns false.
func readBody(w http.ResponseWriter, r *http.Request, bytesMax int64, v any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bytesMax)).Decode(v); err != nil {
		refuse(w, http.StatusBadRequest, "the body is not the JSON that this needs")
		return false
	}
	return true
}

// explain answers an operator's request with err.
func (p *Port) explain(w http.ResponseWriter, what string, err error) {
	switch router.KindOf(err) {
	case 0:
		p.cfg.Log.Error("operator's request failed", "err", fmt.Errorf("%s: %w", what, err))
		refuse(w, http.StatusInternalServerError, "it failed; the node's log says why")
	case router.InvalidRequest:
		refuse(w, http.StatusBadRequest, err.Error())
	case router.NotFound:
		refuse(w, http.StatusNotFound, err.Error())
	case router.OverQuota:
		refuse(w, http.StatusTooManyRequests, err.Error())
	case router.Duplicate:
		refuse(w, http.StatusConflict, err.Error())
	default:
		refuse(w, http.StatusServiceUnavailable, err.Error())
	}
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]string{"message": message})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error means that the caller has gone
}
