package httpapi

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"net"
	"reflect"

	"github.com/valyala/fasthttp"
)

// Images do not stay in memory: the body of a request is cleared when the request was
// answered, and so are the buffers through which it came. crypto/tls and fasthttp keep
// theirs, with what was read last, as long as the connection is open, and have no
// method to clear them. So wipe looks for their fields by name and type. If a new
// version has other ones, TestBuffersAreFound fails, and nothing is cleared.
//
//	tls.Conn.rawInput   records, decrypted in place
//	requestStream.reader, .prefetchedBytes   text of the body

// wipe clears the body of a request and what the connection's buffers have of it.
func (c *call) wipe(rc *fasthttp.RequestCtx) {
	clear(c.body.bytes[:cap(c.body.bytes)])
	if c.length == 0 {
		return
	}
	wipeStream(rc.RequestBodyStream())
	wipeRecords(rc.Conn())
}

// wipeStream clears the buffers of fasthttp's stream of a body, unless they have bytes
// that were not read. It reports whether it found them.
func wipeStream(stream any) bool {
	reader, ok := fieldOf[*bufio.Reader](stream, "reader")
	if !ok || *reader == nil {
		return false
	}
	prefetched, ok := fieldOf[bytes.Reader](stream, "prefetchedBytes")
	if !ok {
		return false
	}
	text, ok := fieldOf[[]byte](prefetched, "s")
	if !ok {
		return false
	}
	buffer, ok := fieldOf[[]byte](*reader, "buf")
	if !ok {
		return false
	}
	if prefetched.Len() == 0 {
		clear(*text)
	}
	if (*reader).Buffered() == 0 {
		clear(*buffer)
	}
	return true
}

// wipeRecords clears the records that a TLS connection has decrypted, unless it has
// bytes that were not read. It reports whether it found them. Only the goroutine that
// reads from the connection may call it.
func wipeRecords(c net.Conn) bool {
	conn, ok := c.(*tls.Conn)
	if !ok {
		return false
	}
	records, ok := fieldOf[bytes.Buffer](conn, "rawInput")
	if !ok {
		return false
	}
	unread, ok := fieldOf[bytes.Reader](conn, "input")
	if !ok {
		return false
	}
	if records.Len() == 0 && unread.Len() == 0 {
		records.Reset()
		clear(records.AvailableBuffer()[:records.Cap()])
	}
	return true
}

// fieldOf returns the field of the struct that v points to, if it has one of this name
// and type.
func fieldOf[T any](v any, name string) (*T, bool) {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() || p.Elem().Kind() != reflect.Struct {
		return nil, false
	}
	f := p.Elem().FieldByName(name)
	if !f.IsValid() || f.Type() != reflect.TypeFor[T]() {
		return nil, false
	}
	return (*T)(f.Addr().UnsafePointer()), true
}
