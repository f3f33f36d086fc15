package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"facet.internal/client"
	"facet/node/console"
	"facet/node/listener"
	"facet/node/receipt"
	"facet/node/wire"
)

// Bounds of requests. A node's own bounds are tighter.
const (
	headerBytesMax = 16 << 10
	bodyBytesMax   = 40 << 20 // the most that a node can be set to take
	connectionsMax = 256
	// forwardsMax is the most requests that are forwarded at once. Others wait.
	forwardsMax = 16
	readTimeout = time.Minute
	// forwardTimeout is the longest time for all tries of a request.
	forwardTimeout = 2 * time.Minute
	idleTimeout    = 5 * time.Minute
	closeGrace     = 2 * time.Second
)

// Config describes the cluster of a console. The console closes Tenant.
type Config struct {
	// Port is the port on loopback, or 0 for a free one.
	Port int
	// Tenant signs and sends requests of the interface. nil offers none of them.
	Tenant *client.Client
	// AccessKey, Region and Nodes are what Tenant signs with, and calls.
	AccessKey, Region string
	Nodes             []string
	// APIKey is that of the application of the pages, for a Tenant that may not list applications.
	APIKey string
	// Status returns the state of the cluster. nil offers none.
	Status func(context.Context) (wire.Status, error)
	// Receipt returns a receipt of erasures. It is there if Status is.
	Receipt func(context.Context, receipt.Order) (receipt.Answer, error)
	// Out gets the address of the next session after a page has ended one.
	Out io.Writer
}

// Server is a running console. It is safe for concurrent use.
type Server struct {
	cfg     Config
	host    string // 127.0.0.1:PORT, which every request must name
	http    *http.Server
	serving sync.WaitGroup
	places  chan struct{} // taken by requests that are forwarded; forwardsMax

	mu     sync.Mutex // guards the fields below
	token  string     // opens the session, once
	used   bool       // the token
	cookie string     // the value of the session's cookie
}

// Open starts a console on loopback.
func Open(cfg Config) (*Server, error) {
	ln, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", cfg.Port))
	if err != nil {
		return nil, fmt.Errorf("open the console's port: %w", err)
	}
	s := &Server{
		cfg: cfg, host: ln.Addr().String(), token: rand.Text(), cookie: rand.Text(), places: make(chan struct{}, forwardsMax),
	}
	s.http = &http.Server{
		Handler: s, MaxHeaderBytes: headerBytesMax, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		ConnState: listener.Track,
		ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // it tells what browsers do
	}
	bounded := listener.New(ln, listener.Limits{Connections: connectionsMax, PerIP: connectionsMax})
	s.serving.Go(func() { _ = s.http.Serve(bounded) }) // until Close
	return s, nil
}

// Address returns the address to open in a browser. It works once.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.host + "/?" + tokenName + "=" + s.token
}

// Close ends the console. Requests in work get a moment.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	s.serving.Wait()
	if s.cfg.Tenant != nil {
		s.cfg.Tenant.Close()
	}
	return err
}

const tokenName = "token"

// cookieName returns the name of the session's cookie. A browser sends the cookies of a host to all
// its ports, so the port is in the name.
func (s *Server) cookieName() string {
	_, port, _ := net.SplitHostPort(s.host)
	return "facet-console-" + port
}

// isForwarded reports whether a node answers the path.
func isForwarded(path string) bool {
	return path == console.DocumentPath || strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v1.1/") || strings.HasPrefix(path, "/api/")
}

// ServeHTTP answers a request of a browser.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch path := r.URL.Path; {
	case !s.ours(r):
		say(w, http.StatusForbidden, "ForeignPage", "This is a request for another host or from another page. Open the address that facet console printed.")
	case path == "/" && r.Method == http.MethodGet:
		s.enter(w, r)
	case path == console.SessionPath && read:
		s.private(w, r, s.session)
	case path == console.SessionPath && r.Method == http.MethodDelete:
		s.private(w, r, s.lock)
	case path == console.StatusPath && read && s.cfg.Status != nil:
		s.private(w, r, s.status)
	case path == console.ReceiptPath && r.Method == http.MethodPost && s.cfg.Receipt != nil:
		s.private(w, r, s.receipt)
	case isForwarded(path) && s.cfg.Tenant != nil:
		s.private(w, r, s.forward)
	case read && isPage(path):
		page(w, r)
	default:
		say(w, http.StatusNotFound, "", "There is no such page.")
	}
}

// ours reports whether a request names this server as its host, and comes from its own pages if it
// says from where. A page of another site can make a browser call 127.0.0.1, also under a name of
// its own (DNS rebinding), but it can't choose these headers.
func (s *Server) ours(r *http.Request) bool {
	own := func(origin string) bool { return origin == "http://"+s.host }
	return r.Host == s.host && !slices.ContainsFunc(r.Header.Values("Origin"), func(o string) bool { return !own(o) })
}

// enter exchanges the token for the session's cookie, once. The page's address then has "entered".
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	given, to := r.URL.Query().Get(tokenName), console.Root+"/"
	if given != "" && !s.known(r) {
		cookie, ok := s.take(given)
		if !ok {
			if strings.Contains(r.Header.Get("Accept"), "text/html") { // the page says so in words
				http.Redirect(w, r, to, http.StatusSeeOther)
				return
			}
			say(w, http.StatusForbidden, "TokenUsed", "This address works once, and was opened before. Start facet console again for a new one.")
			return
		}
		http.SetCookie(w, &http.Cookie{Name: s.cookieName(), Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		to += "?entered"
	}
	w.Header().Set("Location", to)
	say(w, http.StatusSeeOther, "", "The console is at "+console.Root+"/.")
}

// take returns the session's cookie if token is right and was never used.
func (s *Server) take(token string) (cookie string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used || !same(token, s.token) {
		return "", false
	}
	s.used = true
	return s.cookie, true
}

// lock ends the session. The next one has another address.
func (s *Server) lock(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	s.token, s.used, s.cookie = rand.Text(), false, rand.Text()
	s.mu.Unlock()
	fmt.Fprintf(s.cfg.Out, "nobody used the page for ten minutes, so it is locked; open this address, which works once\n\n  %s\n\n", s.Address())
	w.WriteHeader(http.StatusNoContent)
}

// known reports whether a request has the session's cookie.
func (s *Server) known(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(r.CookiesNamed(s.cookieName()), func(c *http.Cookie) bool { return same(c.Value, s.cookie) })
}

// same compares secrets in a time that depends on their lengths only.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// private calls serve for a request of the session, from one of the console's own pages or typed by
// a person. A browser tells which page made a request, also for pages on other ports of this host.
func (s *Server) private(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
	from := r.Header.Get("Sec-Fetch-Site")
	switch {
	case from != "" && from != "same-origin" && from != "none":
		say(w, http.StatusForbidden, "ForeignPage", "Another page made this request. Open the address that facet console printed.")
	case !s.known(r):
		say(w, http.StatusUnauthorized, "SignedOut", "There is no session. Open the address that facet console printed.")
	default:
		serve(w, r)
	}
}

// isPage reports whether the path is in a folder of pages. Without a tenant the interface's description is
// that of this software.
func isPage(path string) bool {
	return path == console.DocumentPath || slices.ContainsFunc([]string{console.Root, console.Docs}, func(folder string) bool {
		return path == folder || strings.HasPrefix(path, folder+"/")
	})
}

// page serves a file of the console.
func page(w http.ResponseWriter, r *http.Request) {
	a := console.Load().Answer(console.Request{
		Path: r.URL.EscapedPath(), AcceptEncoding: r.Header.Get("Accept-Encoding"), IfNoneMatch: r.Header.Get("If-None-Match"),
	})
	for _, h := range a.Headers {
		w.Header().Set(h.Name, h.Value)
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the browser may be gone
}

// session says what the page can do.
func (s *Server) session(w http.ResponseWriter, _ *http.Request) {
	v := console.Session{
		How: console.ByLoopback, Version: wire.Version, Region: s.cfg.Region, AccessKey: s.cfg.AccessKey, Nodes: s.cfg.Nodes,
		APIKey: s.cfg.APIKey,
		Rights: []console.Right{},
	}
	if s.cfg.Tenant != nil {
		v.Rights = append(v.Rights, console.RightTenant)
	}
	if s.cfg.Status != nil {
		v.Rights = append(v.Rights, console.RightOperator)
	}
	writeJSON(w, http.StatusOK, v)
}

// status shows the state of the cluster.
func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	v, err := s.cfg.Status(r.Context())
	if err != nil {
		say(w, http.StatusBadGateway, "NoNode", sentence(err))
		return
	}
	writeJSON(w, http.StatusOK, v)
}

// receipt gets a receipt of erasures, or brings one up to date.
func (s *Server) receipt(w http.ResponseWriter, r *http.Request) {
	var o receipt.Order
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, receipt.OrderBytesMax)).Decode(&o); err != nil {
		say(w, http.StatusBadRequest, "", "The body is not the JSON of an order for a receipt.")
		return
	}
	a, err := s.cfg.Receipt(r.Context(), o)
	if err != nil {
		say(w, http.StatusBadGateway, "NoReceipt", "There is no receipt: "+err.Error()+".")
		return
	}
	v, err := receipt.Open(a.Signed, a.PublicKey)
	if err != nil {
		say(w, http.StatusBadGateway, "NoReceipt", "The receipt is not valid: "+err.Error()+".")
		return
	}
	writeJSON(w, http.StatusOK, openedReceipt{a, v})
}

// openedReceipt is a signed receipt and what it says.
type openedReceipt struct {
	receipt.Answer
	Receipt *receipt.Receipt `json:"receipt"`
}

// passedHeaders are the headers of a node's answer that the page gets.
var passedHeaders = []string{"Content-Type", "X-Request-Id", "Retry-After", "Allow", "Facet-Commit"}

// forward sends a request to the cluster. Its body is read once there is a place for it.
func (s *Server) forward(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), forwardTimeout)
	defer cancel()
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		say(w, http.StatusRequestEntityTooLarge, "", "The body is too large.")
		return
	}
	if err != nil {
		return // the browser has gone
	}
	defer clear(body)
	reply, err := s.cfg.Tenant.Forward(ctx, client.Forwarded{
		Method: r.Method, URL: &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery},
		APIKey: r.Header.Get("X-Api-Key"), IdempotencyKey: r.Header.Get("Idempotency-Key"), ContentType: r.Header.Get("Content-Type"),
		Purpose: r.Header.Get("X-Purpose"), Body: body,
	})
	if err != nil {
		say(w, http.StatusBadGateway, "NoNode", sentence(err))
		return
	}
	for _, name := range passedHeaders {
		if v := reply.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	protect(w)
	w.WriteHeader(reply.Status)
	_, _ = w.Write(reply.Body) // the browser may be gone
}
