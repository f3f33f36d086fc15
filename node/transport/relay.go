package transport

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"facet/internal/id"
)

// A link between two nodes may be cut while both reach a third node. Streams between the two
// then go through the third one, the relay:
//
//	origin ── TLS ── relay ── TCP ── target
//	   └───────── TLS ─────────────────┘
//
// The origin opens a stream of KindRelay to the relay and sends the id of the target. The
// relay dials the target and copies bytes in both directions. The origin then does the
// handshake of an ordinary stream with the target. So the target checks the origin's own
// certificate, and the relay can neither read nor change what it copies. The relay dials
// the target itself, so a stream never passes two relays.

// relaysMax is the most streams that a node relays at once. It copies each with two buffers
// of 32 KiB.
const relaysMax = 1024

// errRerouted ends dials whose route has changed.
var errRerouted = errors.New("transport: the route to the node has changed")

// Route is the way of new streams to one node. The zero value is the direct way.
type Route struct {
	// Through is the address of the relay.
	Through string
	// To is the node at the end.
	To id.Node
}

// dialling is a dial in progress.
type dialling struct {
	address string
	cancel  context.CancelCauseFunc
}

// Reroute makes all later streams to the node at address take route r, and ends the dials in
// progress that take another route. It closes the streams that Dial opened by another route,
// with one exception: when r is direct, a stream of internal requests stays open until its
// present request is answered.
func (m *Mux) Reroute(address string, r Route) {
	var streams []*Conn
	m.mu.Lock()
	if r == (Route{}) {
		delete(m.routes, address)
	} else {
		m.routes[address] = r
	}
	for d := range m.dials {
		if d.address == address {
			d.cancel(errRerouted)
		}
	}
	for c := range m.dialled {
		if c.address == address && c.route != r && (r != (Route{}) || c.header.kind != KindPeer) {
			streams = append(streams, c)
		}
	}
	m.mu.Unlock()
	for _, c := range streams {
		c.abort()
	}
}

// outdated reports whether a new stream to c's node would take another route.
func (c *Conn) outdated() bool {
	c.mux.mu.Lock()
	defer c.mux.mu.Unlock()
	return c.address != "" && c.mux.routes[c.address] != c.route
}

// Dial opens a stream to the node at address, by the route that Reroute has set. shard is
// zero unless kind is KindRaft. The other node closes the stream when it has no registration
// for it.
func (m *Mux) Dial(ctx context.Context, kind Kind, shard id.Shard, address string) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	for {
		c, again, err := m.dialRouted(ctx, header{kind, shard}, address)
		if !again {
			return c, err
		}
	}
}

// dialRouted dials once. again reports that the route has changed meanwhile.
func (m *Mux) dialRouted(ctx context.Context, h header, address string) (c *Conn, again bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.ctx, func() { cancel(ErrClosed) })() // the stop function runs at return
	d := &dialling{address, cancel}
	m.mu.Lock()
	m.dials[d] = struct{}{}
	r := m.routes[address]
	m.mu.Unlock()
	if r == (Route{}) {
		c, err = m.dialDirect(ctx, h, address)
	} else {
		c, err = m.dialThrough(ctx, h, address, r)
	}
	m.mu.Lock()
	delete(m.dials, d)
	if again = errors.Is(context.Cause(ctx), errRerouted); !again && err == nil {
		c.address, c.route = address, r // from now on Reroute finds c
	}
	m.mu.Unlock()
	if again && err == nil {
		c.abort()
	}
	return c, again, err
}

// dialDirect opens a stream that Reroute leaves alone.
func (m *Mux) dialDirect(ctx context.Context, h header, address string) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	defer context.AfterFunc(m.ctx, cancel)() // Close ends dials; the stop function runs at return
	raw, err := m.network.Dial(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("dial node at %s: %w", address, err)
	}
	c, err := m.open(ctx, raw, h)
	if err != nil {
		return nil, fmt.Errorf("dial node at %s: %w", address, err)
	}
	return c, nil
}

// dialThrough opens a stream through a relay.
func (m *Mux) dialThrough(ctx context.Context, h header, address string, r Route) (*Conn, error) {
	outer, err := m.dialDirect(ctx, header{kind: KindRelay}, r.Through)
	if err != nil {
		return nil, &relayError{address, r.Through, err}
	}
	if err := writeBy(ctx, outer, r.To.UUID[:]); err != nil {
		outer.abort()
		return nil, &relayError{address, r.Through, err}
	}
	c, err := m.open(ctx, relayed{outer}, h)
	if err != nil {
		return nil, &relayError{address, r.Through, err}
	}
	return c, nil
}

// open does the handshake of an outgoing stream on raw, and names the stream.
func (m *Mux) open(ctx context.Context, raw net.Conn, h header) (*Conn, error) {
	conn := tls.Client(raw, m.tls)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	var frame [headerBytes]byte
	frame[0] = byte(h.kind)
	binary.BigEndian.PutUint16(frame[1:], uint16(h.shard))
	if err := writeBy(ctx, conn, frame[:]); err != nil {
		return nil, errors.Join(fmt.Errorf("name the stream: %w", err), raw.Close())
	}
	c := &Conn{Conn: conn, raw: raw, mux: m, header: h}
	if err := m.identify(c, m.dialled); err != nil {
		c.abort()
		return nil, err
	}
	return c, nil
}

// writeBy writes b before the deadline of ctx.
func writeBy(ctx context.Context, conn net.Conn, b []byte) error {
	deadline, _ := ctx.Deadline()
	err := conn.SetWriteDeadline(deadline)
	if err == nil {
		_, err = conn.Write(b)
	}
	if err == nil {
		err = conn.SetWriteDeadline(time.Time{})
	}
	return err
}

// relayed is a stream to a relay as the connection under a stream to the target. Its Close
// does not wait for the relay.
type relayed struct{ *Conn }

// Close ends the stream to the relay.
func (r relayed) Close() error {
	r.abort()
	return nil
}

// relayError is the error of a dial through a relay. It says nothing about the target, so it
// counts as a timeout (net.Error), never as a refusal by the target.
type relayError struct {
	address, through string
	err              error
}

func (e *relayError) Error() string {
	return fmt.Sprintf("dial node at %s through %s: %v", e.address, e.through, e.err)
}
func (e *relayError) Unwrap() error { return e.err }
func (*relayError) Timeout() bool   { return true }
func (*relayError) Temporary() bool { return true }

// relay serves the accepted stream c of KindRelay until one of its ends closes.
func (m *Mux) relay(c *Conn) error {
	defer c.abort()
	var to id.Node
	if err := c.raw.SetReadDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, to.UUID[:]); err != nil {
		return fmt.Errorf("read the target of a relayed stream: %w", err)
	}
	if err := c.raw.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	address, err := m.target(c.node, to)
	if err != nil {
		return fmt.Errorf("relay a stream of node %s: %w", c.node, err)
	}
	if m.relays.Add(1) > relaysMax {
		m.relays.Add(-1)
		return errors.New("too many relayed streams")
	}
	defer m.relays.Add(-1)
	ctx, cancel := context.WithTimeout(m.ctx, handshakeTimeout)
	raw, err := m.network.Dial(ctx, address)
	cancel()
	if err != nil {
		return fmt.Errorf("relay a stream of node %s: %w", c.node, err)
	}
	var back sync.WaitGroup
	back.Go(func() { // ends when raw is closed
		_, _ = io.Copy(c, raw) // an error is an end of the stream, too
		c.abort()
	})
	_, _ = io.Copy(raw, c)
	_ = raw.Close()
	back.Wait()
	return nil
}
