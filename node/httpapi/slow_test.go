package httpapi

import (
	"bufio"
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
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

// The time to read is a total, not one between two bytes.
func TestDrippedRequestsEnd(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) { c.Limits.ReadTimeout = 300 * time.Millisecond })
	body := strings.Repeat("A", 100<<10)
	q := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: body}.raw(t)
	head := q[:len(q)-len(body)]
	for what, slow := range map[string]struct{ first, rest string }{
		"headers": {"", head},
		"body":    {head + body[:16<<10], body},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := r.dial()
			if _, err := io.WriteString(c, slow.first); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			go drip(c, slow.rest, 50*time.Millisecond) // ends when the connection does
			a := read(t, bufio.NewReader(c), "POST")
			if a.status != 408 || !a.closed {
				t.Errorf("got %d %s, closed %v; want 408, closed", a.status, a.body, a.closed)
			}
			if took := time.Since(begun); took > 3*time.Second {
				t.Errorf("held the connection for %v", took)
			}
		})
	}
}

// A client that never finishes its TLS handshake holds up nobody else, even when
// it uses up the connections of its address.
func TestSilentConnectionsHoldUpNobody(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) {
		c.Limits.ReadTimeout = 500 * time.Millisecond
		c.Limits.ConnectionsPerIP = 5
	})
	var silent []net.Conn
	for range 8 {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	for _, c := range silent[5:] { // the ones too many are closed at once
		if err := c.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || isTimeout(err) {
			t.Errorf("a connection too many: read %d, %v", n, err)
		}
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, err = c.Read(make([]byte, 1))
		_ = c.Close()
		if isTimeout(err) {
			break // it was accepted: the silent ones have ended
		}
		if time.Now().After(deadline) {
			t.Fatal("silent connections are never closed")
		}
	}
	if a := r.send(signed{as: "biometric", method: "GET", target: "/v1.1/health"}); a.status != 200 {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
}

// isTimeout tells whether err is a deadline of a connection.
func isTimeout(err error) bool {
	n, ok := err.(net.Error)
	return ok && n.Timeout()
}

func TestDeclaredBodiesPinNoMemory(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const clients = 50
	for range clients {
		q := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: strings.Repeat("A", 20<<20)}.raw(t)
		c := r.dial()
		if _, err := io.WriteString(c, q[:len(q)-20<<20+16<<10]); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(10 * time.Second)
	for r.server.bodies.used.Load() < clients*bodyFirstBytes {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes counted, want %d", r.server.bodies.used.Load(), clients*bodyFirstBytes)
		}
		time.Sleep(10 * time.Millisecond)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > clients*(1<<20) {
		t.Errorf("%d declared bodies of 20 MiB hold %d MiB", clients, grown>>20)
	}
}

func TestBodiesInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) { c.Limits.BodiesBytes = 1 << 20 })
	q := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: strings.Repeat(" ", 2<<20)}
	if a := r.send(q); a.status != 429 || a.header.Get("Retry-After") != "1" || a.body != `{"message":"Too many requests."}` {
		t.Errorf("got %d %v %s", a.status, a.header, a.body)
	}
	if used := r.server.bodies.used.Load(); used != 0 {
		t.Errorf("%d bytes still counted", used)
	}
	q.body = `{"faces":"aW1nIGFsaWNl"}`
	if a := r.send(q); a.status != 200 {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
}

func TestCloseLetsRequestsInFlightFinish(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	answers := make(chan received, 1)
	raw := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: `{"faces":"c2xvdw=="}`}.raw(t)
	c := r.dial()
	go func() {
		_, _ = io.WriteString(c, raw)
		answers <- read(t, bufio.NewReader(c), "POST")
	}()
	<-r.service.entered
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := r.server.Close(short); err == nil {
		t.Error("close ended while a request was in flight")
	}
	if c, err := net.Dial("tcp", r.addr); err == nil {
		_ = c.Close()
		t.Error("a closing server accepts connections")
	}
	close(r.service.release)
	if a := <-answers; a.status != 200 {
		t.Errorf("request in flight: %d %s", a.status, a.body)
	}
}

func TestSlowServiceIsATimeoutNotAHang(t *testing.T) {
	t.Parallel()
	if _, deadline := failureOf(context.DeadlineExceeded, v11, ""); deadline {
		t.Error("a deadline is logged as a fault")
	}
	r := start(t, nil)
	f := func(err error, status int, kind string) {
		t.Helper()
		got, _ := failureOf(err, v1, "id")
		if got.status != status || got.body.ErrorType != kind {
			t.Errorf("%v: %d %s, want %d %s", err, got.status, got.body.ErrorType, status, kind)
		}
	}
	f(context.DeadlineExceeded, 500, "Timeout")
	f(context.Canceled, 500, "ServerError")
	_ = r
}
