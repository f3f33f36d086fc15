package httpapi

import (
	"errors"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Connections are bounded here and not by fasthttp, which answers the ones too
// many in its accept loop: over TLS a silent client would stop that loop in its
// handshake. Here they are just closed.
//
// A refusal that is sent before the body was read would be lost: closing a TCP
// connection with unread bytes resets it, and the client, still sending, sees
// the reset and not the answer. So such a connection is closed for writing, read
// on for a while, and only then closed (as net/http does).

// boundedListener accepts a bounded number of connections, in all and from one
// address. They can linger.
type boundedListener struct {
	net.Listener
	max, maxPerIP int

	mu   sync.Mutex // guards what follows; never held across I/O
	open map[*boundedConn]struct{}
	byIP map[netip.Addr]int
}

// newBoundedListener bounds the connections of ln by l.
func newBoundedListener(ln net.Listener, l Limits) *boundedListener {
	return &boundedListener{
		Listener: ln, max: l.Connections, maxPerIP: l.ConnectionsPerIP,
		open: make(map[*boundedConn]struct{}), byIP: make(map[netip.Addr]int),
	}
}

// Accept waits for a connection within the bounds. It outlasts errors that pass,
// as the lack of a file descriptor.
func (l *boundedListener) Accept() (net.Conn, error) {
	pause := acceptPauseMin
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if !passes(err) {
				return nil, err
			}
			time.Sleep(pause)
			pause = min(2*pause, acceptPauseMax)
			continue
		}
		pause = acceptPauseMin
		bounded := &boundedConn{Conn: c, listener: l, ip: address(c)}
		if l.add(bounded) {
			return bounded, nil
		}
		_ = c.Close() // there is nothing to be done about an error
	}
}

// passes tells whether an error of Accept may be gone at the next try.
func passes(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.ECONNRESET,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// address is what the connections of one client have in common: the IPv4
// address, or the 64 bits that an IPv6 site is given. It is the zero Addr where
// there are no addresses.
func address(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is6() {
		prefix, _ := ip.Prefix(64) // 64 is within an IPv6 address
		ip = prefix.Addr()
	}
	return ip
}

// add counts c, if there may be one more.
func (l *boundedListener) add(c *boundedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.max || c.ip.IsValid() && l.byIP[c.ip] >= l.maxPerIP {
		return false
	}
	l.open[c] = struct{}{}
	l.byIP[c.ip]++
	return true
}

// remove takes c back.
func (l *boundedListener) remove(c *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	if l.byIP[c.ip]--; l.byIP[c.ip] == 0 {
		delete(l.byIP, c.ip)
	}
}

// cut ends every connection at once, whatever happens on it.
func (l *boundedListener) cut() {
	l.mu.Lock()
	open := slices.Collect(maps.Keys(l.open))
	l.mu.Unlock()
	for _, c := range open {
		_ = c.Conn.Close() // its reader and its writer see it
	}
}

// boundedConn is a counted connection that reads on before it closes, once told
// to.
type boundedConn struct {
	net.Conn
	listener *boundedListener
	ip       netip.Addr
	linger   atomic.Bool
	once     sync.Once
	err      error
}

// Close closes the connection, after lingering if it was told to.
func (c *boundedConn) Close() error {
	c.once.Do(func() {
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.linger.Load() && half.CloseWrite() == nil {
			if c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
				// Bytes and error are of no interest: the client ended, or had its time.
				_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
			}
		}
		c.err = c.Conn.Close()
		c.listener.remove(c)
	})
	return c.err
}

// lingerOn tells the boundedConn below c, if there is one, to linger.
func lingerOn(c net.Conn) {
	for c != nil {
		switch layer := c.(type) {
		case *boundedConn:
			layer.linger.Store(true)
			return
		case interface{ NetConn() net.Conn }: // TLS
			c = layer.NetConn()
		default:
			return
		}
	}
}
