package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// An image must not stay in memory. What the handlers own they clear after the answer.
// Two layers below them keep what they read last for as long as a connection is open:
// crypto/tls the last record, decrypted in place, and fasthttp's reader the last piece.
// Both pass this memory to Read of the layer below when they want more. Read may write to
// all of it (io.Reader), so the connections here fill it with zeros first. While a
// connection waits for its next request, both buffers are zero.
//
//	fasthttp's reader  →  clearingConn  →  tls.Conn  →  recordConn  →  listener.Conn

// clearingListener accepts TLS connections as *clearingConn.
type clearingListener struct {
	net.Listener
	tls *tls.Config
}

// Accept waits for a connection.
func (l clearingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &clearingConn{Conn: tls.Server(&recordConn{Conn: c}, l.tls)}, nil
}

// clearingConn clears the buffer of fasthttp's reader before it is filled.
type clearingConn struct {
	*tls.Conn
	buffer []byte // of fasthttp's reader, while it is this connection's
	line   lineEnd

	mu      sync.Mutex // guards closing
	closing bool
}

// Handshake does the TLS handshake, in handshakeTime at most. fasthttp calls it first.
func (c *clearingConn) Handshake() error {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	return c.HandshakeContext(ctx)
}

// Read reads from the connection. It leaves larger memory as it is: that is the handler's.
func (c *clearingConn) Read(p []byte) (int, error) {
	if len(p) > headerBytesMax {
		return c.Conn.Read(p)
	}
	clear(p)
	if c.buffer == nil { // the first read is for the whole buffer
		c.buffer = p
	}
	n, err := c.Conn.Read(p)
	c.line.scan(p[:n])
	return n, err
}

// Write writes to the connection. After an error no request follows.
func (c *clearingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		c.forget()
	}
	return n, err
}

// SetReadDeadline sets the time at which a read ends. It does nothing once Close was called:
// its last read must not wait.
func (c *clearingConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// stopReading ends all reads, now and later.
func (c *clearingConn) stopReading() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	return c.Conn.SetReadDeadline(time.Unix(1, 0))
}

// forget clears the buffer of fasthttp's reader when no request will follow on this
// connection: fasthttp then keeps the reader for another one.
func (c *clearingConn) forget() {
	clear(c.buffer)
	c.buffer = nil
}

// Close closes the connection. A last read, which waits for nothing, makes crypto/tls pass
// its buffer down once more.
func (c *clearingConn) Close() error {
	if c.stopReading() == nil {
		for err := error(nil); err == nil; {
			var unread [512]byte
			_, err = c.Conn.Read(unread[:])
			clear(unread[:])
		}
	}
	return c.Conn.Close()
}

// forget clears what the layers below keep of the request, if it is the connection's last
// one. A connection that goes on clears it by its next read.
func forget(rc *fasthttp.RequestCtx) {
	if c, ok := rc.Conn().(*clearingConn); ok && (rc.Response.ConnectionClose() || rc.Request.Header.ConnectionClose()) {
		c.forget()
	}
}

// disown keeps later errors from clearing the buffer: fasthttp may have given its reader to
// another connection.
func disown(rc *fasthttp.RequestCtx) {
	if c, ok := rc.Conn().(*clearingConn); ok {
		c.buffer = nil
	}
}

const (
	recordHead     = 5 // bytes before each TLS record (RFC 8446, §5.1): a type, a version, a length
	recordLengthAt = 3
)

// recordConn clears the buffer of crypto/tls before it is filled. It reads one record at
// a time, the head apart, so that crypto/tls never moves to larger memory while the old
// memory has decrypted bytes.
type recordConn struct {
	net.Conn
	head [recordHead]byte
	read int // bytes of head that were read
	left int // bytes left of the record after head
}

// Read reads from the connection.
func (c *recordConn) Read(p []byte) (int, error) {
	clear(p)
	if c.left == 0 && c.read == recordHead {
		c.read = 0
	}
	if c.read == recordHead {
		n, err := c.Conn.Read(p[:min(len(p), c.left)])
		c.left -= n
		return n, err
	}
	n, err := c.Conn.Read(p[:min(len(p), recordHead-c.read)])
	c.read += copy(c.head[c.read:], p[:n])
	if c.read == recordHead {
		c.left = int(c.head[recordLengthAt])<<8 | int(c.head[recordLengthAt+1])
	}
	return n, err
}

// NetConn returns the connection below.
func (c *recordConn) NetConn() net.Conn { return c.Conn }
