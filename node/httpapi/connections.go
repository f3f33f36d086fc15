package httpapi

import (
	"container/list"
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

// Connections are bounded here and not by fasthttp. fasthttp refuses surplus
// connections in its accept loop, and over TLS a silent client would stop that loop
// in its handshake. Here surplus connections are just closed. An address that has
// its share gets no more connections. When all connections are taken, the address
// with the most connections loses the one that has been without a request for the
// longest. So a client that holds unused connections does not keep out a client
// with a request.
//
// A refusal that is sent before the body was read could be lost: closing a TCP
// connection with unread bytes resets it, and the client, still sending, sees the
// reset and not the answer. So the server closes such a connection for writing,
// reads on for a while, and only then closes it (as net/http does).

// boundedListener accepts a bounded number of connections, in all and from one
// address. Its connections can linger.
type boundedListener struct {
	net.Listener
	max, maxPerIP int

	mu   sync.Mutex // guards open, byIP and idle; never held across I/O
	open map[*boundedConn]struct{}
	byIP map[netip.Addr]int
	idle list.List // of *boundedConn without a request, the longest idle first
}

// newBoundedListener returns a listener that bounds the connections of ln by l.
func newBoundedListener(ln net.Listener, l Limits) *boundedListener {
	return &boundedListener{
		Listener: ln, max: l.Connections, maxPerIP: l.ConnectionsPerIP,
		open: make(map[*boundedConn]struct{}), byIP: make(map[netip.Addr]int),
	}
}

// Accept waits for a connection within the bounds. It retries after errors that
// pass, such as a lack of file descriptors.
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
		victim, ok := l.add(bounded)
		if victim != nil {
			_ = victim.Conn.Close() // its reader sees the end
		}
		if ok {
			return bounded, nil
		}
		_ = c.Close() // nothing can be done about an error
	}
}

// passes reports whether an error of Accept may be gone at the next attempt.
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

// address returns the address under which the connections of one client are counted:
// the IPv4 address, or the 64 bits that an IPv6 site is assigned. It returns the zero
// Addr where there are no addresses.
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

// add counts c if the bounds allow one more connection. It returns the connection
// that has to make room for c, if any.
func (l *boundedListener) add(c *boundedConn) (victim *boundedConn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.ip.IsValid() && l.byIP[c.ip] >= l.maxPerIP {
		return nil, false
	}
	if len(l.open) >= l.max {
		if victim = l.longestIdle(); victim == nil {
			return nil, false
		}
		l.forget(victim)
	}
	l.open[c] = struct{}{}
	l.byIP[c.ip]++
	c.waits = l.idle.PushBack(c)
	return victim, true
}

// longestIdle returns the connection that has to make room, or nil when all have a
// request. The caller holds mu.
func (l *boundedListener) longestIdle() *boundedConn {
	most := netip.Addr{}
	for ip, n := range l.byIP {
		if n > l.byIP[most] {
			most = ip
		}
	}
	for e := l.idle.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*boundedConn); c.ip == most {
			return c
		}
	}
	if e := l.idle.Front(); e != nil {
		return e.Value.(*boundedConn)
	}
	return nil
}

// remove stops counting c.
func (l *boundedListener) remove(c *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(c)
}

// forget does the work of remove and may be called again. The caller holds mu.
func (l *boundedListener) forget(c *boundedConn) {
	if _, here := l.open[c]; !here {
		return
	}
	delete(l.open, c)
	l.busy(c)
	if l.byIP[c.ip]--; l.byIP[c.ip] == 0 {
		delete(l.byIP, c.ip)
	}
}

// busy records that c has a request. The caller holds mu.
func (l *boundedListener) busy(c *boundedConn) {
	if c.waits != nil {
		l.idle.Remove(c.waits)
		c.waits = nil
	}
}

// cut closes every connection at once, whatever happens on it.
func (l *boundedListener) cut() {
	l.mu.Lock()
	open := slices.Collect(maps.Keys(l.open))
	l.mu.Unlock()
	for _, c := range open {
		_ = c.Conn.Close() // its reader and its writer see the end
	}
}

// boundedConn is a counted connection. With linger set, Close reads on for a while
// first.
type boundedConn struct {
	net.Conn
	listener *boundedListener
	ip       netip.Addr
	waits    *list.Element // of listener.idle, nil with a request; guarded by its mu
	linger   atomic.Bool
	once     sync.Once
	err      error
}

// asks records that the headers of a request have come; rests records that its
// answer was sent.
func (c *boundedConn) asks() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.listener.busy(c)
}

func (c *boundedConn) rests() {
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, here := l.open[c]; here && c.waits == nil {
		c.waits = l.idle.PushBack(c)
	}
}

// Close closes the connection, after lingering if linger is set.
func (c *boundedConn) Close() error {
	c.once.Do(func() {
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.linger.Load() && half.CloseWrite() == nil {
			if c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
				c.readOn()
			}
		}
		c.err = c.Conn.Close()
		c.listener.remove(c)
	})
	return c.err
}

// readOn throws away incoming bytes, as fast as a fair client may send them and no
// faster. Bytes of a refused request must not keep the node busy.
func (c *boundedConn) readOn() {
	for range lingerBytes / lingerPiece {
		if _, err := io.CopyN(io.Discard, c.Conn, lingerPiece); err != nil {
			return // the client closed the connection, or its time is over
		}
		time.Sleep(lingerPause)
	}
}

// lingerOn makes the boundedConn below c, if there is one, linger.
func lingerOn(c net.Conn) {
	if b := boundedBelow(c); b != nil {
		b.linger.Store(true)
	}
}

// boundedBelow returns the boundedConn below c, or nil.
func boundedBelow(c net.Conn) *boundedConn {
	for c != nil {
		switch layer := c.(type) {
		case *boundedConn:
			return layer
		case interface{ NetConn() net.Conn }: // TLS
			c = layer.NetConn()
		default:
			return nil
		}
	}
	return nil
}
