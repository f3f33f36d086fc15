package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet.internal/client"
)

// script is a server that answers with the given steps in order and repeats the
// last one.
type script struct {
	steps []func(w http.ResponseWriter)

	mu   sync.Mutex
	seen []seen
}

// seen contains one request that the server received.
type seen struct {
	method, target, key, signature, body string
	at                                   time.Time
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	step := s.steps[min(len(s.seen), len(s.steps)-1)]
	s.seen = append(s.seen, seen{r.Method, r.RequestURI, r.Header.Get("Idempotency-Key"), r.Header.Get("Authorization"), string(body), time.Now()})
	step(w)
}

func (s *script) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// served starts a server with a script.
func served(t *testing.T, steps ...func(w http.ResponseWriter)) (*script, *httptest.Server) {
	t.Helper()
	s := &script{steps: steps}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	return s, server
}

// play starts a server with a script and returns a client of it.
func play(t *testing.T, cfg client.Config, steps ...func(w http.ResponseWriter)) (*script, *client.Client) {
	t.Helper()
	s, server := served(t, steps...)
	return s, testClient(t, cfg, server)
}

// say answers with a status, a body, and headers as "Name: value".
func say(status int, body string, headers ...string) func(w http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// hangUp closes the connection without an answer.
func hangUp(http.ResponseWriter) { panic(http.ErrAbortHandler) }

const failed = `{"message":"No leader.","errorCode":5000,"errorType":"ServerError"}`

func TestRetriedWriteKeepsKeyAndBody(t *testing.T) {
	t.Parallel()
	made := say(201, `{"id":"s","eventId":"e","attributes":{}}`)
	s, c := play(t, client.Config{}, hangUp, say(500, failed), say(429, `{"message":"Too many requests."}`), made)
	for range 2 {
		if got, err := c.Register(t.Context(), client.Photo{Image: []byte("x")}); err != nil || got.ID != "s" {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	all := s.requests()
	first, second := all[:len(all)-1], all[len(all)-1]
	for _, r := range first {
		if r.key != first[0].key || r.body != first[0].body || len(r.key) < 20 {
			t.Errorf("tries differ: %+v and %+v", first[0], r)
		}
	}
	if len(first) < 4 || second.key == first[0].key {
		t.Errorf("%d tries; the next write has key %q, the first %q", len(first), second.key, first[0].key)
	}
}

func TestContextsIdempotencyKeyIsSent(t *testing.T) {
	t.Parallel()
	s, c := play(t, client.Config{}, say(200, `{"id":"g"}`))
	ctx := client.WithIdempotencyKey(t.Context(), "import 7, line 12")
	if _, err := c.CreateGallery(ctx, client.NewGallery{Name: "n"}); err != nil {
		t.Fatal(err)
	}
	if got := s.requests()[0].key; got != "import 7, line 12" {
		t.Errorf("key %q", got)
	}
}

func TestRefusalIsNotRetried(t *testing.T) {
	t.Parallel()
	f := func(status int, body string, kinds ...error) {
		t.Helper()
		s, c := play(t, client.Config{}, say(status, body, "X-Request-Id: r1"))
		_, err := c.Register(t.Context(), client.Photo{Image: []byte("x")})
		e, ok := errors.AsType[*client.Error](err)
		if !ok || e.Status != status || e.RequestID != "r1" || e.Operation != "POST /v1.1/subjects" {
			t.Fatalf("got %v", err)
		}
		all := []error{
			client.ErrInvalidRequest, client.ErrDuplicate, client.ErrTimeout, client.ErrNoFace, client.ErrPoorQuality, client.ErrMultipleFaces, client.ErrGalleryFull,
			client.ErrUnknownTag, client.ErrImage, client.ErrNotVerified, client.ErrNotFound, client.ErrForbidden, client.ErrBusy,
		}
		for _, kind := range all {
			if errors.Is(err, kind) != slices.Contains(kinds, kind) {
				t.Errorf("%v: is %v: %v", err, kind, errors.Is(err, kind))
			}
		}
		if n := len(s.requests()); n != 1 {
			t.Errorf("%v: %d tries", err, n)
		}
	}
	f(400, `{"message":"m","errorCode":1001,"errorType":"InvalidRequest","reason":"GalleryFull"}`, client.ErrInvalidRequest, client.ErrGalleryFull)
	f(400, `{"message":"m","errorCode":1002,"errorType":"Duplicate"}`, client.ErrDuplicate)
	f(400, `{"message":"m","errorCode":2001,"errorType":"NoFace"}`, client.ErrNoFace)
	f(400, `{"message":"m","errorCode":2002,"errorType":"PoorQuality"}`, client.ErrPoorQuality)
	f(400, `{"message":"m","errorCode":2003,"errorType":"MultipleFaces"}`, client.ErrMultipleFaces)
	f(403, `{"message":"Forbidden"}`, client.ErrForbidden)
	f(404, `{"message":"Not verified.","reason":"NotVerified","score":12}`, client.ErrNotVerified)
	f(404, `{"message":"Subject not found.","reason":"SubjectNotFound"}`, client.ErrNotFound)
	f(413, `<html>a proxy's</html>`)
	f(302, ``)
}

func TestRetryAfterIsObeyed(t *testing.T) {
	t.Parallel()
	s, c := play(t, client.Config{}, say(429, `{"message":"Too many requests."}`, "Retry-After: 1"), say(200, `{"status":"OK"}`))
	if err := c.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := s.requests()
	if waited := all[1].at.Sub(all[0].at); len(all) != 2 || waited < time.Second {
		t.Errorf("%d tries, waited %s", len(all), waited)
	}
	if all[0].signature == all[1].signature {
		t.Error("the second try is not signed anew")
	}
}

// Time makes no room soon, or none at all.
func TestLongWaitIsFinal(t *testing.T) {
	t.Parallel()
	const quota = `{"message":"m","reason":"Quota","quota":"writes"}`
	for want, step := range map[time.Duration]func(http.ResponseWriter){
		0:            say(429, quota),
		86400e9:      say(429, quota, "Retry-After: 86400"),
		2147483647e9: say(429, quota, "Retry-After: 9223372036854775807"),
	} {
		s, c := play(t, client.Config{}, step)
		err := c.Health(t.Context())
		if e, ok := errors.AsType[*client.Error](err); !ok || e.RetryAfter != want || !errors.Is(err, client.ErrBusy) || len(s.requests()) != 1 {
			t.Errorf("wait %s: %d tries, %v", want, len(s.requests()), err)
		}
	}
}

func TestTriesEnd(t *testing.T) {
	t.Parallel()
	s, c := play(t, client.Config{Tries: 3}, say(500, failed))
	err := c.Health(t.Context())
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Type != "ServerError" || e.Code != 5000 || len(s.requests()) != 3 {
		t.Errorf("%d tries, %v", len(s.requests()), err)
	}
}

func TestContextEndsAPause(t *testing.T) {
	t.Parallel()
	s, c := play(t, client.Config{}, say(500, failed, "Retry-After: 20"))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err := c.Health(ctx)
	if _, ok := errors.AsType[*client.Error](err); !ok || !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(begin), err)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d tries", n)
	}
}

// A caller that gives up says nothing about the node: the nodes are used in turn as before.
func TestCanceledCallLeavesNodeInUse(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	var calls [2]atomic.Int64
	var servers []*httptest.Server
	for i := range calls {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls[i].Add(1)
			if slow.Load() {
				<-r.Context().Done()
				return
			}
			_, _ = io.WriteString(w, `{"status":"OK"}`)
		}))
		t.Cleanup(s.Close)
		servers = append(servers, s)
	}
	c := testClient(t, client.Config{}, servers...)
	slow.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := c.Health(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	slow.Store(false)
	before := [2]int64{calls[0].Load(), calls[1].Load()}
	for range 4 {
		if err := c.Health(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range calls {
		if n := calls[i].Load() - before[i]; n != 2 {
			t.Errorf("node %d gets %d of 4 calls", i, n)
		}
	}
}

// Not found is success for a deletion whose first answer was lost.
func TestRepeatedDeletionSucceeds(t *testing.T) {
	t.Parallel()
	gone := say(404, `{"message":"Subject not found.","reason":"SubjectNotFound"}`)
	_, c := play(t, client.Config{}, hangUp, gone)
	if err := c.Unregister(t.Context(), "s"); err != nil {
		t.Error(err)
	}
	_, c = play(t, client.Config{}, gone)
	if err := c.Unregister(t.Context(), "s"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("without a doubt: got %v", err)
	}
	_, c = play(t, client.Config{}, hangUp, say(400, `{"message":"m","errorCode":1002,"errorType":"Duplicate"}`))
	if err := c.CreateTag(t.Context(), "t"); err != nil {
		t.Error(err)
	}
	// Another subject has the faces.
	_, c = play(t, client.Config{}, hangUp, say(404, `{"message":"It was merged: 5","reason":"SubjectMerged"}`))
	merged, ok := errors.AsType[*client.Error](c.Unregister(t.Context(), "s"))
	if !ok || !merged.Is(client.ErrMerged) || merged.Into != "5" {
		t.Errorf("got %v", merged)
	}
	// The gateway answers: something else than the subject is missing.
	_, c = play(t, client.Config{}, hangUp, say(403, `{"message":"Forbidden"}`))
	if err := c.Unregister(t.Context(), "s"); !errors.Is(err, client.ErrForbidden) {
		t.Errorf("got %v", err)
	}
}

func TestDeadNodeIsPassedOver(t *testing.T) {
	t.Parallel()
	_, live := served(t, say(200, `{"status":"OK"}`))
	dead := httptest.NewTLSServer(nil)
	dead.Close()
	c := testClient(t, client.Config{}, dead, live, dead)
	begin := time.Now()
	for range 20 {
		if err := c.Health(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// A pause after each of 20 dead nodes would take seconds.
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("20 requests took %s", took)
	}
}

func TestForeignCertificateIsNotRetried(t *testing.T) {
	t.Parallel()
	_, server := served(t, say(200, `{"status":"OK"}`))
	c, err := client.New(client.Config{BaseURLs: []string{server.URL}, AccessKey: "a", SecretKey: "s"})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := c.Health(t.Context()); err == nil || time.Since(begin) > time.Second {
		t.Errorf("after %s: %v", time.Since(begin), err)
	}
}

func TestHangingTryTimesOut(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, live := served(t, say(200, `{"status":"OK"}`))
	c := testClient(t, client.Config{BaseURLs: []string{"https://" + l.Addr().String()}, TryTimeout: 300 * time.Millisecond}, live)
	for range 2 { // one of the two starts at the silent node
		if err := c.Health(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestBadConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	f := func(cfg client.Config, want string) {
		t.Helper()
		if _, err := client.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	ok := []string{"https://n1:7420/"}
	f(client.Config{BaseURLs: ok}, "no access key")
	f(client.Config{AccessKey: "a", SecretKey: "s"}, "0, want 1 to 64")
	f(client.Config{AccessKey: "a", SecretKey: "s", BaseURLs: []string{"http://n1"}}, "not of the form")
	f(client.Config{AccessKey: "a", SecretKey: "s", BaseURLs: []string{"https://n1/path"}}, "not of the form")
	f(client.Config{AccessKey: "a", SecretKey: "s", BaseURLs: ok, PortalURLs: []string{"n1:7420"}}, "portal URLs")
	f(client.Config{AccessKey: "a", SecretKey: "s", BaseURLs: ok, CAFile: "nothing.pem"}, "nothing.pem")
	if _, err := client.FromDev("nothing.json"); err == nil || !strings.Contains(err.Error(), "nothing.json") {
		t.Errorf("got %v", err)
	}
}

func TestIDOfAnotherPathIsNotSent(t *testing.T) {
	t.Parallel()
	s, c := play(t, client.Config{}, say(200, ``))
	for _, id := range []string{"", ".", ".."} {
		if err := c.Unregister(t.Context(), id); err == nil || !strings.Contains(err.Error(), "dot segment") {
			t.Errorf("%q: got %v", id, err)
		}
		if err := c.DeleteTag(t.Context(), id); err == nil {
			t.Errorf("%q: no error", id)
		}
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestUnreadableAnswerIsAnError(t *testing.T) {
	t.Parallel()
	f := func(body string) {
		t.Helper()
		_, c := play(t, client.Config{}, say(201, body))
		got, err := c.Register(t.Context(), client.Photo{Image: []byte("x")})
		if _, refused := errors.AsType[*client.Error](err); err == nil || refused {
			t.Errorf("%s: got %+v, %v", body, got, err)
		}
	}
	f(`<html>`)
	f(`[]`)
	f(`{"id":7}`)
	f(`{"id":"s","attributes":{"faceScore":"much"}}`)
	f(`{"id":"s","attributes":{"faceArea":{"left":"1.5"}}}`)
	f(`{"id":"s","attributes":{"faceArea":{"left":{}}}}`)
}
