package e2e

import (
	"bytes"
	"compress/zlib"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestFacelessImageIsRefused(t *testing.T) {
	k := shared(t).client(t, 10)
	whole := photo(t, obama)
	f := func(name string, image []byte, errorType string, errorCode int) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			face := base64.StdEncoding.EncodeToString(image)
			k.post(t, 0, "/v1.1/subjects", map[string]any{"face": face}).refused(t, errorType, errorCode)
			k.post(t, 1, "/v1.1/face/search", map[string]any{"probe": face}).refused(t, errorType, errorCode)
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
	f("empty", nil, "InvalidRequest", 1001)
	f("truncated", whole[:len(whole)/3], "InvalidRequest", 1001)
	f("no image", []byte(strings.Repeat("this is not an image ", 100)), "InvalidRequest", 1001)
	f("huge", hugePNG(t), "InvalidRequest", 1001)
	f("without a face", photo(t, rocket), "NoFace", 2001)
	f("several faces", photo(t, threePeople), "MultipleFaces", 2003)

	k.post(t, 2, "/v1.1/subjects", map[string]any{"face": "%%%"}).refused(t, "InvalidRequest", 1001)
	k.post(t, 2, "/v1.1/subjects", map[string]any{}).refused(t, "InvalidRequest", 1001)
	if got := k.active(t, 0); len(got) != 0 {
		t.Errorf("refused images are registered: %v", got)
	}
	k.register(t, 0, obama) // the nodes still work
}

func TestExtractFindsEveryFaceOfAGroup(t *testing.T) {
	k := shared(t).keyless(t)
	var f struct {
		Faces []struct{ Attributes map[string]any }
	}
	k.post(t, 1, "/v1.1/face/extract", map[string]any{"faces": encoded(t, threePeople)}).want(t, 200, &f)
	if len(f.Faces) != 3 {
		t.Errorf("got %d faces, want 3", len(f.Faces))
	}
	k.post(t, 1, "/v1.1/face/extract", map[string]any{"faces": encoded(t, threePeople), "limit": 1}).want(t, 200, &f)
	if len(f.Faces) != 1 {
		t.Errorf("limit 1: got %d faces", len(f.Faces))
	}
}

// hugePNG returns a file of about 100 KB that would decode to 900 million pixels.
func hugePNG(t *testing.T) []byte {
	t.Helper()
	const side = 30_000
	var b bytes.Buffer
	b.WriteString("\x89PNG\r\n\x1a\n")
	chunk := func(kind string, data []byte) {
		binary.Write(&b, binary.BigEndian, uint32(len(data)))
		sum := crc32.NewIEEE()
		for _, w := range []io.Writer{&b, sum} {
			io.WriteString(w, kind)
			w.Write(data)
		}
		binary.Write(&b, binary.BigEndian, sum.Sum32())
	}
	header := binary.BigEndian.AppendUint32(nil, side)
	header = binary.BigEndian.AppendUint32(header, side)
	chunk("IHDR", append(header, 1, 0, 0, 0, 0)) // 1 bit, grey
	var pixels bytes.Buffer
	z := zlib.NewWriter(&pixels)
	row := make([]byte, 1+side/8)
	for range side {
		z.Write(row)
	}
	z.Close()
	chunk("IDAT", pixels.Bytes())
	chunk("IEND", nil)
	if b.Len() > 200_000 {
		t.Fatalf("the huge image has %d bytes", b.Len())
	}
	return b.Bytes()
}

func TestBodyOver20MiBIsRefusedUnsent(t *testing.T) {
	k := shared(t).keyless(t)
	for node, url := range k.info.BaseURLs {
		transport := k.http.Transport.(*http.Transport)
		conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), transport.TLSClientConfig.Clone())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		begin := time.Now()
		conn.SetDeadline(begin.Add(10 * time.Second))
		fmt.Fprintf(conn, "POST /v1.1/subjects HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", host, 20<<20+1)
		answer := make([]byte, 1000)
		n, err := conn.Read(answer)
		if !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 413 ") {
			t.Errorf("node %d: got %q, %v after %s, want 413", node, answer[:n], err, time.Since(begin))
		}
	}
}
