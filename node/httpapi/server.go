package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"facet/internal/id"
	"facet/node/fair"
	"facet/node/sigv4"
)

// Bounds of everything that is read from the outside or waits for it.
const (
	headerBytesMax   = 16 << 10 // request line and headers together
	headersMax       = 100      // header lines
	segmentsMax      = 16       // segments of a path
	bodyBytesDefault = 20 << 20 // Limits.BodyBytes
	// bodiesBytesDefault is Limits.BodiesBytes: 40 bodies of the largest size or
	// about 2,000 usual ones.
	bodiesBytesDefault = 800 << 20
	bodyFirstBytes     = 64 << 10 // taken for a body before more of it came
	// requestsDefault is Limits.Requests: a request that waits for others takes little,
	// but the work that it waits for is bounded by it.
	requestsDefault = 1024
	// A body that is not wanted is read to its end up to drainBytes and for drainTime,
	// so that its connection can be used again.
	drainBytes           = 1 << 20
	drainPiece           = 32 << 10
	drainTime            = 250 * time.Millisecond
	connectionsDefault   = 8192
	connectionsIPDefault = 2048
	originsMax           = 64
	nestingMax           = 32      // of a body's JSON
	jsonTokensMax        = 1 << 14 // of a body's JSON
	pathIDMax            = 128     // characters of an id in a path or body
	idempotencyKeyMax    = 128
	apiKeyMax            = 128
	nameMax              = 256     // characters of a gallery's or application's name
	descriptionMax       = 4096    // characters
	tagsMax              = 64      // tags in one request
	tagMax               = 128     // characters of a tag's name
	bucketsMax           = 1 << 16 // tenants, and applications, whose rate is known
	gateNamesMax         = 1 << 14 // keys found lately, in each of two generations

	// retryAfterMax bounds what a client over its rate is told to wait.
	retryAfterMax = 24 * time.Hour
	// gateInterval is the least time between two looks for keys that were not
	// found lately.
	gateInterval = 20 * time.Millisecond
	// requestTimeout is the deadline of a request from when its body is there.
	requestTimeout = 30 * time.Second
	// lookupTimeout bounds the search for the access key, before the body.
	lookupTimeout = 10 * time.Second
	// readTimeoutDefault is Limits.ReadTimeout; each MB of body adds
	// readTimeoutPerMB.
	readTimeoutDefault = 10 * time.Second
	readTimeoutPerMB   = time.Second
	writeTimeout       = 30 * time.Second
	idleTimeout        = 75 * time.Second
	// lingerTime and lingerBytes bound what is read and thrown away after a
	// refusal, so that the client gets to see it.
	lingerTime  = 3 * time.Second
	lingerBytes = 32 << 20
	// lingerPiece for each lingerPause is the fastest: 25 MB a second.
	lingerPiece = 256 << 10
	lingerPause = 10 * time.Millisecond
	// acceptPauseMin to acceptPauseMax is waited when no connection can be
	// accepted, for want of file descriptors for example.
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second
)

// region and service are the credential scope (interface, §5).
const (
	regionDefault = "ap-southeast-2"
	service       = "execute-api"
)

// Limits are the bounds that an operator may change. Zero takes the default.
type Limits struct {
	// BodyBytes bounds one body (20 MiB), BodiesBytes all bodies in memory. No tenant
	// gets more than four fifths of that, nor of Requests, and less when others are there.
	BodyBytes, BodiesBytes int
	// Requests bounds the signed requests that are being answered at once (1,024).
	Requests int
	// Connections bounds open connections, ConnectionsPerIP those of one IPv4
	// address or IPv6 /64.
	Connections, ConnectionsPerIP int
	// TenantRate bounds the requests of each tenant to this node, ApplicationRate
	// those with the API keys of each application. Zero is no bound.
	TenantRate, ApplicationRate Rate
	// ReadTimeout is the time for the TLS handshake, for a request's headers, and
	// for its body, which has more when it is large (10 s, and 1 s for each MB).
	ReadTimeout time.Duration
}

// HealthAccess says who may ask for health.
type HealthAccess uint8

const (
	// HealthSigned is that health needs a signature, as every operation.
	HealthSigned HealthAccess = iota
	// HealthOpen is that health is answered to everybody.
	HealthOpen
)

// Config is what a Server is made of.
type Config struct {
	// Service carries out the requests.
	Service Service
	// TLS wraps the listener given to Serve; nil when that listener speaks TLS
	// itself. HTTP/1.1 is the only protocol.
	TLS    *tls.Config
	Limits Limits
	// Region is the region of credentials; empty is ap-southeast-2.
	Region string
	// Canonical says which canonical forms of signatures are accepted.
	Canonical sigv4.Canonical
	// MustSign names headers, in lower case, that have to be signed when present,
	// besides host, date and idempotency-key.
	MustSign []string
	Health   HealthAccess
	// Origins are the web origins that browsers may call from; none switches
	// CORS off.
	Origins []string
	// Crowded tells whether an image of this tenant would be refused at the moment: then
	// its body is not even read. It must be quick; nil is never.
	Crowded func(id.Tenant) bool
	// Miss is the probability with which a search may lose a hit, which its answer says then. It
	// must be quick; nil is always 0.
	Miss func() float64
	// Log gets faults of the service; nil discards them.
	Log *slog.Logger
	// Meter is told of every answer; nil tells nobody.
	Meter Meter
	// Now is the clock of signatures and rates; nil is time.Now.
	Now func() time.Time
}

// Server serves the public port. It is safe for concurrent use.
type Server struct {
	cfg      Config
	http     *fasthttp.Server
	verifier *sigv4.Verifier
	bodies   *fair.Pool // bytes; by the tenant that a request names, proven or not
	requests *fair.Pool // by tenants that have proven who they are
	rates    *rates
	origins  map[string]bool
	inFlight atomic.Int64
	slow     time.Duration // slowRequest, but in tests
	// accessKeys and apiKeys hold back the look-up of unknown keys.
	accessKeys, apiKeys gate

	mu       sync.Mutex // guards what follows
	closed   bool
	listener *boundedListener // nil before Serve
}

// New makes a Server; Serve starts it.
func New(cfg Config) (*Server, error) {
	if cfg.Service == nil {
		return nil, errors.New("new HTTP server: no service")
	}
	if len(cfg.Origins) > originsMax {
		return nil, fmt.Errorf("new HTTP server: %d origins, at most %d", len(cfg.Origins), originsMax)
	}
	defaults(&cfg)
	s := &Server{
		cfg: cfg,
		verifier: sigv4.New(sigv4.Config{
			Region: cfg.Region, Service: service, Canonical: cfg.Canonical,
			MustSign: append([]string{"idempotency-key"}, cfg.MustSign...),
		}),
		bodies:   fair.NewPool(int64(cfg.Limits.BodiesBytes)),
		requests: fair.NewPool(int64(cfg.Limits.Requests)),
		rates:    newRates(cfg.Limits.TenantRate, cfg.Limits.ApplicationRate),
		origins:  make(map[string]bool, len(cfg.Origins)),
		slow:     slowRequest,
	}
	for _, origin := range cfg.Origins {
		s.origins[origin] = true
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
		Concurrency:        2 * cfg.Limits.Connections, // boundedListener is the bound
		MaxRequestBodySize: cfg.Limits.BodyBytes,
		StreamRequestBody:  true,
		// Multipart forms are written to files before the handler sees them.
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

// defaults fills what cfg leaves open.
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
	if cfg.Miss == nil {
		cfg.Miss = func() float64 { return 0 }
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

// Serve answers connections of ln until Close, then gives nil. It owns ln and
// may be called once.
func (s *Server) Serve(ln net.Listener) error {
	bounded := newBoundedListener(ln, s.cfg.Limits)
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
		ln = tls.NewListener(ln, cfg)
	}
	if err := s.http.Serve(ln); err != nil {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}

// Close stops accepting connections and waits until the requests in flight are
// answered. When ctx ends before, it cuts their connections and gives ctx's
// error; their work in the Service ends by their own deadline.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	ln := s.listener
	s.mu.Unlock()
	if ln == nil {
		return nil
	}
	// fasthttp may not know the listener yet; then it finds it closed.
	if err := ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close HTTP server: %w", err)
	}
	if err := s.http.ShutdownWithContext(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
		ln.cut()
		return fmt.Errorf("close HTTP server: %w", err)
	}
	return nil
}

// headerReceived gives a request the time that its body's size deserves. It
// keeps fasthttp from waiting for a body that will not be read: the handler
// refuses these requests by their raw headers.
func (s *Server) headerReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	length := h.ContentLength()
	if length == chunked || length > s.cfg.Limits.BodyBytes {
		h.SetContentLength(0)
		h.Del(fasthttp.HeaderExpect)
		length = 0
	}
	return fasthttp.RequestConfig{ReadTimeout: s.cfg.Limits.ReadTimeout + time.Duration(max(length, 0)>>20)*readTimeoutPerMB}
}

// noteIdle notes that a connection has had its answer.
func noteIdle(c net.Conn, state fasthttp.ConnState) {
	if state != fasthttp.StateIdle {
		return
	}
	if b := boundedBelow(c); b != nil {
		b.rests()
	}
}

// chunked is fasthttp's content length of a chunked body.
const chunked = -1

// quietLog takes fasthttp's log lines. It drops their arguments: they quote
// header bytes, which may hold keys.
type quietLog struct{ log *slog.Logger }

// Printf logs the format only.
func (l quietLog) Printf(format string, _ ...any) {
	l.log.Debug("http connection", "err", format)
}
