package memnet

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// packetConn is a host's packet socket.
type packetConn struct {
	host   *Host
	number int
	queue  chan packet // packets not yet read; one too many is lost
	done   chan struct{}
	once   sync.Once

	mu      sync.Mutex // guards readBy and changed
	readBy  time.Time
	changed chan struct{} // closed and replaced when readBy changes
}

type packet struct {
	b    []byte
	from net.Addr
}

// ListenPacket opens a packet socket on this host.
func (h *Host) ListenPacket(_ context.Context, address string) (net.PacketConn, error) {
	ip, number, err := h.split(address)
	if err != nil || ip != h.ip {
		return nil, fmt.Errorf("listen on %s: %w", address, syscall.EADDRNOTAVAIL)
	}
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	if number == 0 {
		number = h.free()
	}
	if h.packets[number] != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, syscall.EADDRINUSE)
	}
	p := &packetConn{
		host: h, number: number, queue: make(chan packet, packetsMax),
		done: make(chan struct{}), changed: make(chan struct{}),
	}
	h.packets[number] = p
	return p, nil
}

func (p *packetConn) LocalAddr() net.Addr {
	return &net.UDPAddr{IP: net.ParseIP(p.host.ip), Port: p.number}
}

// ReadFrom returns the next packet, cut to len(b).
func (p *packetConn) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		if isClosed(p.done) {
			return 0, nil, net.ErrClosed
		}
		p.mu.Lock()
		due, changed := p.readBy, p.changed
		p.mu.Unlock()
		if !due.IsZero() && !time.Now().Before(due) {
			return 0, nil, os.ErrDeadlineExceeded
		}
		select {
		case <-p.done:
			return 0, nil, net.ErrClosed
		case k := <-p.queue:
			return copy(b, k.b), k.from, nil
		case <-changed:
		case <-alarm(due):
		}
	}
}

// WriteTo sends a packet. A lost packet is no error.
func (p *packetConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if isClosed(p.done) {
		return 0, net.ErrClosed
	}
	if len(b) > packetBytesMax {
		return 0, syscall.EMSGSIZE
	}
	ip, number, err := p.host.split(to.String())
	if err != nil {
		return 0, err
	}
	n := p.host.network
	link, _ := n.link(p.host.ip, ip)
	if link.Cut || (link.Loss > 0 && n.lost(link.Loss)) {
		return len(b), nil
	}
	k := packet{append([]byte(nil), b...), p.LocalAddr()}
	if link.Delay <= 0 {
		n.deliver(ip, number, k)
	} else {
		time.AfterFunc(link.Delay, func() { n.deliver(ip, number, k) })
	}
	return len(b), nil
}

// deliver puts k into the socket's queue, or drops it when there is no room.
func (n *Network) deliver(ip string, number int, k packet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[ip]
	if h == nil || h.packets[number] == nil {
		return
	}
	select {
	case h.packets[number].queue <- k:
	default:
	}
}

func (p *packetConn) Close() error {
	p.once.Do(func() {
		p.host.network.mu.Lock()
		delete(p.host.packets, p.number)
		p.host.network.mu.Unlock()
		close(p.done)
	})
	return nil
}

func (p *packetConn) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }

// SetWriteDeadline does nothing: sending a packet never waits.
func (p *packetConn) SetWriteDeadline(time.Time) error { return nil }

func (p *packetConn) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readBy = t
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

// alarm returns a channel that gets a value at the time due. A zero due never
// comes.
func alarm(due time.Time) <-chan time.Time {
	if due.IsZero() {
		return nil
	}
	return time.After(time.Until(due))
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
