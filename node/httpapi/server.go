package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"facet/internal/fair"
	"facet/internal/id"
	"facet/internal/requestlog"
	"facet/internal/trace"
	"facet/node/listener"
	"facet/node/sigv4"
)

// Limits of requests and connections, and of the time that they may take.
const (
	headerBytesMax   = 16 << 10 // request line and headers together
	headersMax       = 100      // header lines
	segmentsMax      = 16       // segments of a path
	bodyBytesDefault = 20 << 20 // default of Limits.BodyBytes
	// bodiesBytesDefault is the default of Limits.BodiesBytes: 40 bodies of the
	// largest size or about 2,000 usual ones.
	bodiesBytesDefault = 800 << 20
	bodyFirstBytes     = 64 << 10 // taken for a body before any of it came
	// paceBytes is the least of a body that comes in half of Limits.ReadTimeout, 5 s, or its rest.
	paceBytes = 64 << 10
	// requestsDefault is the default of Limits.Requests. It limits the work in
	// progress, not the memory: a waiting request takes little.
	requestsDefault = 1024
	// An unwanted body is read to its end, up to drainBytes and for drainTime. Its
	// connection can then serve another request.
	drainBytes           = 1 << 20
	drainPiece           = 32 << 10
	drainTime            = 250 * time.Millisecond
	connectionsDefault   = 8192
	connectionsIPDefault = 2048
	nestingMax           = 32      // of a body's JSON
	jsonTokensMax        = 1 << 14 // of a body's JSON
	pathIDMax            = 128     // characters of an id in a path or body
	idempotencyKeyMax    = 128
	etagMax              = 64
	apiKeyMax            = 128
	tagsMax              = 64      // tags in one request
	tagMax               = 128     // characters of a tag's name
	bucketsMax           = 1 << 16 // tenants, and applications, with a bucket
	gateNamesMax         = 1 << 14 // keys found lately, in each of two generations

	// retryAfterMax is the longest wait in an answer to a client over its rate.
	retryAfterMax = 24 * time.Hour
	// gateInterval is the least time between two look-ups of keys that were not
	// found lately.
	gateInterval = 20 * time.Millisecond
	// requestTimeout is the deadline of a request once its body was read.
	requestTimeout = 30 * time.Second
	// lookupTimeout is the longest time for the look-up of the access key, before
	// the body is read.
	lookupTimeout      = 10 * time.Second
	readTimeoutDefault = 10 * time.Second // default of Limits.ReadTimeout
	// bodyTimeMax is the time for a whole body. It is shorter than the time for which a
	// signature is valid.
	bodyTimeMax = 4 * time.Minute
	// keyAge is how long after its look-up an access key may serve a request without
	// another one.
	keyAge        = time.Second
	handshakeTime = 5 * time.Second // for the TLS handshake, or ReadTimeout if that is shorter
	writeTimeout  = 30 * time.Second
	idleTimeout   = 75 * time.Second
)

// region and service are the credential scope (interface, §5).
const (
	regionDefault = "ap-southeast-2"
	service       = "execute-api"
)

// Limits are the bounds that an operator may change. A zero field takes the
// default.
type Limits struct {
	// BodyBytes is the most bytes of one body (20 MiB), BodiesBytes of all bodies
	// in memory. No tenant gets more than four fifths of BodiesBytes or of
	// Requests, and less when other tenants are active.
	BodyBytes, BodiesBytes int
	// Requests is the most signed requests that are answered at once (1,024).
	Requests int
	// Connections is the most open connections, ConnectionsPerIP the most from one
	// IPv4 address or IPv6 /64.
	Connections, ConnectionsPerIP int
	// ReadTimeout is the time for the headers of a request (10 s). A body has half of it for each paceBytes.
	ReadTimeout time.Duration
}

// HealthAccess says which clients may read health.
type HealthAccess uint8

const (
	// HealthSigned requires a signature for health, as for every operation.
	HealthSigned HealthAccess = iota
	// HealthOpen answers health to every client.
	HealthOpen
)

// ConsoleAccess says whether the web console is served.
type ConsoleAccess uint8

const (
	// ConsoleOn serves the console's pages to every client.
	ConsoleOn ConsoleAccess = iota
	// ConsoleOff serves none.
	ConsoleOff
)

// Rules say which requests are served. A running Server can change them.
type Rules struct {
	// Canonical lists the accepted canonical forms of signatures.
	Canonical sigv4.Canonical
	// MustSign names headers, in lower case, that have to be signed when present.
	// host, date, idempotency-key and if-match always have to be.
	MustSign []string
	Health   HealthAccess
	Console  ConsoleAccess
	// Origins are the web origins that browsers may call from. None switches CORS
	// off.
	Origins []string
	// TenantRate bounds the requests of each tenant to this node, ApplicationRate
	// those with the API keys of each application. Zero is unbounded.
	TenantRate, ApplicationRate Rate
}

// Config configures a Server.
type Config struct {
	Rules
	// Service carries out the requests.
	Service Service
	// TLS wraps the listener passed to Serve. It is nil when that listener speaks
	// TLS itself. HTTP/1.1 is the only protocol.
	TLS    *tls.Config
	Limits Limits
	// Port is the port at which clients reach the server, if it is known.
	Port string
	// Region is the region of credentials. Empty means ap-southeast-2.
	Region string
	// Crowded reports whether an image of this tenant would be refused now. The
	// body of such a request is not even read. Crowded must be quick; nil means
	// never.
	Crowded func(id.Tenant) bool
	// Quota returns what this node grants a tenant now. It must be quick. nil means
	// Limits.TenantRate and any number of searches.
	Quota func(id.Tenant) Quota
	// Tracer samples requests with a right signature. nil samples none.
	Tracer *trace.Tracer
	// Log gets faults of the service. nil discards them.
	Log *slog.Logger
	// Meter gets the outcome of every answer. nil measures nothing.
	Meter Meter
	// Used gets the access key of each request with a right signature. It must be quick. nil: nobody asks.
	Used func(accessKey string)
	// Audit gets the record of each request with a right signature. nil keeps none.
	Audit Auditor
	// Now is the clock of signatures and rates. nil is time.Now.
	Now func() time.Time
}

// Server serves the public port. It is safe for concurrent use.
type Server struct {
	table *table
	cfg   Config
	http  *fasthttp.Server
	rules atomic.Pointer[rules]
	// bodies has the bytes of bodies by tenant, unproven those of the zero tenant by address and access key.
	bodies   *fair.Pool[id.Tenant]
	unproven *unproven
	requests *fair.Pool[id.Tenant] // counted for tenants whose signature was verified
	rates    *rates
	searches inWork
	inFlight atomic.Int64
	slow     time.Duration // slowRequest; tests set another
	// slowLines bounds the lines about slow requests.
	slowLines *requestlog.Bound
	// accessKeys and apiKeys delay the look-up of unknown keys.
	accessKeys, apiKeys gate
	failures            *failures

	mu       sync.Mutex // guards listener and closed
	closed   bool
	listener *listener.Listener // nil before Serve
}

func newServer(cfg Config, t *table) (*Server, error) {
	if cfg.Service == nil {
		return nil, errors.New("new HTTP server: no service")
	}
	defaults(&cfg)
	s := &Server{
		cfg: cfg, table: t,
		bodies:     fair.NewPool[id.Tenant](int64(cfg.Limits.BodiesBytes)),
		requests:   fair.NewPool[id.Tenant](int64(cfg.Limits.Requests)),
		unproven:   newUnproven(int64(cfg.Limits.BodiesBytes) / 2),
		rates:      newRates(cfg.TenantRate, cfg.ApplicationRate),
		slow:       slowRequest,
		slowLines:  requestlog.NewBound(),
		searches:   inWork{of: make(map[id.Tenant]int)},
		accessKeys: newGate(), apiKeys: newGate(), failures: newFailures(),
	}
	s.rates.tenants.own = func(name id.UUID) Rate { return s.cfg.Quota(id.Tenant{UUID: name}).Requests }
	if err := s.SetRules(cfg.Rules); err != nil {
		return nil, fmt.Errorf("new HTTP server: %w", err)
	}
	s.http = &fasthttp.Server{
		Handler:            s.serve,
		ErrorHandler:       s.serveBroken,
		HeaderReceived:     s.headerReceived,
		ExpectHandler:      s.expect,
		ReadBufferSize:     headerBytesMax,
		ReadTimeout:        cfg.Limits.ReadTimeout,
		WriteTimeout:       writeTimeout,
		IdleTimeout:        idleTimeout,
		Concurrency:        2 * cfg.Limits.Connections, // listener.Listener is the real bound
		MaxRequestBodySize: cfg.Limits.BodyBytes,
		StreamRequestBody:  true,
		// fasthttp would otherwise write multipart forms to files before the
		// handler sees them.
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true,
		CloseOnShutdown:              true,
		ConnState:                    noteIdle,
		Logger:                       quietLog{cfg.Log},
	}
	return s, nil
}

// defaults sets the fields of cfg that are zero.
func defaults(cfg *Config) {
	for _, l := range []struct {
		v         *int
		byDefault int
	}{
		{&cfg.Limits.BodyBytes, bodyBytesDefault},
		{&cfg.Limits.BodiesBytes, bodiesBytesDefault},
		{&cfg.Limits.Requests, requestsDefault},
		{&cfg.Limits.Connections, connectionsDefault},
		{&cfg.Limits.ConnectionsPerIP, connectionsIPDefault},
	} {
		if *l.v <= 0 {
			*l.v = l.byDefault
		}
	}
	if cfg.Limits.ReadTimeout <= 0 {
		cfg.Limits.ReadTimeout = readTimeoutDefault
	}
	if cfg.Region == "" {
		cfg.Region = regionDefault
	}
	if cfg.Quota == nil {
		rate := cfg.TenantRate
		cfg.Quota = func(id.Tenant) Quota { return Quota{Requests: rate} }
	}
	if cfg.Crowded == nil {
		cfg.Crowded = func(id.Tenant) bool { return false }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
}

// Serve answers the connections of ln until Close, then returns nil. It owns ln and
// may be called once.
func (s *Server) Serve(ln net.Listener) error {
	bounded := listener.New(ln, listener.Limits{Connections: s.cfg.Limits.Connections, PerIP: s.cfg.Limits.ConnectionsPerIP})
	s.mu.Lock()
	closed := s.closed
	s.listener = bounded
	s.mu.Unlock()
	if closed {
		return ln.Close()
	}
	ln = bounded
	if s.cfg.TLS != nil {
		cfg := s.cfg.TLS.Clone()
		cfg.NextProtos = []string{"http/1.1"}
		ln = clearingListener{Listener: ln, tls: cfg}
	}
	if err := s.http.Serve(ln); err != nil {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}

// Close stops accepting connections and waits until the requests in flight are
// answered. When ctx ends first, Close cuts their connections and returns ctx's
// error. Their work in the Service then ends by their own deadline.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	ln := s.listener
	s.mu.Unlock()
	if ln == nil {
		return nil
	}
	// fasthttp may not know the listener yet; Serve then finds it closed.
	if err := ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close HTTP server: %w", err)
	}
	if err := s.http.ShutdownWithContext(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
		ln.Cut()
		return fmt.Errorf("close HTTP server: %w", err)
	}
	return nil
}

// headerReceived keeps fasthttp from waiting for a body that will not be read: the handler refuses
// these requests by their raw headers. fasthttp takes every body to be beyond the limit, waits
// for its first byte as long as for paceBytes, and passes the body on as it comes. Otherwise fasthttp would read 8 KiB
// ahead and keep them. Of a body in chunks it passes on the raw bytes.
func (s *Server) headerReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	config := fasthttp.RequestConfig{ReadTimeout: s.cfg.Limits.ReadTimeout / 2, MaxRequestBodySize: 1}
	length := h.ContentLength()
	if length == chunked {
		if _, err := readHead(h, s.cfg.Limits.BodyBytes); err == nil {
			h.SetContentLength(chunkedLength)
			return config
		}
	}
	if length == chunked || length > s.cfg.Limits.BodyBytes {
		h.SetContentLength(0)
		h.Del(fasthttp.HeaderExpect)
	}
	return config
}

// noteIdle records that a connection has had its answer.
func noteIdle(c net.Conn, state fasthttp.ConnState) {
	if state != fasthttp.StateIdle {
		return
	}
	if b := listener.Below(c); b != nil {
		b.Rests()
	}
}

const (
	// chunked is the content length that fasthttp reports for a chunked body.
	chunked = -1
	// chunkedLength is the length of a chunked body that fasthttp is told.
	chunkedLength = math.MaxInt64 / 2
)

// quietLog receives fasthttp's log lines. It drops their arguments, because they
// quote header bytes, which may contain keys.
type quietLog struct{ log *slog.Logger }

// Printf logs the format only.
func (l quietLog) Printf(format string, _ ...any) {
	l.log.Debug("http connection", "err", format)
}
