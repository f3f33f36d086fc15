package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"facet/internal/id"
	"facet/node/cert"
)

// Bounds of the port between nodes.
const (
	// handshakesMax is the most connections that have not yet sent their first frame.
	// A further connection closes a random one of them. So most connections that a
	// flood closes are its own. A good handshake takes milliseconds and is rarely hit.
	handshakesMax = 256
	// connsMax is the most accepted connections of all kinds.
	connsMax = 4096
	// backlogMax is the most streams that wait for one listener's Accept.
	backlogMax = 64

	// handshakeTimeout is the time for TLS and the first frame together.
	handshakeTimeout = 5 * time.Second
	// handoverTimeout is how long a stream waits for room in a backlog.
	handoverTimeout = 5 * time.Second
	// acceptPause is the wait after an error of the machine's listener (no
	// descriptor left).
	acceptPause = 50 * time.Millisecond
	// warnInterval is the least time between two warnings about a refused stream.
	warnInterval = 10 * time.Second
)

// Kind is the purpose of a stream: the first byte of its first frame.
type Kind byte

// The kinds of stream. Nodes of different versions exchange these numbers.
const (
	// KindRaft is a Raft group's stream.
	KindRaft Kind = 'R'
	// KindPeer carries internal requests.
	KindPeer Kind = 'P'
	// KindGossip is a stream of gossip.
	KindGossip Kind = 'G'
	// KindRelay is a stream to another node through this one.
	KindRelay Kind = 'V'
)

// headerBytes is the length of the first frame: the kind, then the number of the
// group, big-endian, zero where there is none.
const headerBytes = 3

// ErrClosed is returned when a Mux, Stream, Server or Client was closed.
var ErrClosed = fmt.Errorf("transport: closed: %w", net.ErrClosed)

// Config configures a Mux.
type Config struct {
	// Network is OS{} outside of tests.
	Network Network
	// Addr is the address to listen on, host:port; port 0 chooses one.
	Addr string
	// Advertise is the host:port under which other nodes reach this one. Empty
	// means the address that the Mux listens on.
	Advertise string
	// TLS is the result of cert.Source.PeerConfig.
	TLS *tls.Config
	// Refuse, if set, returns an error when no stream may exist with a node that
	// shows leaf. If the error wraps ErrRemoved, the node may still send one
	// internal request on each stream.
	Refuse func(node id.Node, leaf *x509.Certificate) error
	// Relay returns the address of node to, to which this node relays a stream of node from,
	// or an error. nil relays nothing.
	Relay func(from, to id.Node) (address string, err error)
	Log   *slog.Logger
}

// Mux is the one port between nodes. Each connection has a goroutine that accepts,
// checks and hands it over, so a slow connection delays nobody.
type Mux struct {
	network   Network
	tls       *tls.Config
	refusal   func(node id.Node, leaf *x509.Certificate) error
	target    func(from, to id.Node) (address string, err error)
	log       *slog.Logger
	listener  net.Listener
	advertise string
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	wg        sync.WaitGroup // the accept loop, the handshakes and the relayed streams
	relays    atomic.Int32   // relayed streams

	// mu guards closed, streams, conns, dialled, handshakes, warned, routes and dials. It is
	// never held across I/O. The lock of a Stream may be taken after it, never before.
	mu         sync.Mutex
	closed     bool
	streams    map[header]*Stream
	conns      map[*Conn]struct{} // accepted and not yet closed
	dialled    map[*Conn]struct{} // not yet closed
	handshakes map[*Conn]struct{} // the subset of conns without a first frame
	warned     time.Time          // time of the last warning about a refused stream
	routes     map[string]Route   // by address; direct ones are missing
	dials      map[*dialling]struct{}
}

// header is the content of a stream's first frame.
type header struct {
	kind  Kind
	shard id.Shard
}

// Open starts to listen. ctx bounds the opening only.
func Open(ctx context.Context, cfg Config) (*Mux, error) {
	if cfg.TLS == nil || cfg.Network == nil || cfg.Log == nil {
		return nil, errors.New("open node port: it needs a network, TLS and a log")
	}
	listener, err := cfg.Network.Listen(ctx, cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("open node port: %w", err)
	}
	m := &Mux{
		network: cfg.Network, tls: cfg.TLS, log: cfg.Log,
		listener: listener, advertise: cfg.Advertise,
		streams: make(map[header]*Stream),
		conns:   make(map[*Conn]struct{}), handshakes: make(map[*Conn]struct{}), dialled: make(map[*Conn]struct{}),
		routes: make(map[string]Route), dials: make(map[*dialling]struct{}),
		refusal: cfg.Refuse, target: cfg.Relay,
	}
	if m.refusal == nil {
		m.refusal = func(id.Node, *x509.Certificate) error { return nil }
	}
	if m.target == nil {
		m.target = func(id.Node, id.Node) (string, error) { return "", errors.New("this node relays nothing") }
	}
	if m.advertise == "" {
		m.advertise = listener.Addr().String()
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.wg.Go(m.accept)
	return m, nil
}

// Addr returns the address that m listens on, with the chosen port.
func (m *Mux) Addr() string { return m.listener.Addr().String() }

// Advertise returns the host:port under which other nodes reach this one.
func (m *Mux) Advertise() string { return m.advertise }

// Network returns the network that the port is on.
func (m *Mux) Network() Network { return m.network }

// Group returns the Stream for the streams of a Raft group. It returns an error
// when the group has a Stream already; after that Stream is closed, the group may
// get a new one. The Mux closes the streams of a group that has no Stream.
func (m *Mux) Group(shard id.Shard) (*Stream, error) {
	return m.register(header{KindRaft, shard})
}

// Peers returns the Stream for internal requests. Group describes the errors.
func (m *Mux) Peers() (*Stream, error) { return m.register(header{KindPeer, 0}) }

// Gossip returns the Stream for gossip. Group describes the errors.
func (m *Mux) Gossip() (*Stream, error) { return m.register(header{KindGossip, 0}) }

func (m *Mux) register(h header) (*Stream, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	if m.streams[h] != nil {
		return nil, fmt.Errorf("register stream %c of group %d: registered already", h.kind, h.shard)
	}
	s := &Stream{mux: m, header: h, backlog: make(chan *Conn, backlogMax), done: make(chan struct{})}
	m.streams[h] = s
	return s, nil
}

// identify records the node at the other end in c and adds c to in, which is one of
// m's two maps of connections. Only then does it call Refuse: a Cut that came too
// early to see c has ended by then, so Refuse knows what Cut knew.
func (m *Mux) identify(c *Conn, in map[*Conn]struct{}) error {
	state := c.ConnectionState()
	node, err := cert.NodeOf(state)
	if err != nil {
		return err
	}
	leaf := state.PeerCertificates[0]
	m.mu.Lock()
	c.node, c.leaf = node, leaf
	in[c] = struct{}{}
	m.mu.Unlock()
	return m.refusal(node, leaf)
}

// Cut closes the streams of both directions with the nodes that match, and returns
// their number. match gets the certificate that the other end has shown.
func (m *Mux) Cut(match func(node id.Node, leaf *x509.Certificate) bool) int {
	type stream struct {
		*Conn
		node id.Node
		leaf *x509.Certificate
	}
	var all []stream
	m.mu.Lock()
	for _, in := range []map[*Conn]struct{}{m.conns, m.dialled} {
		for c := range in {
			if c.leaf != nil { // nil: its handshake is not over
				all = append(all, stream{c, c.node, c.leaf})
			}
		}
	}
	m.mu.Unlock()
	count := 0
	for _, c := range all {
		if match(c.node, c.leaf) {
			c.abort()
			count++
		}
	}
	return count
}

// Close stops listening, closes all accepted streams and waits for the accept loop
// and the handshakes. Dialled streams stay open: their dialler owns them.
func (m *Mux) Close() error {
	m.mu.Lock()
	first := !m.closed
	m.closed = true
	streams := m.streams
	m.streams = make(map[header]*Stream)
	m.mu.Unlock()
	var err error
	if first {
		m.cancel()
		err = m.listener.Close()
	}
	for _, s := range streams {
		s.shut()
	}
	for _, c := range m.accepted(func(*Conn) bool { return true }) {
		c.abort()
	}
	m.wg.Wait()
	return err
}

// accepted returns the accepted connections that match.
func (m *Mux) accepted(match func(*Conn) bool) []*Conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*Conn
	for c := range m.conns {
		if match(c) {
			out = append(out, c)
		}
	}
	return out
}

// accept is the accept loop. It ends when the listener is closed.
func (m *Mux) accept() {
	for {
		raw, err := m.listener.Accept()
		if err != nil {
			if m.ctx.Err() != nil {
				return
			}
			m.log.Warn("accept on node port", "err", err)
			select {
			case <-m.ctx.Done():
				return
			case <-time.After(acceptPause):
			}
			continue
		}
		c := &Conn{raw: raw, mux: m, Conn: tls.Server(raw, m.tls)}
		if !m.admit(c) {
			c.abort()
			continue
		}
		m.wg.Go(func() { m.receive(c) })
	}
}

// admit counts c, or returns false when there are too many connections.
func (m *Mux) admit(c *Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.conns) >= connsMax {
		return false
	}
	if len(m.handshakes) >= handshakesMax {
		for victim := range m.handshakes { // in random order
			delete(m.handshakes, victim)
			_ = victim.raw.Close() // its own goroutine does the rest
			break
		}
	}
	m.handshakes[c] = struct{}{}
	m.conns[c] = struct{}{}
	return true
}

// receive does the handshake of c and hands c to the Stream that c's first frame
// names.
func (m *Mux) receive(c *Conn) {
	h, err := m.greet(c)
	m.mu.Lock()
	delete(m.handshakes, c)
	s := m.streams[h]
	m.mu.Unlock()
	if err == nil && h.kind == KindRelay {
		if err := m.relay(c); err != nil {
			m.log.Debug("stream not relayed", "node", c.node.String(), "err", err)
		}
		return
	}
	if err != nil {
		m.refuse(c, err)
		return
	}
	if s == nil || !s.offer(c) {
		m.log.Debug("stream for nobody", "kind", string(rune(h.kind)), "group", h.shard, "node", c.node.String())
		c.abort()
	}
}

// refuse closes c and logs why. One refusal in warnInterval is a warning: an
// operator has to fix a node with the wrong certificate, but a scanner must not
// fill the log.
func (m *Mux) refuse(c *Conn, err error) {
	c.abort()
	m.mu.Lock()
	level := slog.LevelDebug
	if since := time.Since(m.warned); !m.closed && (m.warned.IsZero() || since > warnInterval) {
		m.warned, level = time.Now(), slog.LevelWarn
	}
	m.mu.Unlock()
	m.log.Log(m.ctx, level, "stream refused", "from", c.raw.RemoteAddr().String(), "err", err)
}

// greet does the TLS handshake and reads the first frame.
func (m *Mux) greet(c *Conn) (header, error) {
	ctx, cancel := context.WithTimeout(m.ctx, handshakeTimeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	if err := c.raw.SetDeadline(deadline); err != nil {
		return header{}, err
	}
	if err := c.HandshakeContext(ctx); err != nil {
		return header{}, fmt.Errorf("TLS handshake: %w", err)
	}
	refused := m.identify(c, m.conns)
	if refused != nil && !errors.Is(refused, ErrRemoved) {
		return header{}, refused
	}
	var frame [headerBytes]byte
	if _, err := io.ReadFull(c.Conn, frame[:]); err != nil {
		return header{}, fmt.Errorf("read first frame: %w", err)
	}
	c.header = header{Kind(frame[0]), id.Shard(binary.BigEndian.Uint16(frame[1:]))}
	if c.header.kind != KindRaft && c.header.shard != 0 {
		return header{}, fmt.Errorf("first frame %x: only Raft streams have a group", frame)
	}
	if c.once = refused != nil; c.once && c.header.kind != KindPeer {
		return header{}, refused
	}
	return c.header, c.raw.SetDeadline(time.Time{})
}
