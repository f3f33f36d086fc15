package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/id"
)

// StreamLayer opens the streams of one group between its members. Accept returns streams
// that other members dialled for this group. Close ends Accept with an error and removes
// the group from the port, which stays open for other groups.
type StreamLayer interface {
	net.Listener
	// Dial opens a stream to the same group at address. It fails when ctx ends.
	Dial(ctx context.Context, address string) (net.Conn, error)
}

// streams is a raft.StreamLayer over a StreamLayer. The address that raft knows of a member
// is always the member's name, because raft stores votes by address and addresses change.
// Dial resolves the name.
//
// raft.NetworkTransport leaves its connections open when it is closed. streams closes them
// and waits for their users.
type streams struct {
	inner   StreamLayer
	self    id.Member
	resolve func(id.Member) (string, error)
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	wg      sync.WaitGroup // the Accept that runs, and every open stream

	nodeGone func(id.Node) // called when the last stream from a node has ended; may be nil

	mu     sync.Mutex // guards open, nodes and closed
	open   map[*stream]struct{}
	nodes  map[id.Node]int // the number of streams from each node
	closed bool
}

var _ raft.StreamLayer = (*streams)(nil)

func newStreams(cfg *Config) *streams {
	ctx, cancel := context.WithCancel(context.Background())
	return &streams{
		inner: cfg.Stream, self: cfg.Self, resolve: cfg.Resolve,
		ctx: ctx, cancel: cancel, open: make(map[*stream]struct{}), nodes: make(map[id.Node]int),
	}
}

// stream is an open connection that its owner tracks.
type stream struct {
	net.Conn
	owner *streams
	peer  id.Node // the node that opened it; zero if this end did, or if that is not known
	once  sync.Once
}

// Close closes the connection.
func (c *stream) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		if c.owner.drop(c) {
			c.owner.nodeGone(c.peer)
		}
		c.owner.wg.Done()
	})
	return err
}

// drop removes a stream. It reports whether that was the last one from a node.
func (s *streams) drop(c *stream) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	if c.peer == (id.Node{}) {
		return false
	}
	if s.nodes[c.peer]--; s.nodes[c.peer] > 0 {
		return false
	}
	delete(s.nodes, c.peer)
	return s.nodeGone != nil && !s.closed
}

// from returns how many open streams a node opened.
func (s *streams) from(node id.Node) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[node]
}

// enter adds one to wg, or returns an error if the streams are closed.
func (s *streams) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	s.wg.Add(1)
	return nil
}

// adopt tracks a stream that this end dialled, or that node opened.
func (s *streams) adopt(conn net.Conn, node id.Node) (net.Conn, error) {
	if err := s.enter(); err != nil {
		conn.Close()
		return nil, err
	}
	c := &stream{Conn: conn, owner: s, peer: node}
	s.mu.Lock()
	s.open[c] = struct{}{}
	if node != (id.Node{}) {
		s.nodes[node]++
	}
	closed := s.closed
	s.mu.Unlock()
	if closed { // between the two locks: Close did not see c
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	return c, nil
}

// silenceMax is how long a member that has begun a message may send nothing.
const silenceMax = 30 * time.Second

// received is a stream that another member opened. raft's main goroutine reads snapshots from it, so a sender
// that falls silent within a message would stop the group, until the system noticed that the link is gone.
// Between two messages a stream may be idle. One goroutine at a time uses it.
type received struct {
	net.Conn
	within, limited bool // a message; by a deadline
}

// Read reads a part of a message.
func (c *received) Read(b []byte) (int, error) {
	if c.within || c.limited {
		var end time.Time
		if c.within {
			end = time.Now().Add(silenceMax)
		}
		if err := c.SetReadDeadline(end); err != nil {
			return 0, err
		}
		c.limited = c.within
	}
	n, err := c.Conn.Read(b)
	c.within = c.within || n > 0
	return n, err
}

// Write answers a message.
func (c *received) Write(b []byte) (int, error) {
	c.within = false
	return c.Conn.Write(b)
}

// Accept returns the next stream from another member.
func (s *streams) Accept() (net.Conn, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.wg.Done()
	conn, err := s.inner.Accept()
	if err != nil {
		return nil, err
	}
	var node id.Node
	if named, ok := conn.(interface{ Node() id.Node }); ok {
		node = named.Node()
	}
	return s.adopt(&received{Conn: conn}, node)
}

// Dial opens a stream to the member that target names.
func (s *streams) Dial(target raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	address, err := s.resolve(id.Member(target))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDial, err)
	}
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	conn, err := s.inner.Dial(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDial, err)
	}
	if err := sameNode(conn, id.Member(target)); err != nil {
		return nil, errors.Join(errDial, err, conn.Close())
	}
	return s.adopt(conn, id.Node{})
}

// sameNode returns an error if the node at the other end is not the member's. The address
// of a node that is gone may now belong to another node, which would vote in its name.
func sameNode(conn net.Conn, member id.Member) error {
	named, ok := conn.(interface{ Node() id.Node })
	if !ok {
		return nil // a StreamLayer without nodes
	}
	if want, err := member.Node(); err != nil || named.Node() != want {
		return fmt.Errorf("the node at the address of %s is %s: %w", member, named.Node(), errors.Join(err, errOtherNode))
	}
	return nil
}

// errOtherNode is returned when an address now belongs to another node.
var errOtherNode = errors.New("raftfsm: another node has the address")

// Addr returns the name of this member, which raft sends to others.
func (s *streams) Addr() net.Addr { return memberAddr(s.self) }

// Close ends Accept and Dial and closes every stream. wg tells when their users have ended.
func (s *streams) Close() error {
	s.mu.Lock()
	s.closed = true
	var conns []net.Conn
	for c := range s.open {
		conns = append(conns, c.Conn)
	}
	s.mu.Unlock()
	s.cancel()
	err := s.inner.Close()
	for _, c := range conns {
		c.Close()
	}
	return err
}

// memberAddr is a member's name as a net.Addr.
type memberAddr id.Member

func (memberAddr) Network() string  { return "raft" }
func (a memberAddr) String() string { return string(a) }
