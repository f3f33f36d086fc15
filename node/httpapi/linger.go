package httpapi

import (
	"io"
	"net"
	"sync/atomic"
	"time"
)

// A refusal that is sent before the body was read would be lost: closing a TCP
// connection with unread bytes resets it, and the client, still sending, sees
// the reset and not the answer. So such a connection is closed for writing, read
// on for a while, and only then closed (as net/http does).

// lingerListener makes connections that can linger.
type lingerListener struct{ net.Listener }

// Accept waits for a connection.
func (l lingerListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &lingerConn{Conn: c}, nil
}

// lingerConn is a connection that reads on before it closes, once told to.
type lingerConn struct {
	net.Conn
	linger atomic.Bool
}

// Close closes the connection, after lingering if it was told to.
func (c *lingerConn) Close() error {
	if c.linger.Swap(false) {
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			if c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
				// The bytes and the error are of no interest: the client ended, or
				// had its time.
				_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
			}
		}
	}
	return c.Conn.Close()
}

// lingerOn tells the lingerConn below c, if there is one, to linger.
func lingerOn(c net.Conn) {
	for c != nil {
		switch layer := c.(type) {
		case *lingerConn:
			layer.linger.Store(true)
			return
		case interface{ NetConn() net.Conn }: // TLS
			c = layer.NetConn()
		default:
			return
		}
	}
}
