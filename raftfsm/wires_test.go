package raftfsm

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"facet/raftfsm/transport"

	"facet/internal/id"
)

// wires is a network in memory: every stream is a net.Pipe. Members that were cut
// off reach nobody and nobody reaches them.
type wires struct {
	mu        sync.Mutex
	listeners map[string]*wireListener
	side      map[string]int // members reach those of their own side; 0 at first
	severed   map[[2]string]bool
	open      map[*wire]struct{}
	sent      atomic.Int64 // messages on streams, in the direction in which they were dialled
}

func newWires() *wires {
	return &wires{
		listeners: make(map[string]*wireListener), side: make(map[string]int), severed: make(map[[2]string]bool), open: make(map[*wire]struct{}),
	}
}

type wire struct {
	net.Conn
	sent     *atomic.Int64
	from, to string
}

func (w *wire) Write(b []byte) (int, error) {
	w.sent.Add(1)
	return w.Conn.Write(b)
}

// part puts members on a side of their own.
func (w *wires) part(side int, members ...id.Member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range members {
		w.side[string(m)] = side
	}
	for c := range w.open {
		if w.side[c.from] != w.side[c.to] {
			c.Close()
			delete(w.open, c)
		}
	}
}

// reach reports whether two members reach each other.
func (w *wires) reach(a, b id.Member) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.side[string(a)] == w.side[string(b)]
}

// sever ends the streams between two members for good.
func (w *wires) sever(a, b id.Member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pair := range [][2]string{{string(a), string(b)}, {string(b), string(a)}} {
		w.severed[pair] = true
		for c := range w.open {
			if c.from == pair[0] && c.to == pair[1] {
				c.Close()
				delete(w.open, c)
			}
		}
	}
}

type wireListener struct {
	w     *wires
	name  string
	queue chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (w *wires) listen(name string) transport.StreamLayer {
	l := &wireListener{w: w, name: name, queue: make(chan net.Conn), done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listeners[name] = l
	return l
}

func (l *wireListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *wireListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *wireListener) Addr() net.Addr { return wireAddr(l.name) }

func (l *wireListener) Dial(ctx context.Context, address string) (net.Conn, error) {
	l.w.mu.Lock()
	to := l.w.listeners[address]
	reachable := to != nil && l.w.side[l.name] == l.w.side[address] && !l.w.severed[[2]string{l.name, address}]
	l.w.mu.Unlock()
	if !reachable {
		return nil, errors.New("unreachable")
	}
	here, there := net.Pipe()
	if from, err := id.Member(l.name).Node(); err == nil {
		there = named{there, from}
	}
	select {
	case to.queue <- there:
	case <-to.done:
		return nil, errors.New("refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c := &wire{Conn: here, sent: &l.w.sent, from: l.name, to: address}
	l.w.mu.Lock()
	l.w.open[c] = struct{}{}
	l.w.mu.Unlock()
	if node, err := id.Member(address).Node(); err == nil {
		return named{c, node}, nil
	}
	return c, nil
}

// wireAddr is a member's name as a net.Addr.
type wireAddr string

func (wireAddr) Network() string  { return "wire" }
func (a wireAddr) String() string { return string(a) }

// named is a stream to or from a node.
type named struct {
	net.Conn
	node id.Node
}

func (n named) Node() id.Node { return n.node }
