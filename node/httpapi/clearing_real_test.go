package httpapi

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"facet/internal/id"
	"facet/node/transport"
)

// The buffer of fasthttp's reader is zero after the last answer, whether the client resets
// the connection before it, or sends its body with a request that is refused before the body.
func TestReaderForgetsLastBody(t *testing.T) {
	t.Parallel()
	image := extraction("img alice " + strings.Repeat("her face ", 500))
	refused := strings.Replace(image.raw(t), "\r\n", "\r\nExpect: 100-continue\r\n", 1)
	for what, f := range map[string]func(full *atomic.Bool, c *tls.Conn){
		"reset": func(_ *atomic.Bool, c *tls.Conn) {
			_, _ = io.WriteString(c, image.raw(t))
		},
		"refused": func(full *atomic.Bool, c *tls.Conn) {
			full.Store(true)
			_, _ = io.WriteString(c, refused)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var full atomic.Bool
			var client atomic.Pointer[tls.Conn]
			ours := func(c net.Conn) bool {
				return client.Load() != nil && c.RemoteAddr().String() == client.Load().LocalAddr().String()
			}
			buffers := make(chan []byte, 1)
			ended := make(chan struct{}, 4)
			r := startOn(t, transport.OS{}, func(c *Config) { c.Crowded = func(id.Tenant) bool { return full.Load() } },
				func(s *Server, ln net.Listener) net.Listener {
					note := func(rc *fasthttp.RequestCtx) {
						if c := rc.Conn().(*clearingConn); ours(c) {
							if !bytes.Contains(c.buffer, []byte("\"faces\"")) {
								t.Error("the body is not in the reader's buffer")
							}
							buffers <- c.buffer
						}
					}
					handler, expect, state := s.http.Handler, s.http.ExpectHandler, s.http.ConnState
					s.http.Handler = func(rc *fasthttp.RequestCtx) {
						note(rc)
						handler(rc)
						if ours(rc.Conn()) {
							_ = client.Load().NetConn().(*net.TCPConn).SetLinger(0)
							_ = client.Load().NetConn().Close()
							time.Sleep(100 * time.Millisecond)
						}
					}
					s.http.ExpectHandler = func(rc *fasthttp.RequestCtx) int {
						note(rc)
						return expect(rc)
					}
					s.http.ConnState = func(c net.Conn, now fasthttp.ConnState) {
						state(c, now)
						if now == fasthttp.StateClosed && ours(c) {
							ended <- struct{}{}
						}
					}
					return ln
				})
			if a := r.send(image); a.status != 200 { // the node knows its key
				t.Fatalf("got %d %s", a.status, a.body)
			}
			c := r.dial()
			client.Store(c)
			f(&full, c)
			buffer := <-buffers
			if what == "refused" {
				_, _ = io.ReadAll(c)
				_ = c.Close()
			}
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatal("the connection does not end")
			}
			if !bytes.Equal(buffer, make([]byte, headerBytesMax)) {
				t.Errorf("the reader keeps %.60q", bytes.Trim(buffer, "\x00"))
			}
		})
	}
}
