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
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"facet/internal/id"
	"facet/node/cert"
	"facet/node/wire"
	"facet/router"
)

// Bounds of the admin port.
const (
	adminBodyMax    = 64 << 10
	adminTimeout    = 30 * time.Second
	adminIdle       = time.Minute
	adminHeaderMax  = 16 << 10
	adminCloseGrace = 2 * time.Second

	scrapesMax    = 4
	scrapeTimeout = 8 * time.Second
)

// statusRequests are the requests that a certificate of the role status may make, too. All others
// are the administrator's, unless they are open to whoever reaches the port.
var statusRequests = map[string]bool{
	"GET " + wire.PathStatus: true,
	"GET " + wire.PathPlan:   true,
}

// Open opens the admin port with the node's certificate.
func Open(ctx context.Context, c Config) (*Port, error) {
	listener, err := c.Network.Listen(ctx, c.Address)
	if err != nil {
		return nil, fmt.Errorf("open admin port: %w", err)
	}
	p := &Port{cfg: c, conns: map[*tls.Conn]struct{}{}}
	p.http = http.Server{
		Handler: p.routes(), ReadTimeout: adminTimeout, WriteTimeout: adminTimeout,
		IdleTimeout: adminIdle, MaxHeaderBytes: adminHeaderMax, ConnState: p.note,
		ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	// Who shows a certificate must show a good one; who shows none gets no further
	// than the open paths.
	config := p.cfg.Keys.Node().AdminServerConfig()
	verify := config.VerifyConnection
	config.ClientAuth = tls.RequestClientCert
	config.VerifyConnection = func(c tls.ConnectionState) error {
		if len(c.PeerCertificates) == 0 {
			return nil
		}
		return verify(c)
	}
	p.work.Go(func() {
		if err := p.http.Serve(tls.NewListener(listener, config)); !errors.Is(err, http.ErrServerClosed) {
			p.cfg.Fail(fmt.Errorf("serve admin port: %w", err))
		}
	})
	return p, nil
}

// note keeps the connections whose handshake is over.
func (p *Port) note(c net.Conn, state http.ConnState) {
	conn, ok := c.(*tls.Conn)
	if !ok {
		return
	}
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

// Cut closes the connections of those whose certificates match, and returns how many
// there were.
func (p *Port) Cut(match func(leaf *x509.Certificate) bool) int {
	p.mu.Lock()
	conns := slices.Collect(maps.Keys(p.conns))
	p.mu.Unlock()
	count := 0
	for _, c := range conns {
		if shown := c.ConnectionState().PeerCertificates; len(shown) > 0 && match(shown[0]) {
			_ = c.NetConn().Close() // nobody to tell
			count++
		}
	}
	return count
}

// Close closes the port, and waits a moment for what is being answered.
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
	p.handle(routes, "GET "+wire.PathStatus, p.serveStatus)
	p.handle(routes, "POST "+wire.PathNodes, p.serveNodeOrder)
	p.handle(routes, "POST "+wire.PathShards, p.serveShardOrder)
	p.handle(routes, "POST "+wire.PathTenants, p.serveNewTenant)
	p.handle(routes, "GET "+wire.PathKeys, p.serveKeys)
	p.handle(routes, "POST "+wire.PathKeys, p.serveNewKey)
	p.handle(routes, "DELETE "+wire.PathKeys+"/{key}", p.serveRevokeKey)
	p.backupRoutes(routes)
	p.clusterRoutes(routes)
	return routes
}

// handle adds what answers a request to those who may make it.
func (p *Port) handle(routes *http.ServeMux, pattern string, next http.HandlerFunc) {
	routes.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if why := p.mayOrder(r.TLS, pattern); why != "" {
			refuse(w, http.StatusForbidden, why)
			return
		}
		next(w, r)
	})
}

// mayOrder returns why the holder of a certificate may not make a request, or "". It is
// asked for each request: a connection outlives what it was opened with.
func (p *Port) mayOrder(c *tls.ConnectionState, pattern string) string {
	if c == nil || len(c.PeerCertificates) == 0 {
		return "this needs the cluster's admin certificate"
	}
	role, name, err := p.cfg.Keys.Node().Holder(c.PeerCertificates[0])
	switch {
	case err != nil:
		return "the certificate is not trusted any more"
	case role == cert.RoleAdmin:
		return ""
	case role == cert.RoleNode:
		return "this is the certificate of a node, which may give no orders: " + wire.RenewForStatus
	case !statusRequests[pattern]:
		return "this needs the cluster's admin certificate: a status certificate is good for facet status, facet cluster status and facet shard balance only"
	}
	if u, err := id.Parse(name); err != nil || p.cfg.IsRemoved(id.Node{UUID: u}) {
		return "the certificate is of a node that was removed"
	}
	return ""
}

func (p *Port) serveStatus(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, p.Status(r.Context()))
}

func (p *Port) serveNewTenant(w http.ResponseWriter, r *http.Request) {
	var body wire.NewTenant
	if !readBody(w, r, &body) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	key, err := p.cfg.Router.CreateTenant(ctx, body.Name)
	if err != nil {
		p.explain(w, "create tenant", err)
		return
	}
	answer(w, http.StatusCreated, wire.TenantKeys{Tenant: key.Tenant, Name: body.Name, AccessKey: key.ID, SecretKey: key.Secret})
}

// readBody reads a JSON body into v, or refuses it and is false.
func readBody(w http.ResponseWriter, r *http.Request, v any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, adminBodyMax)).Decode(v); err != nil {
		refuse(w, http.StatusBadRequest, "the body is not the JSON that this needs")
		return false
	}
	return true
}

// explain answers what went wrong with an operator's request.
func (p *Port) explain(w http.ResponseWriter, what string, err error) {
	switch router.KindOf(err) {
	case 0:
		p.cfg.Log.Error("operator's request failed", "err", fmt.Errorf("%s: %w", what, err))
		refuse(w, http.StatusInternalServerError, "it failed; the node's log says why")
	case router.InvalidRequest:
		refuse(w, http.StatusBadRequest, err.Error())
	case router.NotFound:
		refuse(w, http.StatusNotFound, err.Error())
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
	_ = json.NewEncoder(w).Encode(v) // the caller went away: nobody is left to tell
}
