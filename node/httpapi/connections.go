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

// Connections are bounded here and not by fasthttp, which answers the ones too
// many in its accept loop: over TLS a silent client would stop that loop in its
// handshake. Here they are just closed. An address that has its share gets no more; when
// all connections are taken, one that has been without a request for the longest makes
// room, of the address with the most connections: those who hold connections that they
// don't use must not keep out who has something to ask.
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
	idle list.List // of *boundedConn without a request, the longest so first
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
		victim, ok := l.add(bounded)
		if victim != nil {
			_ = victim.Conn.Close() // its reader sees it
		}
		if ok {
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

// add counts c, if there may be one more, and gives the connection that has to go for it.
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

// longestIdle finds the connection that is to make room; nil when all have a request. The
// caller holds mu.
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

// remove takes c back.
func (l *boundedListener) remove(c *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(c)
}

// forget is remove, and may be called again. The caller holds mu.
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

// busy notes that c has a request. The caller holds mu.
func (l *boundedListener) busy(c *boundedConn) {
	if c.waits != nil {
		l.idle.Remove(c.waits)
		c.waits = nil
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
	waits    *list.Element // of listener.idle, nil with a request; guarded by its mu
	linger   atomic.Bool
	once     sync.Once
	err      error
}

// asks notes that the headers of a request have come, rests that its answer is sent.
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

// Close closes the connection, after lingering if it was told to.
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

// readOn throws away what comes, as fast as a fair client may send it and no faster: it
// must not keep the node busy with what the node has refused to read.
func (c *boundedConn) readOn() {
	for range lingerBytes / lingerPiece {
		if _, err := io.CopyN(io.Discard, c.Conn, lingerPiece); err != nil {
			return // the client ended, or had its time
		}
		time.Sleep(lingerPause)
	}
}

// lingerOn tells the boundedConn below c, if there is one, to linger.
func lingerOn(c net.Conn) {
	if b := boundedBelow(c); b != nil {
		b.linger.Store(true)
	}
}

// boundedBelow finds the boundedConn below c, nil where there is none.
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
