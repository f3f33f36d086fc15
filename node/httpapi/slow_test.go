package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/must"
	"facet/router"
)

// drip sends raw in small pieces until the server answers or ends.
func drip(c net.Conn, raw string, pause time.Duration) {
	for len(raw) > 0 {
		n := min(7, len(raw))
		if _, err := io.WriteString(c, raw[:n]); err != nil {
			return
		}
		raw = raw[n:]
		time.Sleep(pause)
	}
}

// The time to read bounds the whole request, not the pause between two bytes.
func TestDrippedRequestsEnd(t *testing.T) {
	body := strings.Repeat("A", 100<<10)
	q := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: body}.raw(t)
	head := q[:len(q)-len(body)]
	for what, slow := range map[string]struct{ first, rest string }{
		"headers": {"", head},
		"body":    {head + body[:16<<10], body},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const most = 300 * time.Millisecond
				r := start(t, func(c *Config) { c.Limits.ReadTimeout = most })
				c := r.dial()
				write(t, c, slow.first)
				begun := time.Now()
				go drip(c, slow.rest, 50*time.Millisecond) // ends when the connection does
				a := read(t, bufio.NewReader(c), "POST")
				if a.status != 408 || !a.closed {
					t.Errorf("got %d %s, closed %v; want 408, closed", a.status, a.body, a.closed)
				}
				if took := time.Since(begun); took > 2*most {
					t.Errorf("held the connection for %v", took)
				}
			})
		})
	}
}

// A client that never finishes its TLS handshakes delays no other, even at its own address when it uses up
// the connections of that address: the oldest ones make room.
func TestSilentConnectionsDelayNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const most, opened = 5, 8
		r := start(t, func(c *Config) { c.Limits.ConnectionsPerIP = most })
		began := time.Now()
		ended := make(chan time.Duration, opened)
		for range opened {
			c, err := r.network.Dial(t.Context(), r.addr)
			must.Do(t, err)
			defer c.Close()
			go func() { // ends with the connection
				_, _ = io.Copy(io.Discard, c)
				ended <- time.Since(began)
			}()
		}
		synctest.Wait()
		if len(ended) != opened-most {
			t.Errorf("%d of %d silent connections were closed, want %d", len(ended), opened, opened-most)
		}
		if a := r.send(signed{as: "biometric", method: "GET", target: "/v1.1/health"}); a.status != 200 || time.Since(began) != 0 {
			t.Errorf("a client at the same address: %d %s after %v", a.status, a.body, time.Since(began))
		}
		for i := range opened {
			if took := <-ended; i > opened-most && took != handshakeTime { // one more made room for the client
				t.Errorf("a silent connection was open for %v, want %v", took, handshakeTime)
			}
		}
	})
}

// This test is not parallel: it measures the heap.
func TestDeclaredBodiesPinNoMemory(t *testing.T) {
	alone(t, func(t *testing.T) {
		r := start(t, nil)
		q := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: strings.Repeat("A", 20<<20)}.raw(t)
		q = strings.Clone(q[:len(q)-20<<20+16<<10])
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		const clients = 50
		for range clients {
			c := r.dial()
			write(t, c, q)
		}
		if synctest.Wait(); r.server.bodies.Used() < clients*bodyFirstBytes {
			t.Fatalf("%d bytes counted, want %d", r.server.bodies.Used(), clients*bodyFirstBytes)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > clients*(1<<20) {
			t.Errorf("%d declared bodies of 20 MiB hold %d MiB", clients, grown>>20)
		}
	})
}

func TestBodiesInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) { c.Limits.BodiesBytes = 1 << 20 })
	q := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: strings.Repeat(" ", 2<<20)}
	if a := r.send(q); a.status != 429 || a.header.Get("Retry-After") != "1" || a.body != `{"message":"Too many requests."}` {
		t.Errorf("got %d %v %s", a.status, a.header, a.body)
	}
	if used := r.server.bodies.Used(); used != 0 {
		t.Errorf("%d bytes still counted", used)
	}
	q.as = "stranger" // the body of a stranger is hashed as it comes
	if a := r.send(q); a.status != 403 {
		t.Errorf("unknown key: %d %s", a.status, a.body)
	}
	q.as, q.body = "biometric", `{"faces":"aW1nIGFsaWNl"}`
	if a := r.send(q); a.status != 200 {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
}

// inFlight starts a request that the service answers only when released. It returns
// the channel for the answer; a cut connection closes the channel.
func (r *running) inFlight() <-chan received {
	answers := make(chan received, 1)
	raw := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: `{"faces":"c2xvdw=="}`}.raw(r.t)
	c := r.dial()
	go func() {
		defer close(answers)
		if _, err := io.WriteString(c, raw); err != nil {
			return
		}
		if response, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
			answers <- received{status: response.StatusCode}
			_ = response.Body.Close()
		}
	}()
	<-r.service.entered
	return answers
}

func TestCloseLetsRequestsFinish(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, nil)
		answers := r.inFlight()
		closed := make(chan error, 1)
		go func() { closed <- r.server.Close(context.Background()) }()
		time.Sleep(time.Second)
		if _, err := r.network.Dial(t.Context(), r.addr); err == nil {
			t.Error("a closing server accepts connections")
		}
		select {
		case err := <-closed:
			t.Fatalf("close ended with a request in flight: %v", err)
		default:
		}
		close(r.service.release)
		if a, ok := <-answers; !ok || a.status != 200 {
			t.Errorf("request in flight: %d, answered %v", a.status, ok)
		}
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

func TestCloseCutsLateRequests(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	answers := r.inFlight()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := r.server.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: got %v, want the deadline", err)
	}
	if a, ok := <-answers; ok {
		t.Errorf("the request was answered: %d", a.status)
	}
	close(r.service.release)
}

func TestCloseBeforeServeEndsServe(t *testing.T) {
	t.Parallel()
	server, err := New(Config{Service: newStandIn()})
	must.Do(t, err)
	must.Do(t, server.Close(context.Background()))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	if err := server.Serve(ln); err != nil {
		t.Errorf("serve: %v", err)
	}
}

func TestDeadlineIsTimeoutAndCancelIsFault(t *testing.T) {
	t.Parallel()
	f := func(err error, status int, kind string, wantFault bool) {
		t.Helper()
		got, fault := failureOf(err, v1, "id")
		if got.status != status || got.body.ErrorType != kind || fault != wantFault {
			t.Errorf("%v: %d %s, fault %v", err, got.status, got.body.ErrorType, fault)
		}
	}
	f(context.DeadlineExceeded, 500, "Timeout", false)
	f(context.Canceled, 500, "ServerError", true)
	f(&router.Error{Kind: 99, Message: "secret"}, 500, "ServerError", true)
}
