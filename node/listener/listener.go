package listener

import (
	"container/list"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Limits are the most open connections.
type Limits struct {
	// Connections is the most in all, PerIP the most from one IPv4 address or IPv6
	// /64.
	Connections, PerIP int
}

// lingerTime and lingerBytes bound how much is read and thrown away after a refusal,
// so that the client sees the refusal.
const (
	lingerTime  = 3 * time.Second
	lingerBytes = 32 << 20
	// At most lingerPiece is read in each lingerPause: 25 MB a second.
	lingerPiece = 256 << 10
	lingerPause = 10 * time.Millisecond
	// acceptPauseMin to acceptPauseMax is the wait when no connection can be
	// accepted, for lack of file descriptors for example.
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second
)

// Listener accepts a bounded number of connections, in all and from one
// address. Its connections can linger.
type Listener struct {
	net.Listener
	limits Limits

	mu   sync.Mutex // guards open, byIP, idle and asked of each Conn; never held across I/O
	open map[*Conn]struct{}
	byIP map[netip.Addr]int
	idle list.List // of *Conn without a request, the longest idle first
}

// New returns a listener that bounds the connections of ln by l.
func New(ln net.Listener, l Limits) *Listener {
	return &Listener{Listener: ln, limits: l, open: make(map[*Conn]struct{}), byIP: make(map[netip.Addr]int)}
}

// Accept waits for a connection within the bounds. It retries after errors that
// pass, such as a lack of file descriptors.
func (l *Listener) Accept() (net.Conn, error) {
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
		bounded := &Conn{Conn: c, listener: l, ip: Address(c)}
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

// Address returns the address under which the connections of one client are counted:
// the IPv4 address, or the 64 bits that an IPv6 site is assigned. It returns the zero
// Addr where there are no addresses.
func Address(c net.Conn) netip.Addr {
	ip := Remote(c)
	if ip.Is6() {
		prefix, _ := ip.Prefix(64) // 64 is within an IPv6 address
		ip = prefix.Addr()
	}
	return ip
}

// Remote returns the address of a connection's other end, without a zone. It returns the zero Addr where there are
// no addresses.
func Remote(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// add counts c if the bounds allow one more connection. It returns the connection
// that has to make room for c, if any.
func (l *Listener) add(c *Conn) (victim *Conn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case c.ip.IsValid() && l.byIP[c.ip] >= l.limits.PerIP:
		victim = l.idlest(c.ip)
	case len(l.open) >= l.limits.Connections:
		victim = l.dispensable()
	default:
		return nil, l.admit(c)
	}
	if victim == nil {
		return nil, false
	}
	l.forget(victim)
	return victim, l.admit(c)
}

// admit counts c and returns true. The caller holds mu.
func (l *Listener) admit(c *Conn) bool {
	l.open[c] = struct{}{}
	l.byIP[c.ip]++
	c.waits = l.idle.PushBack(c)
	return true
}

// dispensable returns the connection that makes room when all are taken, or nil when all have a
// request. The caller holds mu.
func (l *Listener) dispensable() *Conn {
	most := netip.Addr{}
	for ip, n := range l.byIP {
		if n > l.byIP[most] {
			most = ip
		}
	}
	if c := l.idlest(most); c != nil {
		return c
	}
	if e := l.idle.Front(); e != nil {
		return e.Value.(*Conn)
	}
	return nil
}

// idlest returns the oldest connection of an address on which no request has come yet, a handshake
// that does not end for example. If there is none, it returns the longest idle one of the address, or
// nil. The caller holds mu.
func (l *Listener) idlest(ip netip.Addr) (longest *Conn) {
	for e := l.idle.Front(); e != nil; e = e.Next() {
		c := e.Value.(*Conn)
		switch {
		case c.ip != ip:
		case !c.asked:
			return c
		case longest == nil:
			longest = c
		}
	}
	return longest
}

// remove stops counting c.
func (l *Listener) remove(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(c)
}

// forget does the work of remove and may be called again. The caller holds mu.
func (l *Listener) forget(c *Conn) {
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
func (l *Listener) busy(c *Conn) {
	if c.waits != nil {
		l.idle.Remove(c.waits)
		c.waits = nil
	}
}

// Open returns the number of open connections.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// Cut closes every connection at once, whatever happens on it.
func (l *Listener) Cut() {
	l.mu.Lock()
	open := slices.Collect(maps.Keys(l.open))
	l.mu.Unlock()
	for _, c := range open {
		_ = c.Conn.Close() // its reader and its writer see the end
	}
}

// Conn is a counted connection.
type Conn struct {
	net.Conn
	listener *Listener
	ip       netip.Addr
	waits    *list.Element // of listener.idle, nil with a request; guarded by its mu
	asked    bool          // a request has come
	linger   atomic.Bool
	once     sync.Once
	err      error
}

// Asks records that the headers of a request have come.
func (c *Conn) Asks() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.asked = true
	c.listener.busy(c)
}

// Rests records that the answer to the request was sent.
func (c *Conn) Rests() {
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, here := l.open[c]; here && c.waits == nil {
		c.waits = l.idle.PushBack(c)
	}
}

// Track records in the Conn below c whether an http.Server serves a request on it. It is an http.Server.ConnState.
func Track(c net.Conn, state http.ConnState) {
	b := Below(c)
	if b == nil {
		return
	}
	switch state {
	case http.StateActive:
		b.Asks()
	case http.StateIdle:
		b.Rests()
	case http.StateNew, http.StateHijacked, http.StateClosed:
	}
}

// Close closes the connection, after reading on if Linger was called.
func (c *Conn) Close() error {
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
func (c *Conn) readOn() {
	for range lingerBytes / lingerPiece {
		if _, err := io.CopyN(io.Discard, c.Conn, lingerPiece); err != nil {
			return // the client closed the connection, or its time is over
		}
		time.Sleep(lingerPause)
	}
}

// IP returns the address under which the connection is counted (Address).
func (c *Conn) IP() netip.Addr { return c.ip }

// Linger makes Close read on for a while, so that the client sees the last answer.
func (c *Conn) Linger() { c.linger.Store(true) }

// Below returns the Conn below c, or nil.
func Below(c net.Conn) *Conn {
	for c != nil {
		switch layer := c.(type) {
		case *Conn:
			return layer
		case interface{ NetConn() net.Conn }: // TLS
			c = layer.NetConn()
		default:
			return nil
		}
	}
	return nil
}
