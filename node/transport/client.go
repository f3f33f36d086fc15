package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"facet/internal/id"
)

// Bounds of the client of internal requests.
const (
	// peerConnsMax is the most connections to one address, and so the most requests
	// in progress there. Further requests wait until their context ends.
	peerConnsMax = 64
	// peerIdleMax is the most idle connections to one address.
	peerIdleMax = 16
	// clientIdleTimeout is how long a connection may be idle before the client
	// closes it.
	clientIdleTimeout = time.Minute
	// callTimeout is the deadline of a call whose context has none.
	callTimeout = 30 * time.Second
)

// Client sends internal requests over kept-alive connections. It is safe for
// concurrent use.
type Client struct {
	dial   func(ctx context.Context, address string) (net.Conn, error)
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // calls and readers
	budget *budget        // of answers that arrive

	// mu guards closed and peers. It is never held across I/O.
	mu     sync.Mutex
	closed bool
	peers  map[string]*peer // with a connection or a call
}

// peer contains the connections to one address.
type peer struct {
	address string
	slots   chan struct{} // one element for each call
	users   int           // calls that hold or wait for a slot
	idle    []*clientConn // the last is the latest used
	open    map[*clientConn]struct{}
}

// clientConn is one connection. Its reader runs as long as it is open. So a
// connection that the other node closed is never used for another request.
type clientConn struct {
	net.Conn
	answers chan []byte   // capacity 1: the answer to the one request
	ended   chan struct{} // closed by the reader; err is set before
	err     error
	number  uint32 // of the latest request; used by the one call that has the connection
	expiry  *time.Timer
}

// At returns an address for Call that only this node may answer. After a node has
// stopped, another node may have its address.
func At(node id.Node, address string) string { return node.String() + "@" + address }

// OpenClient returns a client that dials through mux. Close it before mux.
func OpenClient(mux *Mux) *Client {
	return openClientBy(func(ctx context.Context, address string) (*Conn, error) { return mux.Dial(ctx, KindPeer, 0, address) })
}

// OpenDirectClient returns a client that uses no relay. Close it before mux.
func OpenDirectClient(mux *Mux) *Client {
	return openClientBy(func(ctx context.Context, address string) (*Conn, error) {
		return mux.dialDirect(ctx, header{kind: KindPeer}, address)
	})
}

func openClientBy(dial func(ctx context.Context, address string) (*Conn, error)) *Client {
	return openClient(func(ctx context.Context, target string) (net.Conn, error) {
		node, address, named := strings.Cut(target, "@")
		if !named {
			address = target
		}
		c, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}
		if named && c.Node().String() != node {
			return nil, errors.Join(fmt.Errorf("the node at %s is %s, not %s", address, c.Node(), node), c.Close())
		}
		return c, nil
	})
}

func openClient(dial func(ctx context.Context, address string) (net.Conn, error)) *Client {
	c := &Client{dial: dial, peers: make(map[string]*peer), budget: newBudget(budgetBytes)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close ends all calls and connections and waits for them.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	var open []*clientConn
	for _, p := range c.peers {
		for conn := range p.open {
			open = append(open, conn)
		}
	}
	c.mu.Unlock()
	c.cancel()
	for _, conn := range open {
		conn.abort()
	}
	c.wg.Wait()
	return nil
}

// Call sends a request to the node at address and waits for its answer, which the
// caller may keep. It returns as soon as ctx ends, and the handler's context then
// ends too. The error is a *RemoteError of the handler, ErrNotSent or
// ErrOutcomeUnknown. The last two wrap ctx's error when ctx was the cause.
func (c *Client) Call(ctx context.Context, address, method string, body []byte) ([]byte, error) {
	if len(body) > BodyBytesMax || len(method) > MethodBytesMax {
		return nil, fmt.Errorf("call %.64s: %w: %w", method, ErrNotSent, ErrTooLarge)
	}
	p, err := c.enter(address)
	if err != nil {
		return nil, fmt.Errorf("call %s at %s: %w: %w", method, address, ErrNotSent, err)
	}
	defer c.wg.Done()
	defer c.exit(p)
	ctx, cancel := context.WithTimeout(ctx, callTimeoutOf(ctx))
	defer cancel()
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("call %s at %s: %w: wait for a connection: %w", method, address, ErrNotSent, ctx.Err())
	case <-c.ctx.Done():
		return nil, fmt.Errorf("call %s at %s: %w: %w", method, address, ErrNotSent, ErrClosed)
	}
	conn, err := c.take(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w: %w", method, ErrNotSent, err)
	}
	answer, err := exchange(ctx, conn, method, body)
	remote := (*RemoteError)(nil)
	switch {
	case errors.As(err, &remote):
		err = remote
	case err != nil:
		conn.abort() // its reader removes it from p
		return nil, fmt.Errorf("call %s at %s: %w", method, address, err)
	}
	c.giveBack(ctx, p, conn)
	return answer, err
}

// callTimeoutOf returns the time that ctx leaves, or callTimeout.
func callTimeoutOf(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return callTimeout
}

// enter counts a call and returns the peer of its address.
func (c *Client) enter(address string) (*peer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	p := c.peers[address]
	if p == nil {
		p = &peer{address: address, slots: make(chan struct{}, peerConnsMax), open: make(map[*clientConn]struct{})}
		c.peers[address] = p
	}
	p.users++
	c.wg.Add(1)
	return p, nil
}

// exit ends the count of a call.
func (c *Client) exit(p *peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.users--
	c.forget(p)
}

// forget removes p when it has no connection and no call left. Addresses of stopped
// nodes then cost nothing. The caller holds mu.
func (c *Client) forget(p *peer) {
	if p.users == 0 && len(p.open) == 0 && c.peers[p.address] == p {
		delete(c.peers, p.address)
	}
}

// take returns the most recently used idle connection, or a new one.
func (c *Client) take(ctx context.Context, p *peer) (*clientConn, error) {
	c.mu.Lock()
	for n, conn := range slices.Backward(p.idle) {
		p.idle = p.idle[:n]
		if conn.expiry.Stop() { // false: it is being closed
			c.mu.Unlock()
			return conn, nil
		}
	}
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)() // Close ends dials; the stop function runs at return
	raw, err := c.dial(ctx, p.address)
	if err != nil {
		return nil, err
	}
	conn := &clientConn{Conn: raw, answers: make(chan []byte, 1), ended: make(chan struct{})}
	conn.expiry = time.AfterFunc(clientIdleTimeout, conn.abort)
	conn.expiry.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		conn.abort()
		return nil, ErrClosed
	}
	p.open[conn] = struct{}{}
	c.wg.Go(func() { c.read(p, conn) })
	return conn, nil
}

// exchange sends one request and waits for its answer. After success or a
// *RemoteError conn can be used again.
func exchange(ctx context.Context, conn *clientConn, method string, body []byte) ([]byte, error) {
	defer context.AfterFunc(ctx, conn.abort)() // a blocked write ends with ctx
	deadline, _ := ctx.Deadline()
	conn.number++
	q := request{number: conn.number, timeout: time.Until(deadline), method: method, body: body}
	if err := writeRequest(conn, q); err != nil {
		// The frame is incomplete, so the other node can't act on it.
		return nil, fmt.Errorf("%w: %w", ErrNotSent, cause(ctx, err))
	}
	select {
	case answer := <-conn.answers:
		return parseAnswer(answer, conn.number)
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, ctx.Err())
	case <-conn.ended:
		select {
		case answer := <-conn.answers: // the answer came before the connection ended
			return parseAnswer(answer, conn.number)
		default:
		}
		return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, cause(ctx, conn.err))
	}
}

// cause returns ctx's error when it caused err.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// giveBack keeps conn for the next call, or closes it. It closes conn if ctx has
// ended, because the call may already be aborting conn, or if the route to the node has
// changed.
func (c *Client) giveBack(ctx context.Context, p *peer, conn *clientConn) {
	stream, ok := conn.Conn.(*Conn)
	outdated := ok && stream.outdated()
	c.mu.Lock()
	_, open := p.open[conn]
	keep := open && !outdated && !c.closed && ctx.Err() == nil && len(p.idle) < peerIdleMax
	if keep {
		p.idle = append(p.idle, conn)
		conn.expiry.Reset(clientIdleTimeout)
	}
	c.mu.Unlock()
	if !keep {
		conn.abort()
	}
}

// read reads answers until conn ends, and then removes it from p.
func (c *Client) read(p *peer, conn *clientConn) {
	for {
		b, err := c.next(conn)
		if err == nil {
			select {
			case conn.answers <- b:
				continue
			default:
				err = errors.New("an answer to no request")
			}
		}
		conn.err = err
		close(conn.ended)
		break
	}
	conn.expiry.Stop()
	conn.abort()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(p.open, conn)
	p.idle = slices.DeleteFunc(p.idle, func(other *clientConn) bool { return other == conn })
	c.forget(p)
}

// next reads one answer after it has taken memory for it.
func (c *Client) next(conn *clientConn) ([]byte, error) {
	var room share
	defer func() { room.giveBack() }() // the caller keeps the answer
	return readFrame(conn, BodyBytesMax+answerBytesMin, func(n int) (err error) {
		ctx, cancel := context.WithTimeout(c.ctx, callTimeout)
		defer cancel()
		room, err = c.budget.take(ctx, n)
		return err
	})
}

// abort closes the connection without waiting for the other end.
func (c *clientConn) abort() {
	if conn, ok := c.Conn.(*Conn); ok {
		conn.abort()
		return
	}
	_ = c.Close()
}
