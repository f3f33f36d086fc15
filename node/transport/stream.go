package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"facet/internal/id"
)

// Conn is one checked stream between two nodes.
type Conn struct {
	*tls.Conn
	raw    net.Conn
	mux    *Mux
	header header
	node   id.Node
	leaf   *x509.Certificate // certificate of the other end; guarded by mux.mu
	// address and route are how Mux.Dial opened the stream; guarded by mux.mu. address is
	// empty on other streams.
	address string
	route   Route
	// once is set when the other end was removed. The stream then carries one
	// request, whose answer may say so.
	once  bool
	owner atomic.Pointer[Stream] // the Stream that accepted it
}

// Node returns the node at the other end, as its certificate says.
func (c *Conn) Node() id.Node { return c.node }

// Close ends the stream.
func (c *Conn) Close() error {
	c.forget()
	return c.Conn.Close()
}

// abort closes the stream without TLS's farewell, so it never waits for the other
// end.
func (c *Conn) abort() {
	c.forget()
	_ = c.raw.Close() // nothing can be done about an error
}

func (c *Conn) forget() {
	c.mux.mu.Lock()
	delete(c.mux.conns, c)
	delete(c.mux.dialled, c)
	c.mux.mu.Unlock()
}

// Stream is a registration for one kind of stream. It is a net.Listener that can
// also dial the same kind on other nodes, as the transport of a Raft group needs.
type Stream struct {
	mux     *Mux
	header  header
	backlog chan *Conn // waits for Accept; a stream that finds it full waits, then is closed
	done    chan struct{}
	once    sync.Once
}

// Accept returns the next stream. After Close it returns ErrClosed.
func (s *Stream) Accept() (net.Conn, error) {
	select {
	case <-s.done:
		return nil, ErrClosed
	case c := <-s.backlog:
		if isClosed(s.done) { // both channels were ready
			return nil, ErrClosed
		}
		return c, nil
	}
}

// Addr returns the address that other nodes dial.
func (s *Stream) Addr() net.Addr { return advertised(s.mux.advertise) }

// Dial opens a stream of the same kind and group on the node at address. It stops
// when ctx ends, and after five seconds.
func (s *Stream) Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := s.mux.Dial(ctx, s.header.kind, s.header.shard, address)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Close ends the registration and the streams that were accepted under it. The port
// stays open, and the same kind and group can be registered again.
func (s *Stream) Close() error {
	s.mux.mu.Lock()
	if s.mux.streams[s.header] == s {
		delete(s.mux.streams, s.header)
	}
	s.mux.mu.Unlock()
	s.shut()
	return nil
}

// shut unblocks Accept and closes the accepted streams and the waiting ones.
func (s *Stream) shut() {
	s.once.Do(func() { close(s.done) })
	for _, c := range s.mux.accepted(func(c *Conn) bool { return c.owner.Load() == s }) {
		c.abort()
	}
}

// offer hands c to Accept. It returns false when there was no room in time.
func (s *Stream) offer(c *Conn) bool {
	c.owner.Store(s)
	timer := time.NewTimer(handoverTimeout)
	defer timer.Stop()
	select {
	case <-s.done:
		return false
	case s.backlog <- c:
	case <-timer.C:
		return false
	}
	return !isClosed(s.done) // shut may have run before c was in the backlog
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// advertised is an address as configured. Its host may be a name.
type advertised string

func (advertised) Network() string  { return "tcp" }
func (a advertised) String() string { return string(a) }
