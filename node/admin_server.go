package node

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"facet/node/cert"
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

// adminServer serves operators: liveness, readiness and metrics to whoever reaches
// the port, the rest to holders of the cluster's admin certificate.
type adminServer struct {
	http http.Server
	work sync.WaitGroup
}

// openAdmin opens the admin port with the node's certificate.
func (n *Node) openAdmin(ctx context.Context, source *cert.Source) (*adminServer, error) {
	listener, err := n.cfg.Network.Listen(ctx, n.cfg.AdminAddress)
	if err != nil {
		return nil, fmt.Errorf("open admin port: %w", err)
	}
	a := &adminServer{http: http.Server{
		Handler: n.adminRoutes(), ReadTimeout: adminTimeout, WriteTimeout: adminTimeout,
		IdleTimeout: adminIdle, MaxHeaderBytes: adminHeaderMax,
		ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelDebug),
	}}
	// Who shows a certificate must show a good one; who shows none gets no further
	// than the open paths.
	config := source.AdminServerConfig()
	verify := config.VerifyConnection
	config.ClientAuth = tls.RequestClientCert
	config.VerifyConnection = func(c tls.ConnectionState) error {
		if len(c.PeerCertificates) == 0 {
			return nil
		}
		return verify(c)
	}
	a.work.Go(func() {
		if err := a.http.Serve(tls.NewListener(listener, config)); !errors.Is(err, http.ErrServerClosed) {
			n.fail(fmt.Errorf("serve admin port: %w", err))
		}
	})
	return a, nil
}

func (a *adminServer) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), adminCloseGrace)
	defer cancel()
	err := a.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = a.http.Close()
	}
	a.work.Wait()
	return err
}

func (n *Node) adminRoutes() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("GET "+PathLive, n.serveLive)
	routes.HandleFunc("GET "+PathReady, n.serveReady)
	routes.Handle("GET "+PathMetrics, promhttp.HandlerFor(n.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelWarn), MaxRequestsInFlight: scrapesMax, Timeout: scrapeTimeout,
	}))
	routes.HandleFunc("GET "+PathStatus, admitted(n.serveStatus))
	routes.HandleFunc("POST "+PathNodes, admitted(n.serveNodeOrder))
	routes.HandleFunc("POST "+PathShards, admitted(n.serveShardOrder))
	routes.HandleFunc("POST "+PathTenants, admitted(n.serveNewTenant))
	routes.HandleFunc("GET "+PathKeys, admitted(n.serveKeys))
	routes.HandleFunc("POST "+PathKeys, admitted(n.serveNewKey))
	routes.HandleFunc("DELETE "+PathKeys+"/{key}", admitted(n.serveRevokeKey))
	n.backupRoutes(routes)
	n.clusterRoutes(routes)
	return routes
}

// admitted lets holders of a certificate through.
func admitted(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
			refuse(w, http.StatusForbidden, "this needs the cluster's admin certificate")
			return
		}
		next(w, r)
	}
}

func (n *Node) serveStatus(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, n.Status(r.Context()))
}

func (n *Node) serveNewTenant(w http.ResponseWriter, r *http.Request) {
	var body NewTenant
	if !readBody(w, r, &body) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	key, err := n.router.CreateTenant(ctx, body.Name)
	if err != nil {
		n.explain(w, "create tenant", err)
		return
	}
	answer(w, http.StatusCreated, TenantKeys{Tenant: key.Tenant, Name: body.Name, AccessKey: key.ID, SecretKey: key.Secret})
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
func (n *Node) explain(w http.ResponseWriter, what string, err error) {
	switch router.KindOf(err) {
	case 0:
		n.log.Error("operator's request failed", "err", fmt.Errorf("%s: %w", what, err))
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
