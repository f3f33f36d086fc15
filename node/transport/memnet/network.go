package memnet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Bounds of the network.
const (
	acceptMax      = 128      // streams that wait for Accept; a further dial waits
	packetsMax     = 1024     // packets that wait for ReadFrom; a further one is lost
	packetBytesMax = 64 << 10 // a larger packet is an error
	bufferBytes    = 256 << 10
	firstFreePort  = 20000
	lastFreePort   = 60000
)

// Link describes one direction between two hosts. The zero value is perfect.
type Link struct {
	// Cut holds back everything that is sent. Packets are lost, streams wait and
	// continue when the link works again, and dials hang.
	Cut bool
	// Delay is added to each packet and each write to a stream.
	Delay time.Duration
	// Loss is the share of packets that get lost, 0 to 1. Streams lose nothing.
	Loss float64
}

// Network joins hosts. It is safe for concurrent use.
type Network struct {
	// mu guards links, hosts, random and changed, and the listeners and sockets of
	// each Host. It is never held while waiting, and never taken under the lock of
	// a half.
	mu      sync.Mutex
	links   map[[2]string]Link
	hosts   map[string]*Host
	random  *rand.Rand
	changed chan struct{} // closed and replaced when a link changes
}

// Host is one machine on a Network.
type Host struct {
	network *Network
	ip      string
	// guarded by network.mu
	listeners map[int]*listener
	packets   map[int]*packetConn
	nextPort  int
}

// New returns a network without hosts. seed decides which packets get lost.
func New(seed uint64) *Network {
	return &Network{
		links: make(map[[2]string]Link), hosts: make(map[string]*Host),
		random: rand.New(rand.NewPCG(seed, 1)), changed: make(chan struct{}),
	}
}

// Host returns the host with that IP address. It creates a missing one.
func (n *Network) Host(ip string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[ip]
	if h == nil {
		if net.ParseIP(ip) == nil {
			panic(fmt.Sprintf("bug: host %q is not an IP address", ip))
		}
		h = &Host{
			network: n, ip: ip, nextPort: firstFreePort,
			listeners: make(map[int]*listener), packets: make(map[int]*packetConn),
		}
		n.hosts[ip] = h
	}
	return h
}

// Has reports whether the host with that IP address was asked for before.
func (n *Network) Has(ip string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hosts[ip] != nil
}

// Set changes the link from one host to another. The opposite direction stays as it
// is.
func (n *Network) Set(from, to string, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[[2]string{from, to}] = l
	n.wake()
}

// Isolate cuts both directions between host and all others.
func (n *Network) Isolate(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for other := range n.hosts {
		if other != host {
			for _, pair := range [][2]string{{host, other}, {other, host}} {
				l := n.links[pair]
				l.Cut = true
				n.links[pair] = l
			}
		}
	}
	n.wake()
}

// Heal makes all links perfect.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.links)
	n.wake()
}

// wake wakes every goroutine that waits for a link. The caller holds mu.
func (n *Network) wake() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// link returns the link and a channel that closes when any link changes.
func (n *Network) link(from, to string) (Link, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.links[[2]string{from, to}], n.changed
}

// lost draws whether a packet gets lost.
func (n *Network) lost(share float64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.random.Float64() < share
}

// free returns a port that is not in use. The caller holds network.mu.
func (h *Host) free() int {
	for {
		if h.nextPort++; h.nextPort > lastFreePort {
			h.nextPort = firstFreePort
		}
		if h.listeners[h.nextPort] == nil && h.packets[h.nextPort] == nil {
			return h.nextPort
		}
	}
}

// split reads host:port. An empty or unspecified host is h itself.
func (h *Host) split(address string) (string, int, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", 0, err
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = h.ip
	}
	return host, int(number), nil
}

// Listen opens a stream listener on this host. Streams and packets have separate
// ports, as TCP and UDP have.
func (h *Host) Listen(_ context.Context, address string) (net.Listener, error) {
	ip, number, err := h.split(address)
	if err != nil || ip != h.ip {
		return nil, fmt.Errorf("listen on %s: %w", address, syscall.EADDRNOTAVAIL)
	}
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	if number == 0 {
		number = h.free()
	}
	if h.listeners[number] != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, syscall.EADDRINUSE)
	}
	l := &listener{
		host: h, number: number,
		queue: make(chan *conn, acceptMax), done: make(chan struct{}),
	}
	h.listeners[number] = l
	return l, nil
}

// Dial opens a stream. While either direction is cut it hangs. It fails where
// nobody listens.
func (h *Host) Dial(ctx context.Context, address string) (net.Conn, error) {
	ip, number, err := h.split(address)
	if err != nil {
		return nil, err
	}
	for {
		there, changed := h.network.link(h.ip, ip)
		back, _ := h.network.link(ip, h.ip)
		if !there.Cut && !back.Cut {
			if err := sleep(ctx, there.Delay+back.Delay); err != nil {
				return nil, fmt.Errorf("dial %s: %w", address, err)
			}
			break
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("dial %s: %w", address, ctx.Err())
		case <-changed:
		}
	}
	h.network.mu.Lock()
	var l *listener
	if other := h.network.hosts[ip]; other != nil {
		l = other.listeners[number]
	}
	own := h.free()
	h.network.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
	}
	near, far := pipe(h.network, tcpAddr(h.ip, own), tcpAddr(ip, number))
	select {
	case l.queue <- far:
		return near, nil
	case <-l.done:
		return nil, fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, fmt.Errorf("dial %s: %w", address, ctx.Err())
	}
}

// Resolve parses address; there are no names to look up.
func (h *Host) Resolve(_ context.Context, address string) ([]net.Addr, error) {
	ip, number, err := h.split(address)
	if err != nil {
		return nil, err
	}
	if net.ParseIP(ip) == nil {
		return nil, &net.DNSError{Err: "no such host", Name: ip, IsNotFound: true}
	}
	return []net.Addr{&net.UDPAddr{IP: net.ParseIP(ip), Port: number}}, nil
}

// listener is a host's stream listener.
type listener struct {
	host   *Host
	number int
	queue  chan *conn // waits for Accept; a dial that finds it full waits
	done   chan struct{}
	once   sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, net.ErrClosed
	case c := <-l.queue:
		return c, nil
	}
}

func (l *listener) Addr() net.Addr { return tcpAddr(l.host.ip, l.number) }

func (l *listener) Close() error {
	l.once.Do(func() {
		l.host.network.mu.Lock()
		delete(l.host.listeners, l.number)
		l.host.network.mu.Unlock()
		close(l.done)
		for {
			select {
			case c := <-l.queue:
				_ = c.Close()
			default:
				return
			}
		}
	})
	return nil
}

func tcpAddr(ip string, port int) *net.TCPAddr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: port} }

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
