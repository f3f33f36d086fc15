package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"facet/internal/must"
	"facet/node/transport/memnet"
	"facet/router"
)

// tapped is a listener that notes the memory into which the connections of a server read.
type tapped struct {
	net.Listener

	mu sync.Mutex // guards buffers and reader
	// buffers are those of crypto/tls, by their first byte.
	buffers map[*byte][]byte
	reader  []byte // the buffer of fasthttp's reader
}

func (w *tapped) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	return &tappedConn{Conn: c, by: w}, err
}

type tappedConn struct {
	net.Conn
	by *tapped
}

func (c *tappedConn) Read(p []byte) (int, error) {
	c.by.mu.Lock()
	whole := p[:cap(p)]
	if first := unsafe.SliceData(whole); len(c.by.buffers[first]) < len(whole) {
		c.by.buffers[first] = whole
	}
	c.by.mu.Unlock()
	return c.Conn.Read(p)
}

// Bodies of several forms come on one connection. While the server waits for the next
// request, and after the last one, no buffer of the connection has a piece of them.
func TestConnectionForgetsBodies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := &tapped{buffers: map[*byte][]byte{}}
		r := startOn(t, memnet.New(1).Host("127.0.0.1"), nil, func(s *Server, ln net.Listener) net.Listener {
			w.Listener = ln
			handler := s.http.Handler
			s.http.Handler = func(rc *fasthttp.RequestCtx) {
				w.mu.Lock()
				w.reader = rc.Conn().(*clearingConn).buffer
				w.mu.Unlock()
				handler(rc)
			}
			return w
		})
		c := r.dial()
		from := bufio.NewReader(c)
		image := extraction("img alice " + strings.Repeat("her face ", 40_000))
		piece := image.body[1000:1012] // comes again and again
		f := func(what, raw string) {
			t.Helper()
			for len(raw) > 0 { // in records of odd sizes
				n := min(len(raw), 20_011)
				write(t, c, raw[:n])
				raw = raw[n:]
			}
			if a := read(t, from, image.method); a.status != 200 {
				t.Fatalf("%s: got %d %s", what, a.status, a.body)
			}
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, b := range w.buffers {
				if bytes.Contains(b, []byte(piece)) {
					t.Errorf("%s: a buffer of %d bytes of crypto/tls has a piece of the body", what, len(b))
				}
			}
			if bytes.Contains(w.reader, []byte(piece)) {
				t.Errorf("%s: the buffer of fasthttp's reader has a piece of the body", what)
			}
		}
		f("with its length", image.raw(t))
		image.chunks = pieces(5000)
		f("in chunks", image.raw(t))
		image.chunks = nil
		f("the last one", strings.Replace(image.raw(t), "\r\n", "\r\nConnection: close\r\n", 1))
	})
}

func TestClosingConnectionReadsNoMore(t *testing.T) {
	t.Parallel()
	client, server := net.Pipe()
	defer client.Close()
	certificate, _ := selfSigned(t)
	c := &clearingConn{Conn: tls.Server(&recordConn{Conn: server}, &tls.Config{Certificates: []tls.Certificate{certificate}})}
	shaken := make(chan error, 1)
	go func() { shaken <- tls.Client(client, &tls.Config{InsecureSkipVerify: true}).Handshake() }()
	must.Do(t, c.Handshake())
	if err := c.stopReading(); err != nil { // as Close does first
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil { // by fasthttp's goroutine
		t.Fatal(err)
	}
	began := time.Now()
	var b [1]byte
	if _, err := c.Conn.Read(b[:]); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Errorf("a read took %s: %v", time.Since(began), err)
	}
}

// keeper is a Service that keeps the images that it gets.
type keeper struct {
	*standIn
	images chan []byte
}

func (k *keeper) Extract(_ context.Context, image []byte, _ int) ([]router.Seen, error) {
	if !bytes.HasPrefix(image, []byte("img ")) {
		panic("bug: the image was cleared before the answer")
	}
	k.images <- image
	return make([]router.Seen, 1), nil
}

func TestBodyIsClearedAfterAnswer(t *testing.T) {
	t.Parallel()
	k := &keeper{images: make(chan []byte, 1)}
	r := start(t, func(c *Config) {
		k.standIn = c.Service.(*standIn)
		c.Service = k
	})
	text := base64.StdEncoding.EncodeToString(append([]byte("img "), bytes.Repeat([]byte("a face?> "), 50_000)...))
	for what, sent := range map[string]string{"plain": text, "escaped": strings.ReplaceAll(text, "/", `\/`)} {
		q := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: `{"faces":"` + sent + `"}`}
		if a := r.send(q); a.status != 200 {
			t.Fatalf("%s: got %d %s", what, a.status, a.body)
		}
		if image := <-k.images; !bytes.Equal(image, make([]byte, len(image))) {
			t.Errorf("%s: the image is still there: %.20q", what, image)
		}
	}
}
