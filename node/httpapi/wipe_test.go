package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"testing"

	"github.com/valyala/fasthttp"

	"facet/engine"
)

// The versions of Go and fasthttp that this is built with have the fields that wipe
// looks for.
func TestBuffersAreFound(t *testing.T) {
	t.Parallel()
	if !wipeRecords(&tls.Conn{}) {
		t.Error("the buffers of a tls.Conn are not found")
	}
	found := make(chan bool, 1)
	s := fasthttp.Server{StreamRequestBody: true, Handler: func(rc *fasthttp.RequestCtx) {
		stream := rc.RequestBodyStream()
		_, err := io.Copy(io.Discard, stream)
		found <- err == nil && wipeStream(stream)
	}}
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeConn(far) }()
	if _, err := io.WriteString(near, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, bufio.NewReader(near)); err != nil {
		t.Fatal(err)
	}
	if !<-found {
		t.Error("the buffers of a request's stream are not found")
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// keeper is a Service that keeps the images that it gets.
type keeper struct {
	*standIn
	images chan []byte
}

func (k *keeper) Extract(_ context.Context, image []byte, _ int) ([]engine.Attributes, error) {
	if !bytes.HasPrefix(image, []byte("img ")) {
		panic("bug: the image was cleared before the answer")
	}
	k.images <- image
	return make([]engine.Attributes, 1), nil
}

func TestBodyIsClearedAfterAnswer(t *testing.T) {
	t.Parallel()
	k := &keeper{images: make(chan []byte, 1)}
	r := start(t, func(c *Config) {
		k.standIn = c.Service.(*standIn)
		c.Service = k
	})
	text := base64.StdEncoding.EncodeToString(append([]byte("img "), bytes.Repeat([]byte("a face "), 50_000)...))
	if a := r.send(signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: `{"faces":"` + text + `"}`}); a.status != 200 {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	if image := <-k.images; !bytes.Equal(image, make([]byte, len(image))) {
		t.Errorf("the image is still there: %.20q", image)
	}
}
