package memnet

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// half is one direction of a stream. Written bytes wait in it until they are due
// and the link works.
type half struct {
	network  *Network
	from, to string

	mu       sync.Mutex // guards chunks to changed; never held while waiting
	chunks   []chunk
	bytes    int
	closed   bool // the writer closed: an end of stream follows the chunks
	closeDue time.Time
	broken   bool // the reader closed: writes fail
	readBy   time.Time
	writeBy  time.Time
	changed  chan struct{} // closed and replaced at each change of the fields above
}

// chunk contains the bytes of one Write.
type chunk struct {
	b   []byte
	due time.Time
}

// conn is one end of a stream.
type conn struct {
	in, out       *half
	local, remote net.Addr
}

// pipe returns the two ends of a stream between two addresses.
func pipe(n *Network, a, b *net.TCPAddr) (near, far *conn) {
	there := &half{network: n, from: a.IP.String(), to: b.IP.String(), changed: make(chan struct{})}
	back := &half{network: n, from: b.IP.String(), to: a.IP.String(), changed: make(chan struct{})}
	return &conn{in: back, out: there, local: a, remote: b}, &conn{in: there, out: back, local: b, remote: a}
}

func (c *conn) Read(b []byte) (int, error)  { return c.in.read(b) }
func (c *conn) Write(b []byte) (int, error) { return c.out.write(b) }
func (c *conn) LocalAddr() net.Addr         { return c.local }
func (c *conn) RemoteAddr() net.Addr        { return c.remote }

// Close ends both directions. Bytes already written are still delivered.
func (c *conn) Close() error {
	link, _ := c.out.network.link(c.out.from, c.out.to)
	c.out.change(func(h *half) {
		if !h.closed {
			h.closed, h.closeDue = true, time.Now().Add(link.Delay)
		}
	})
	c.in.change(func(h *half) { h.broken, h.chunks, h.bytes = true, nil, 0 })
	return nil
}

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.change(func(h *half) { h.readBy = t })
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.change(func(h *half) { h.writeBy = t })
	return nil
}

// change runs f under the lock and wakes the goroutines that wait.
func (h *half) change(f func(*half)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(h)
	h.wake()
}

func (h *half) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *half) read(b []byte) (int, error) {
	for {
		link, linkChanged := h.network.link(h.from, h.to)
		n, due, changed, err := h.tryRead(b, link.Cut)
		if n > 0 || err != nil {
			return n, err
		}
		if len(b) == 0 {
			return 0, nil
		}
		wait(due, changed, linkChanged)
	}
}

// tryRead reads the bytes that are due. When there are none, due is the time to try
// again (zero: never), and changed closes when an earlier attempt may succeed.
func (h *half) tryRead(b []byte, cut bool) (n int, due time.Time, changed <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	due = h.readBy
	switch {
	case h.broken:
		return 0, due, nil, net.ErrClosed
	case !h.readBy.IsZero() && !now.Before(h.readBy):
		return 0, due, nil, os.ErrDeadlineExceeded
	case cut:
		return 0, due, h.changed, nil
	case len(h.chunks) > 0:
		if first := h.chunks[0].due; now.Before(first) {
			return 0, earlier(due, first), h.changed, nil
		}
		n = copy(b, h.chunks[0].b)
		h.bytes -= n
		if h.chunks[0].b = h.chunks[0].b[n:]; len(h.chunks[0].b) == 0 {
			h.chunks = h.chunks[1:]
		}
		h.wake()
		return n, due, nil, nil
	case h.closed:
		if now.Before(h.closeDue) {
			return 0, earlier(due, h.closeDue), h.changed, nil
		}
		return 0, due, nil, io.EOF
	}
	return 0, due, h.changed, nil
}

func (h *half) write(b []byte) (int, error) {
	done := 0
	for {
		link, _ := h.network.link(h.from, h.to)
		n, due, changed, err := h.tryWrite(b[done:], link.Delay)
		done += n
		if done == len(b) || err != nil {
			return done, err
		}
		if n == 0 {
			wait(due, changed, nil)
		}
	}
}

func (h *half) tryWrite(b []byte, delay time.Duration) (n int, due time.Time, changed <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	switch {
	case h.closed:
		return 0, due, nil, net.ErrClosed
	case h.broken:
		return 0, due, nil, syscall.EPIPE
	case !h.writeBy.IsZero() && !now.Before(h.writeBy):
		return 0, due, nil, os.ErrDeadlineExceeded
	}
	n = min(len(b), bufferBytes-h.bytes)
	if n > 0 {
		h.chunks = append(h.chunks, chunk{append([]byte(nil), b[:n]...), now.Add(delay)})
		h.bytes += n
		h.wake()
	}
	return n, h.writeBy, h.changed, nil
}

// wait returns when a channel closes or at the time due. A zero due never comes.
func wait(due time.Time, a, b <-chan struct{}) {
	select {
	case <-a:
	case <-b:
	case <-alarm(due):
	}
}

// earlier returns the earlier of two times, where zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
